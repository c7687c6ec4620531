// The modes of the load generator that run for a time: for each, a small state machine that sends requests
// and judges answers. Those that do a thing once are in modes_once.h.
//
// bench/README.md says what each mode measures. Time and sockets come from measure.h and connections.h;
// lockbench.cc decides when to begin, measure and stop.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "connections.h"
#include "measure.h"
#include "options.h"
#include "wire.h"

// What all modes share: where to send, what has been counted.
struct Bench {
  const Options& options;
  const Wire& wire;
  ServerProbe server;
  std::unique_ptr<Connections> connections;
  Latencies latencies;
  bool measuring = false;
  bool stopping = false;  // finish what is under way, begin nothing new
  long errors = 0;
  long errors_shown = 0;

  std::string resource(long number) const {
    char name[80];
    if (options.long_keys)  // as long as the digest of an image layer
      std::snprintf(name, sizeof name, "sha256:%016zx%048lx", std::hash<std::string>{}(options.prefix),
                    number);
    else
      std::snprintf(name, sizeof name, "%07ld", number);
    return options.long_keys ? name : options.prefix + name;
  }
  static std::string node(int client) { return "node-" + std::to_string(client); }

  void error(const char* what, const Reply& reply) {
    ++errors;
    if (++errors_shown > 3) return;
    std::string text = reply.lost ? "connection closed" : std::string(reply.body.substr(0, 200));
    std::fprintf(stderr, "lockbench: %s: %d %s\n", what, reply.status, text.c_str());
  }
};

class Mode {
 public:
  explicit Mode(Bench& bench) : bench_(bench) {}
  virtual ~Mode() = default;

  virtual void begin() = 0;
  virtual void on_reply(int client, const Reply& reply) = 0;
  virtual bool idle() const = 0;  // nothing is under way
  virtual uint64_t wake_at() const { return UINT64_MAX; }
  virtual void on_time(uint64_t) {}
  virtual long pairs() const { return 0; }  // completed while measuring
  virtual void report(JsonLine& line, double seconds) = 0;

 protected:
  Bench& bench_;
};

// Uncontended pairs. Each client locks and unlocks random keys out of a share of the keys that is its own,
// so that nothing ever collides. In batch mode it takes K keys in one request, then frees them in one.
class PairMode : public Mode {
 public:
  PairMode(Bench& bench, int batch) : Mode(bench), batch_(batch) {
    clients_.resize(size_t(bench.options.connections) * size_t(bench.options.pipeline));
    share_ = bench.options.keys / long(clients_.size());
    if (share_ < batch_) throw std::runtime_error("too few --keys for this many clients");
  }

  void begin() override {
    for (size_t i = 0; i < clients_.size(); ++i) start(int(i));
  }

  void on_reply(int id, const Reply& reply) override {
    Client& client = clients_[size_t(id)];
    if (reply.lost) {
      bench_.error("pair lost", reply);
      --under_way_;
      return start(id);
    }
    client.successes += bench_.wire.successes(reply, client.call, batch_);
    if (--client.replies_left > 0) return;
    if (client.successes != batch_) {
      bench_.error(client.call == Call::lock ? "lock refused" : "unlock refused", reply);
      client.failed = true;
    }
    if (client.call == Call::lock && client.successes > 0) return send(id, Call::unlock);

    --under_way_;
    if (bench_.measuring && !client.failed) {
      pairs_ += batch_;
      bench_.latencies.add(now_ns() - client.started_ns);
    }
    start(id);
  }

  bool idle() const override { return under_way_ == 0; }

  void report(JsonLine& line, double seconds) override {
    line.number("pairs", double(pairs_));
    line.number("pairs_per_second", double(pairs_) / seconds);
    if (bench_.options.mode == "batch") line.number("batch", batch_);
  }

  long pairs() const override { return pairs_; }

 private:
  struct Client {
    Call call = Call::lock;
    long key = 0;
    uint64_t started_ns = 0;
    int replies_left = 0;
    int successes = 0;
    bool failed = false;
  };

  void start(int id) {
    if (bench_.stopping) return;
    ++under_way_;
    Client& client = clients_[size_t(id)];
    client.key = long(random_() % size_t(share_ - batch_ + 1));
    client.started_ns = now_ns();
    client.failed = false;
    send(id, Call::lock);
  }

  void send(int id, Call call) {
    Client& client = clients_[size_t(id)];
    client.call = call;
    client.successes = 0;
    client.replies_left = 1;
    std::string out, node = Bench::node(id);
    if (bench_.options.mode == "batch") {
      std::vector<std::string> resources;
      for (int i = 0; i < batch_; ++i) resources.push_back(resource(id, client.key + i));
      client.replies_left = bench_.wire.batch(out, call, resources, node);
    } else if (call == Call::lock) {
      bench_.wire.lock(out, resource(id, client.key), node, 0);
    } else {
      bench_.wire.unlock(out, resource(id, client.key), node);
    }
    bench_.connections->send(id, out, client.replies_left);
  }

  std::string resource(int id, long key) const { return bench_.resource(key * long(clients_.size()) + id); }

  int batch_;
  long share_;
  std::vector<Client> clients_;
  std::minstd_rand random_;
  long under_way_ = 0;
  long pairs_ = 0;
};

// All clients want one key and free it as soon as they have it. HTTP clients wait in the server's queue;
// Redis has none, so there a refused client asks again at once.
// Latency: from sending a release to the answer that gives the key to a different client.
class HandoverMode : public Mode {
 public:
  explicit HandoverMode(Bench& bench) : Mode(bench), holding_(size_t(bench.options.connections)) {
    resource_ = bench.options.prefix + "hot-" + std::to_string(getpid());
  }

