#include "etcd/test_etcd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "base/unique_fd.h"

extern char** environ;

namespace turnstile::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Ports that nobody uses now: held together, so that they differ.
std::vector<uint16_t> free_ports(size_t count) {
  std::vector<UniqueFd> sockets;
  std::vector<uint16_t> ports;
  for (size_t i = 0; i < count; ++i) {
    sockets.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(sockets.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::getsockname(sockets.back().get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("no free port");
    ports.push_back(ntohs(address.sin_port));
  }
  return ports;
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

pid_t spawn(const std::vector<std::string>& words, const std::filesystem::path& output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot start " + words[0]);
  return pid;
}

void run(const std::vector<std::string>& words, const std::filesystem::path& output) {
  int status = 0;
  ::waitpid(spawn(words, output), &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error(fmt::format("{} failed: {}", fmt::join(words, " "), file_text(output)));
}

}  // namespace

void make_certificates(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  const std::string script = fmt::format(R"(set -e; cd '{}'
    key() {{ openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }}
    for ca in ca other-ca; do
      key $ca.key; openssl req -x509 -new -key $ca.key -days 2 -subj "/CN=$ca" -out $ca.pem
    done
    printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n' > server.ext
    printf 'extendedKeyUsage=clientAuth\n' > client.ext; cp client.ext other.ext
    for name in server client other; do
      ca=ca; [ $name = other ] && ca=other-ca
      key $name.key; openssl req -new -key $name.key -subj "/CN=$name" -out $name.csr
      openssl x509 -req -in $name.csr -CA $ca.pem -CAkey $ca.key -CAcreateserial -days 2 -extfile $name.ext -out $name.pem
    done)",
                                         directory.string());
  run({"/bin/sh", "-c", script}, directory / "openssl.log");
}

TestEtcd::TestEtcd(const EtcdWishes& wishes) : wishes_(wishes) {
  std::string name = (std::filesystem::temp_directory_path() / "turnstile-etcd-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  directory_ = name;
  if (wishes_.tls) make_certificates(directory_ / "tls");
  const std::vector<uint16_t> ports = free_ports(2 * wishes_.members);
  members_.resize(wishes_.members);
  for (size_t i = 0; i < members_.size(); ++i) {
    members_[i].client_port = ports[2 * i];
    members_[i].peer_port = ports[2 * i + 1];
  }
  for (size_t i = 0; i < members_.size(); ++i) start(i);
  wait_until_healthy();
}

TestEtcd::~TestEtcd() {
  for (size_t i = 0; i < members_.size(); ++i) kill(i);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::vector<std::string> TestEtcd::command(size_t index) const {
  const Member& member = members_[index];
  const std::string client = fmt::format("{}://127.0.0.1:{}", scheme(), member.client_port);
  const std::string peer = fmt::format("http://127.0.0.1:{}", member.peer_port);
  std::string cluster;
  for (size_t i = 0; i < members_.size(); ++i)
    cluster += fmt::format("{}m{}=http://127.0.0.1:{}", i == 0 ? "" : ",", i, members_[i].peer_port);
  std::vector<std::string> words{"/usr/bin/setpriv",
                                 "--pdeathsig",
                                 "KILL",  // it ends with us
                                 "/usr/bin/etcd",
                                 fmt::format("--name=m{}", index),
                                 "--data-dir=" + (directory_ / fmt::format("m{}", index)).string(),
                                 "--listen-client-urls=" + client,
                                 "--advertise-client-urls=" + client,
                                 "--listen-peer-urls=" + peer,
                                 "--initial-advertise-peer-urls=" + peer,
                                 "--initial-cluster=" + cluster,
                                 "--initial-cluster-state=new",
                                 "--logger=zap",
                                 "--log-level=warn"};
  if (wishes_.quota_bytes > 0) words.push_back(fmt::format("--quota-backend-bytes={}", wishes_.quota_bytes));
  const std::string tls = (directory_ / "tls").string();
  if (wishes_.tls) {
    words.push_back("--cert-file=" + tls + "/server.pem");
    words.push_back("--key-file=" + tls + "/server.key");
  }
  if (wishes_.asks_for_certificate) {
    words.push_back("--client-cert-auth");
    words.push_back("--trusted-ca-file=" + tls + "/ca.pem");
  }
  return words;
}

void TestEtcd::start(size_t index) {
  members_[index].pid = spawn(command(index), directory_ / fmt::format("m{}.log", index));
}

void TestEtcd::kill(size_t index) {
  pid_t& pid = members_[index].pid;
  if (pid == 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  pid = 0;
}

void TestEtcd::pause(size_t index) { ::kill(members_[index].pid, SIGSTOP); }
void TestEtcd::resume(size_t index) { ::kill(members_[index].pid, SIGCONT); }

std::vector<std::string> TestEtcd::endpoints() const {
  std::vector<std::string> all;
  for (const Member& member : members_)
    all.push_back(fmt::format("{}://127.0.0.1:{}", scheme(), member.client_port));
  return all;
}

etcd::Options TestEtcd::options() const {
  etcd::Options options;
  options.endpoints = endpoints();
  if (wishes_.tls) options.ca_file = directory_ / "tls/ca.pem";
  if (wishes_.asks_for_certificate) {
    options.cert_file = directory_ / "tls/client.pem";
    options.key_file = directory_ / "tls/client.key";
  }
  return options;
}

std::unique_ptr<etcd::Client> TestEtcd::connect() const {
  auto client = etcd::connect(options());
  if (!client) throw std::runtime_error(client.error());
  return *std::move(client);
}

void TestEtcd::wait_until_healthy(const etcd::Options& options) const {
  auto client = etcd::connect(options);
  if (!client) throw std::runtime_error(client.error());
  std::string missing;
  for (const auto end = steady_clock::now() + kEventually; steady_clock::now() < end;) {
    missing.clear();
    const std::vector<etcd::MemberStatus> all = (*client)->members(milliseconds(2000));
    for (size_t i = 0; i < members_.size(); ++i)
      if (members_[i].pid != 0 && !all[i].healthy) missing = all[i].error;
    if (missing.empty()) return;
    std::this_thread::sleep_for(milliseconds(20));
  }
  throw std::runtime_error("etcd does not become healthy: " + missing + "\n" +
                           file_text(directory_ / "m0.log"));
}

std::string TestEtcd::control(const std::string& words) const {
  const std::filesystem::path output = directory_ / "etcdctl.log";
  std::filesystem::remove(output);
  const std::string tls = wishes_.tls
                              ? fmt::format("--cacert={0}/ca.pem --cert={0}/client.pem --key={0}/client.key",
                                            (directory_ / "tls").string())
                              : "";
  run({"/bin/sh", "-c",
       fmt::format("ETCDCTL_API=3 exec etcdctl {} --endpoints={} {}", tls, fmt::join(endpoints(), ","),
                   words)},
      output);
  return file_text(output);
}

}  // namespace turnstile::testing
