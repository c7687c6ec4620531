// The memory journal: nothing to wait for, nothing to recover.
#include <gtest/gtest.h>

#include "journal/journal.h"

namespace turnstile {
namespace {

TEST(MemoryJournal, KeepsNothingAndNobodyWaitsForIt) {
  const auto journal = make_memory_journal();
  int loaded = 0;
  const auto recovered = journal->recover([&](const Record&) { ++loaded; });
  ASSERT_TRUE(recovered);
  journal->start([](uint64_t) { FAIL(); }, [](const Error&) { FAIL(); });
  Record record;
  record.kind = RecordKind::token_mark;
  const uint64_t sequence = journal->append({&record, 1}, Time{});
  EXPECT_EQ(sequence, 0u);
  EXPECT_GE(journal->durable(), sequence);
  EXPECT_FALSE(journal->keeps_records());
  EXPECT_FALSE(journal->wants_snapshot());
  EXPECT_FALSE(journal->overloaded());
  EXPECT_TRUE(journal->snapshot([](const Journal::Write&) { FAIL(); }));
  journal->stop();
  EXPECT_EQ(loaded, 0);
}

}  // namespace
}  // namespace turnstile
