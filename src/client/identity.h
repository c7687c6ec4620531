// Who a client says it is: a credential and a certificate, in files that may change while it runs.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "base/sync.h"
#include "client/server_url.h"
#include "client/timing.h"
#include "turnstile/settings.h"

namespace turnstile::client {

// The first line of the file, without the white space around it. The error is a sentence without the secret.
std::expected<std::string, std::string> read_credential(const std::string& path);

// Looks at its files once a second while it is asked. A credential file that cannot be read leaves the last
// one in force, and is told to on_notice; certificates are libcurl's to read, for every new connection.
// Threads: every member may be called by any number of threads.
class Identity {
 public:
  explicit Identity(const ClientSettings& settings);

  // Another number: connections that were made before show what is not valid any more.
  uint64_t generation();
  // Looks now. True: something has changed.
  bool look_again();
  // To be sent to `url`; empty: nothing.
  std::string credential_for(const ServerUrl& url) const;

 private:
  struct Seen {
    std::string path;
    struct stat about;
  };

  void look() TS_REQUIRES(mutex_);

  const ClientSettings settings_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int64_t> looked_{0};  // Steady's count
  mutable Mutex mutex_;
  std::string credential_ TS_GUARDED_BY(mutex_);
  std::vector<Seen> seen_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::client
