// A proxy between a client and its server that misbehaves at one byte of an exchange, chosen by the test.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace turnstile {

enum class FaultKind {
  none,
  cut,     // both connections are closed
  drop,    // nothing more is forwarded this way, and nobody is told
  delay,   // the rest comes late: after the client has given up on it
  repeat,  // of requests: what was sent so far is sent again on a second connection, which then takes over
};
enum class FaultWay { request, answer };

struct Fault {
  FaultKind kind = FaultKind::none;
  FaultWay way = FaultWay::request;
  size_t at = 0;  // bytes of this way that are forwarded before it happens, counted from arm()
  std::chrono::milliseconds delay{0};
};

// Threads: one of its own that forwards; the members are for one other.
class FaultyProxy {
 public:
  FaultyProxy(const std::string& server_host, int server_port);
  ~FaultyProxy();

  int port() const { return port_; }
  // The next exchange misbehaves, once.
  void arm(const Fault& fault);
  // Everything passes again. Whether the fault happened: if not, the exchange was shorter than that.
  bool disarm();
  // Returns when nothing that was delayed is under way any more.
  void await_late_bytes();

 private:
  struct Link;
  void run();
  void accept_one();
  bool forward(Link& link, FaultWay way);  // false: the link is over
  bool misbehave(Link& link);
  void close(Link& link);

  const std::string server_host_;
  const int server_port_;
  int port_ = 0;
  int listener_ = -1, bell_ = -1;
  std::atomic<bool> ends_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  Fault fault_;
  bool happened_ = false;
  size_t late_ = 0;  // links with delayed bytes
  size_t passed_ = 0;
  std::string sent_;  // of requests, since arm()

  std::list<Link> links_;
  std::thread thread_;
};

}  // namespace turnstile
