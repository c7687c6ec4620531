// The modes of the load generator that do a thing once and then look at the server: what does it cost to
// keep?
#pragma once

#include <string>
#include <vector>

#include "modes.h"

// Acquires --locks different keys and leaves them held: what does a held lock cost in memory?
class HoldMode : public Mode {
 public:
  explicit HoldMode(Bench& bench) : Mode(bench), rss_before_kb_(bench.server.rss_kb()) {}

  void begin() override {
    for (int i = 0; i < bench_.options.connections * bench_.options.pipeline; ++i) acquire(i);
  }

  void on_reply(int id, const Reply& reply) override {
    ++answered_;
    if (reply.lost || bench_.wire.successes(reply, Call::lock, 1) != 1)
      bench_.error("lock refused", reply);
    else
      ++held_;
    acquire(id);
  }

  bool idle() const override { return answered_ == bench_.options.locks; }

  void report(JsonLine& line, double seconds) override {
    long grown_kb = bench_.server.rss_kb() - rss_before_kb_;
    line.number("locks", double(held_));
    line.number("acquires_per_second", double(held_) / seconds);
    line.number("server_rss_before_kb", double(rss_before_kb_));
    line.number("bytes_per_lock", held_ == 0 ? 0 : double(grown_kb) * 1024 / double(held_));
  }

 private:
  void acquire(int id) {
    if (asked_ == bench_.options.locks) return;
    std::string out;
    bench_.wire.lock(out, bench_.resource(asked_++), Bench::node(id), 0);
    bench_.connections->send(id, out);
  }

  long rss_before_kb_;
  long asked_ = 0, answered_ = 0, held_ = 0;
};

// Makes one request on each of N connections and keeps them: what does a silent client cost?
// Made before the connections are opened, so that memory can be compared with before.
class IdleMode : public Mode {
 public:
  explicit IdleMode(Bench& bench) : Mode(bench), rss_before_kb_(bench.server.rss_kb()) {}

  void begin() override {
    std::string out;
    bench_.wire.ping(out);
    for (int i = 0; i < bench_.options.connections; ++i) bench_.connections->send(i, out);
  }

  void on_reply(int, const Reply& reply) override {
    ++answered_;
    if (reply.lost || bench_.wire.successes(reply, Call::ping, 1) != 1)
      bench_.error("request refused", reply);
  }

  bool idle() const override { return answered_ >= bench_.options.connections; }

  void report(JsonLine& line, double) override {
    double grown_kb = double(bench_.server.rss_kb() - rss_before_kb_);
    line.number("closed_by_server", double(bench_.connections->lost()));
    line.number("server_rss_before_kb", double(rss_before_kb_));
    line.number("bytes_per_connection", grown_kb * 1024 / bench_.options.connections);
  }

 private:
  long rss_before_kb_;
  long answered_ = 0;
};

// Locks and frees each of --locks keys once, one half with success and one with failure: does the server
// forget them again? Who asks compares the memory of several such runs.
class ChurnMode : public Mode {
 public:
  explicit ChurnMode(Bench& bench)
      : Mode(bench),
        rss_before_kb_(bench.server.rss_kb()),
        clients_(size_t(bench.options.connections) * size_t(bench.options.pipeline)) {}

  void begin() override {
    for (size_t i = 0; i < clients_.size(); ++i) next(int(i));
  }

  void on_reply(int id, const Reply& reply) override {
    Client& client = clients_[size_t(id)];
    if (reply.lost || bench_.wire.successes(reply, client.call, 1) != 1) {
      bench_.error(client.call == Call::lock ? "lock refused" : "unlock refused", reply);
      ++done_;
      return next(id);
    }
    if (client.call == Call::lock) return release(id);
    ++done_;
    next(id);
  }

  bool idle() const override { return done_ == bench_.options.locks; }

  void report(JsonLine& line, double seconds) override {
    line.number("keys", double(done_));
    line.number("pairs_per_second", double(done_) / seconds);
    line.number("server_rss_before_kb", double(rss_before_kb_));
  }

 private:
  struct Client {
    Call call = Call::lock;
    long key = 0;
  };

  void next(int id) {
    if (asked_ == bench_.options.locks) return;
    clients_[size_t(id)] = {Call::lock, asked_++};
    std::string out;
    bench_.wire.lock(out, bench_.resource(clients_[size_t(id)].key), Bench::node(id), 0);
    bench_.connections->send(id, out);
  }

  void release(int id) {
    Client& client = clients_[size_t(id)];
    client.call = Call::unlock;
    std::string out;
    const std::string resource = bench_.resource(client.key);
    if (client.key % 2 == 0)
      bench_.wire.unlock(out, resource, Bench::node(id));
    else
      bench_.wire.fail(out, resource, Bench::node(id));
    bench_.connections->send(id, out);
  }

  long rss_before_kb_;
  std::vector<Client> clients_;
  long asked_ = 0, done_ = 0;
};
