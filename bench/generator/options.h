// The command line of the load generator.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct Options {
  std::string protocol = "http";
  std::string mode = "pair";
  std::string type;  // empty: `pull` for fanout, else `lock`
  std::string prefix = "res-";
  std::vector<int> server_pids;
  int port = 8086;
  int connections = 64;
  int pipeline = 1;
  double seconds = 3;
  double warmup = 0.5;
  long keys = 100'000;
  long locks = 100'000;
  int batch = 10;
  int wait_ms = 10'000;
  int settle_ms = -1;  // negative: 100 ms and 0.1 ms a waiter
  bool long_keys = false;
  bool tls = false;
};

inline constexpr char kUsage[] =
    R"(usage: lockbench [--protocol http|redis|nginx] [--mode MODE] --port PORT [options]

modes     pair      lock and unlock, uncontended
          batch     the same, K at a time
          handover  all clients on one key
          fanout    one holder, N waiters, all told to skip (http only)
          hold      acquire --locks keys and keep them
          churn     acquire and free each of --locks keys once (http only)
          idle      N silent connections
options   --connections N (64)   --pipeline DEPTH (1)   --seconds S (3)   --warmup S (0.5)
          --keys N (100000)      --locks N (100000)     --batch K (10)
          --type TYPE (lock; fanout: pull)   --prefix TEXT (res-)   --long-keys
          --wait-ms MS (10000)   --settle-ms MS (100 + waiters / 10)
          --tls                  (see tls.h)
          --server-pid PID[,PID...]   whose CPU and memory to report
)";

[[noreturn]] inline void usage_error(const std::string& what) {
  std::fprintf(stderr, "lockbench: %s\n%s", what.c_str(), kUsage);
  std::exit(2);
}

inline std::vector<int> parse_pids(const std::string& list) {
  std::vector<int> pids;
  std::stringstream in(list);
  for (std::string pid; std::getline(in, pid, ',');) pids.push_back(std::stoi(pid));
  return pids;
}

inline void check_options(const Options& options) {
  auto is_one_of = [](const std::string& word, std::initializer_list<const char*> words) {
    for (const char* allowed : words)
      if (word == allowed) return true;
    return false;
  };
  const std::string &protocol = options.protocol, &mode = options.mode;
  if (!is_one_of(protocol, {"http", "redis", "nginx"})) usage_error("no protocol " + protocol);
  if (!is_one_of(mode, {"pair", "batch", "handover", "fanout", "hold", "churn", "idle"}))
    usage_error("no mode " + mode);
  if (is_one_of(mode, {"fanout", "churn"}) && protocol != "http")
    usage_error(mode + " needs --protocol http");
  if (mode == "handover" && protocol == "nginx") usage_error("nginx does not lock");
  if (options.pipeline > 1 && !is_one_of(mode, {"pair", "batch", "hold", "churn"}))
    usage_error("--pipeline makes no sense with mode " + mode);
  if (options.connections < 1 || options.pipeline < 1 || options.batch < 1 || options.locks < 1 ||
      options.keys < 1 || options.seconds <= 0)
    usage_error("counts and seconds must be positive");
}

inline Options parse_options(int argc, char** argv) {
  Options options;
  const std::vector<std::pair<const char*, std::function<void(const std::string&)>>> settings = {
      {"protocol", [&](const std::string& v) { options.protocol = v; }},
      {"mode", [&](const std::string& v) { options.mode = v; }},
      {"type", [&](const std::string& v) { options.type = v; }},
      {"prefix", [&](const std::string& v) { options.prefix = v; }},
      {"server-pid", [&](const std::string& v) { options.server_pids = parse_pids(v); }},
      {"port", [&](const std::string& v) { options.port = std::stoi(v); }},
      {"connections", [&](const std::string& v) { options.connections = std::stoi(v); }},
      {"pipeline", [&](const std::string& v) { options.pipeline = std::stoi(v); }},
      {"seconds", [&](const std::string& v) { options.seconds = std::stod(v); }},
      {"warmup", [&](const std::string& v) { options.warmup = std::stod(v); }},
      {"keys", [&](const std::string& v) { options.keys = std::stol(v); }},
      {"locks", [&](const std::string& v) { options.locks = std::stol(v); }},
      {"batch", [&](const std::string& v) { options.batch = std::stoi(v); }},
      {"wait-ms", [&](const std::string& v) { options.wait_ms = std::stoi(v); }},
      {"settle-ms", [&](const std::string& v) { options.settle_ms = std::stoi(v); }},
  };
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (word == "--long-keys" || word == "--tls") {
      (word == "--tls" ? options.tls : options.long_keys) = true;
      continue;
    }
    auto setting = std::find_if(settings.begin(), settings.end(), [&](const auto& candidate) {
      return word == std::string("--") + candidate.first;
    });
    if (setting == settings.end()) usage_error("no option " + word);
    if (++i == argc) usage_error(word + " needs a value");
    try {
      setting->second(argv[i]);
    } catch (const std::logic_error&) {
      usage_error(word + ": not a number: " + argv[i]);
    }
  }
  check_options(options);
  return options;
}
