// What our programs and the service manager that started them say to each other: sockets that were opened for
// us before we began, and that we serve now.
//
// Two small protocols of environment variables, documented as stable (sd_listen_fds(3), sd_notify(3)). By
// hand, because libsystemd is a library of many others (compression, cryptography) for what is a screen of
// code, and because programs that know these two protocols need not be systemd.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace turnstile {

// A socket that listens already. Connections that are made while no process of ours accepts wait in it, so
// that nobody is refused during a restart.
struct PassedSocket {
  UniqueFd fd;
  std::string name;  // FileDescriptorName= of its unit; "unknown" if it has none
};

// Those that were passed to this process, in order; none if it was not started that way. They are
// non-blocking and are not passed on to children. To be called once, before any thread starts: the variables
// are removed.
Result<std::vector<PassedSocket>> take_passed_sockets();

// Tells the manager, if there is one that listens: "READY=1", "STOPPING=1", "STATUS=…".
void notify_manager(std::string_view state);

}  // namespace turnstile
