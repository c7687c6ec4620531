// What the API layer costs a request: the body of the load generator's lock call in, its answer out.
#include <benchmark/benchmark.h>

#include <string>

#include "api/answer_writer.h"
#include "api/event_json.h"
#include "api/query.h"
#include "api/request_parser.h"

namespace turnstile {
namespace {

std::string padded(std::string_view text) {
  return std::string(text) + std::string(RequestParser::kBodyPadding, ' ');
}

void parse_lock(benchmark::State& state) {
  constexpr std::string_view kBody =
      R"({"type":"lock","resource_id":"bench-0123456789ab","node_id":"client-0007"})";
  const std::string body = padded(kBody);
  RequestParser parser;
  for (auto _ : state) benchmark::DoNotOptimize(parser.parse_lock({body.data(), kBody.size()}));
}
BENCHMARK(parse_lock);

void parse_full_lock(benchmark::State& state) {
  constexpr std::string_view kBody =
      R"({"type":"pull","resource_id":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",)"
      R"("node_id":"node-17","request_id":"b2c1","wait_ms":60000,"lease_ms":30000,"monitor":true})";
  const std::string body = padded(kBody);
  RequestParser parser;
  for (auto _ : state) benchmark::DoNotOptimize(parser.parse_lock({body.data(), kBody.size()}));
}
BENCHMARK(parse_full_lock);

void parse_batch_of_100(benchmark::State& state) {
  std::string text = R"({"requests":[)";
  for (int i = 0; i < 100; ++i)
    text += R"({"call":"lock","type":"lock","resource_id":"bench-0123456789ab","node_id":"client-0007"},)";
  text.back() = ']';
  text += '}';
  const std::string body = padded(text);
  RequestParser parser;
  for (auto _ : state) {
    const auto count = parser.parse_batch({body.data(), text.size()});
    for (size_t i = 0; i < *count; ++i) benchmark::DoNotOptimize(parser.next_in_batch());
  }
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(parse_batch_of_100);

void parse_status_query(benchmark::State& state) {
  QueryParser parser;
  for (auto _ : state)
    benchmark::DoNotOptimize(
        parser.parse_status("type=pull&resource_id=sha256%3A9f86d081884c7d65&node_id=node-17"));
}
BENCHMARK(parse_status_query);

void write_acquired(benchmark::State& state) {
  LockAnswer answer;
  answer.state = LockState::acquired;
  answer.token = Token(123456789);
  answer.attempt = 1;
  const LaneName lane{OperationName("lock"), ResourceId("bench-0123456789ab")};
  std::string out;
  for (auto _ : state) {
    out.clear();
    benchmark::DoNotOptimize(append_lock_answer(out, answer, lane));
  }
}
BENCHMARK(write_acquired);

void write_released(benchmark::State& state) {
  std::string out;
  for (auto _ : state) {
    out.clear();
    benchmark::DoNotOptimize(append_unlock_answer(out, UnlockAnswer()));
  }
}
BENCHMARK(write_released);

void write_event(benchmark::State& state) {
  Event event;
  event.lane = {OperationName("pull"),
                ResourceId("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")};
  event.who = {NodeId("node-17"), RequestId()};
  event.at = Time(std::chrono::seconds(1'790'000'000));
  std::string out;
  for (auto _ : state) {
    out.clear();
    append_sse_event(out, 123456, event);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(write_event);

}  // namespace
}  // namespace turnstile
