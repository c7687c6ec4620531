// What the loops have in common about who asks, and what is counted of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "access/audit_log.h"
#include "access/browser.h"
#include "access/credentials.h"
#include "access/slow_down.h"

namespace turnstile {

// Threads: credentials, names and audit are set before the first loop begins; each loop then has its own
// `credentials`, which are changed on its thread. Everything else by any.
struct AccessState {
  access::CredentialsPtr credentials;  // none: nobody has to say who he is
  access::OwnNames names;
  std::unique_ptr<access::AuditLog> audit;  // none: nobody wants to know
  access::SlowDown slow_down{std::random_device()()};
  bool open_metrics = false;

  std::atomic<uint64_t> logins{0}, unauthorized{0}, forbidden{0}, foreign_origin{0};

  void note(const access::AuditEntry& entry) {
    if (audit) audit->write(entry);
  }
  // For /metrics.
  void append_metrics(std::string& out) const;
};

}  // namespace turnstile
