// A real etcd on loopback, for tests: one member or several, with certificates, users and a small disk if
// wished.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "etcd/connect.h"

namespace turnstile::testing {

// The time that a test gives anything that should happen: a busy machine must not fail it.
inline constexpr std::chrono::seconds kEventually{30};

// Files that openssl has made: ca.pem; server.pem and .key for 127.0.0.1; client.pem and .key; other-ca.pem,
// and other.pem and .key, which the CA has not signed.
void make_certificates(const std::filesystem::path& directory);

struct EtcdWishes {
  size_t members = 1;
  int64_t quota_bytes = 0;            // 0: etcd's own
  bool tls = false;                   // with certificates in directory()/tls,
  bool asks_for_certificate = false;  // and clients must show one
};

// Ended when destroyed, and with the process. Throws std::runtime_error if it cannot be started.
class TestEtcd {
 public:
  explicit TestEtcd(const EtcdWishes& wishes = {});
  ~TestEtcd();
  TestEtcd(const TestEtcd&) = delete;
  TestEtcd& operator=(const TestEtcd&) = delete;

  std::vector<std::string> endpoints() const;
  // That a client needs who is let in.
  etcd::Options options() const;
  std::unique_ptr<etcd::Client> connect() const;
  const std::filesystem::path& directory() const { return directory_; }

  void kill(size_t member);  // -9
  void start(size_t member);
  void pause(size_t member);  // SIGSTOP
  void resume(size_t member);
  // All members that run know a leader.
  void wait_until_healthy(const etcd::Options& options) const;
  void wait_until_healthy() const { wait_until_healthy(options()); }
  // etcdctl with these words; its output. Throws if it fails.
  std::string control(const std::string& words) const;

 private:
  struct Member {
    pid_t pid = 0;  // 0: does not run
    uint16_t client_port = 0, peer_port = 0;
  };

  std::vector<std::string> command(size_t member) const;
  std::string scheme() const { return wishes_.tls ? "https" : "http"; }

  const EtcdWishes wishes_;
  std::filesystem::path directory_;
  std::vector<Member> members_;
};

}  // namespace turnstile::testing
