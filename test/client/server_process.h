// A turnstiled of one test's own, and a few things that only tests of clients need.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "turnstile/lock_client.h"

namespace turnstile {

// The binary of this build, or the one that the environment names (a build of the client alone has none).
inline std::string turnstiled_path() {
  if (const char* named = std::getenv("TURNSTILED")) return named;
#ifdef TURNSTILED
  return TURNSTILED;
#else
  return "";
#endif
}

// Whether the condition holds within a time that only something broken takes.
template <class Condition>
bool eventually(Condition condition) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// A loopback address that is this process's alone: between the end of a server and its next start nobody
// else, and no connection that is just being made, is given its port.
inline std::string own_address() {
  const int pid = getpid();
  return "127." + std::to_string(1 + pid / 65536 % 250) + "." + std::to_string(pid / 256 % 256) + "." +
         std::to_string(1 + pid % 254);
}

// Started by the constructor, killed by the destructor. Threads: one.
class ServerProcess {
 public:
  explicit ServerProcess(std::vector<std::string> arguments = {"--store", "memory"}) : arguments_(arguments) {
    start(own_address() + ":0");
  }
  ~ServerProcess() { kill_now(); }

  void kill_now() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Again at the same address.
  void restart() {
    kill_now();
    start(address_);
  }
  int port() const { return std::stoi(address_.substr(address_.rfind(':') + 1)); }
  std::string host() const { return address_.substr(0, address_.rfind(':')); }
  std::string url() const { return "http://" + address_; }
  ClientSettings settings(const std::string& node) const { return {.servers = {url()}, .node_id = node}; }
  LockClient client(const std::string& node) const { return std::move(*LockClient::create(settings(node))); }

 private:
  void start(const std::string& listen) {
    std::vector<std::string> words = {turnstiled_path(), "--listen", listen, "--log-level", "error"};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int out[2];
    ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    ASSERT_EQ(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0)
        << "no turnstiled: set TURNSTILED";
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    std::string line;
    for (char c; line.find('\n') == std::string::npos && read(out[0], &c, 1) == 1;) line += c;
    close(out[0]);
    const std::string_view prefix = "listening on ";
    ASSERT_TRUE(line.starts_with(prefix)) << line;
    address_ = line.substr(prefix.size(), line.size() - prefix.size() - 1);
  }

  std::vector<std::string> arguments_;
  pid_t pid_ = -1;
  std::string address_;
};

}  // namespace turnstile
