// The plugin reads what its node uses, slowly and all the time: what is damaged is found before it is needed.
#pragma once

#include <chrono>
#include <set>
#include <thread>

#include "content/content_store.h"
#include "content/metrics.h"
#include "content/verification.h"

namespace turnstile::content {

// Reads every blob that is in use or kept once in `every`, evenly. What is damaged is put away, what others
// do not see any more is published again; both and what is gone are logged and counted, once each.
//
// Threads: one of its own, which ends with it.
class BackgroundVerification {
 public:
  BackgroundVerification(ContentStore& store, Metrics& metrics, std::chrono::milliseconds every);

 private:
  void run(const std::stop_token& stop);
  void note(Finding finding);

  ContentStore& store_;
  Metrics& metrics_;
  const std::chrono::milliseconds every_;
  std::set<Digest> reported_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace turnstile::content
