// Starting a thread, as a function, so that a test can see what happens when there is none to be had.
#pragma once

#include <functional>
#include <thread>

namespace turnstile::client {

// Throws std::system_error when the system has no thread left for us.
using StartThread = std::function<std::thread(std::function<void()>)>;

inline std::thread start_real_thread(std::function<void()> run) { return std::thread(std::move(run)); }

}  // namespace turnstile::client
