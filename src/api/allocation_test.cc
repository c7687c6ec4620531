// The promise that a request in steady state allocates nothing in this folder. Counts every `new` of this
// program, which is why it has a file of its own.
#include <cstdlib>
#include <new>

#include "api/answer_writer.h"
#include "api/event_json.h"
#include "api/query.h"
#include "api/test_body.h"

namespace {
thread_local size_t allocations = 0;
}  // namespace

// Not inlined: g++ would see free() of a pointer that came from `new`, and warn.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
void* operator new[](size_t size) { return operator new(size); }
// simdjson asks for these.
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void* operator new[](size_t size, const std::nothrow_t& none) noexcept { return operator new(size, none); }
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete[](void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete[](void* block, size_t) noexcept { std::free(block); }

namespace turnstile {
namespace {

TEST(Allocation, ARequestInSteadyStateAllocatesNothing) {
  RequestParser parser;
  QueryParser query;
  std::string out;
  const Body lock(
      R"({"type":"pull","resource_id":"sha256:0123456789abcdef0123456789abcdef","node_id":"node-1",
      "request_id":"r\u00e9","lease_ms":1000,"wait_ms":5,"info":"x"})");
  const Body batch(
      R"({"requests":[{"call":"unlock","type":"pull","resource_id":"r","node_id":"n","token":7}]})");
  const auto all_of_it = [&] {
    out.clear();
    ASSERT_TRUE(parser.parse_lock(lock.view()));
    ASSERT_EQ(parser.parse_batch(batch.view()), size_t(1));
    ASSERT_TRUE(std::holds_alternative<UnlockCommand>(parser.next_in_batch()));
    ASSERT_TRUE(query.parse_status("type=pull&resource_id=sha256%3A0123456789abcdef0123456789abcdef"));
    LockAnswer acquired;
    acquired.state = LockState::acquired;
    append_lock_answer(out, acquired, {});
    append_unlock_answer(out, {});
    append_status_answer(out, {});
    append_sse_event(out, 1, {});
  };
  all_of_it();
  const size_t before = allocations;
  for (int i = 0; i < 100; ++i) all_of_it();
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace turnstile