  void begin() override {
    for (int i = 0; i < bench_.options.connections; ++i) start(i);
  }

  void on_reply(int id, const Reply& reply) override {
    bool held = holding_[size_t(id)];
    int ok = reply.lost ? 0 : bench_.wire.successes(reply, held ? Call::unlock : Call::lock, 1);
    if (held || reply.lost) {
      if (!ok) bench_.error(held ? "unlock refused" : "lock lost", reply);
      if (ok && bench_.measuring) ++pairs_;
      holding_[size_t(id)] = false;
      --under_way_;
      return start(id);
    }
    if (!ok) {
      if (reply.status != 200 && reply.status != 409) bench_.error("lock refused", reply);
      if (bench_.measuring) ++refused_;
      return ask(id);
    }
    if (last_holder_ != id && released_ns_ != 0 && bench_.measuring) {
      ++handovers_;
      bench_.latencies.add(now_ns() - released_ns_);
    }
    last_holder_ = id;
    holding_[size_t(id)] = true;
    std::string out;
    bench_.wire.unlock(out, resource_, Bench::node(id));
    released_ns_ = now_ns();
    bench_.connections->send(id, out);
  }

  bool idle() const override { return under_way_ == 0; }

  void report(JsonLine& line, double seconds) override {
    line.number("pairs", double(pairs_));
    line.number("pairs_per_second", double(pairs_) / seconds);
    line.number("handovers_per_second", double(handovers_) / seconds);
    line.number("refused_per_second", double(refused_) / seconds);
  }

  long pairs() const override { return pairs_; }

 private:
  void start(int id) {
    if (bench_.stopping) return;
    ++under_way_;
    ask(id);
  }

  void ask(int id) {
    std::string out;
    bench_.wire.lock(out, resource_, Bench::node(id), bench_.options.wait_ms);
    bench_.connections->send(id, out);
  }

  std::string resource_;
  std::vector<char> holding_;
  int last_holder_ = -1;
  uint64_t released_ns_ = 0;
  long under_way_ = 0;
  long pairs_ = 0, handovers_ = 0, refused_ = 0;
};

// One holder, N waiters by long poll; the holder succeeds and every waiter must be told to skip.
// Rounds follow each other, each on a fresh resource. Client 0 is the holder.
// Latency: from sending the unlock until the last waiter has its answer.
class FanoutMode : public Mode {
 public:
  explicit FanoutMode(Bench& bench) : Mode(bench), waiters_(bench.options.connections) {
    settle_ms_ = bench.options.settle_ms;
    if (settle_ms_ < 0) settle_ms_ = 100 + waiters_ / 10;
  }

  void begin() override { start_round(); }

  void on_reply(int id, const Reply& reply) override {
    if (id == 0) return on_holder_reply(reply);
    bool skip = !reply.lost && reply.status == 200 && count_true(reply.body, "skip") == 1;
    if (!skip || step_ != Step::told) bench_.error("waiter not told to skip", reply);
    last_told_ns_ = now_ns();
    if (--open_answers_ == 0) finish_round();
  }

  uint64_t wake_at() const override { return step_ == Step::settling ? settled_at_ns_ : UINT64_MAX; }

  void on_time(uint64_t now) override {
    if (step_ != Step::settling || now < settled_at_ns_) return;
    step_ = Step::told;
    std::string out;
    bench_.wire.unlock(out, resource_, Bench::node(0));
    unlocked_ns_ = now_ns();
    bench_.connections->send(0, out);
  }

  bool idle() const override { return step_ == Step::none; }

  void report(JsonLine& line, double) override {
    double told = double(waiters_) * double(bench_.latencies.count());
    line.number("waiters", waiters_);
    line.number("rounds", double(bench_.latencies.count()));
    line.number("skips_per_second", told_ns_ == 0 ? 0 : told / (double(told_ns_) / 1e9));
  }

 private:
  enum class Step { none, locking, settling, told };

  void start_round() {
    step_ = Step::none;
    if (bench_.stopping) return;
    step_ = Step::locking;
    resource_ = bench_.options.prefix + "fan-" + std::to_string(getpid()) + "-" + std::to_string(++round_);
    std::string out;
    bench_.wire.lock(out, resource_, Bench::node(0), 0);
    bench_.connections->send(0, out);
  }

  void on_holder_reply(const Reply& reply) {
    Call call = step_ == Step::locking ? Call::lock : Call::unlock;
    if (reply.lost || bench_.wire.successes(reply, call, 1) != 1)
      throw std::runtime_error("the holder was refused: " + std::string(reply.body));
    if (call == Call::unlock) {
      if (--open_answers_ == 0) finish_round();
      return;
    }
    open_answers_ = waiters_ + 1;  // and the holder's own
    for (int i = 1; i <= waiters_; ++i) {
      std::string out;
      bench_.wire.lock(out, resource_, Bench::node(i), bench_.options.wait_ms);
      bench_.connections->send(i, out);
    }
    settled_at_ns_ = now_ns() + uint64_t(settle_ms_) * 1'000'000;
    step_ = Step::settling;
  }

  void finish_round() {
    if (bench_.measuring) {
      bench_.latencies.add(last_told_ns_ - unlocked_ns_);
      told_ns_ += last_told_ns_ - unlocked_ns_;
    }
    start_round();
  }

  int waiters_;
  int settle_ms_;
  Step step_ = Step::none;
  std::string resource_;
  long round_ = 0;
  int open_answers_ = 0;
  uint64_t settled_at_ns_ = 0, unlocked_ns_ = 0, last_told_ns_ = 0, told_ns_ = 0;
};
