// The journal that keeps nothing: for a server whose locks need not outlive it.
#include "journal/journal.h"

namespace turnstile {
namespace {

// Threads: any; it has no state.
class MemoryJournal final : public Journal {
 public:
  Result<Recovered> recover(const Load&) override { return Recovered{}; }
  void start(std::function<void(uint64_t)>, std::function<void(Error)>) override {}
  uint64_t append(std::span<const Record>, Time, uint64_t) override { return 0; }
  uint64_t durable() const override { return UINT64_MAX; }  // whatever one waits for is already so
  bool keeps_records() const override { return false; }
  bool overloaded() const override { return false; }
  Result<void> snapshot(const Dump&, std::stop_token) override { return {}; }
  bool wants_snapshot() const override { return false; }
  void stop() override {}
};

}  // namespace

std::unique_ptr<Journal> make_memory_journal() { return std::make_unique<MemoryJournal>(); }

}  // namespace turnstile
