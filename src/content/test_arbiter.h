// For tests: an arbiter that answers as it is told and writes down what it hears.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "content/arbiter.h"

namespace turnstile::content {

// What happened, in order: "write", "adopt", "end", and of tickets "succeeded" and "failed: …".
struct ArbiterScript {
  std::vector<std::string> heard;
  Decision::Kind write = Decision::Kind::write;
  Decision::Kind adoption = Decision::Kind::adopt;
  Removal::Kind removal = Removal::Kind::remove_everywhere;
  bool valid = true;
  bool remote = false;
  bool alone = false;
  bool confirmed = true;
  bool forgotten = false;  // to be told once
  bool settled = true;
  bool counts_nobody = true;
  std::string life;
  std::function<void()> on_write = [] {};  // while the lock is being taken
  std::function<void()> on_adoption = [] {};

  size_t count(const std::string& what) const { return size_t(std::count(heard.begin(), heard.end(), what)); }
};

class ScriptedArbiter final : public Arbiter {
 public:
  explicit ScriptedArbiter(ArbiterScript& script) : script_(script) {}

  Decision begin_write(const Digest&, int64_t) override {
    script_.heard.push_back("write");
    script_.on_write();
    return decide(script_.write);
  }
  Decision begin_adoption(const Digest&) override {
    script_.heard.push_back("adopt");
    script_.on_adoption();
    return decide(script_.adoption);
  }
  Removal end_use(const Digest&, bool) override {
    script_.heard.push_back("end");
    return {script_.removal, std::make_unique<Heard>(script_), true, script_.life};
  }
  bool is_remote() const override { return script_.remote; }
  bool has_forgotten() override { return std::exchange(script_.forgotten, false); }
  bool is_settled() override { return script_.settled; }
  std::string life() const override { return script_.life; }
  bool counts_nobody(const Digest&) override { return script_.counts_nobody; }
  std::string ask_life() override { return script_.life; }
  std::vector<bool> confirm_uses(const std::vector<Digest>& used) override {
    return std::vector<bool>(used.size(), true);
  }

 private:
  class Heard final : public Ticket {
   public:
    explicit Heard(ArbiterScript& script) : script_(script) {}
    ~Heard() override { failed("abandoned"); }
    void progress(int64_t, int64_t) override {}
    bool still_valid() override { return script_.valid; }
    bool succeeded() override {
      end("succeeded");
      return script_.confirmed;
    }
    void failed(const std::string& why) override { end("failed: " + why); }

   private:
    void end(const std::string& how) {
      if (!ended_) script_.heard.push_back(how);
      ended_ = true;
    }
    ArbiterScript& script_;
    bool ended_ = false;
  };

  Decision decide(Decision::Kind kind) {
    const bool ticket = kind == Decision::Kind::write || kind == Decision::Kind::adopt;
    return {kind, ticket ? std::make_unique<Heard>(script_) : nullptr, "as told", ticket, script_.alone};
  }
  ArbiterScript& script_;
};

}  // namespace turnstile::content
