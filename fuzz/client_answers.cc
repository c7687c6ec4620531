// The client's readers of JSON answers. What must hold:
// - whatever a server says is read or refused; nothing behind its last byte is touched;
// - what is accepted is a JSON object, has no more elements than bytes, and no negative times;
// - who is asked twice says the same.
#include "client/answers.h"
#include "support.h"

namespace turnstile::fuzz {
namespace {

void check_list(std::string_view body) {
  const auto page = client::read_list(body);
  if (!page) return;
  TS_CHECK(page->lanes.size() <= body.size(), "a list has no more lanes than bytes");
  for (const auto& lane : page->lanes)
    TS_CHECK(lane.queue.size() + lane.references.size() + lane.waiters.size() <= body.size(),
             "a lane has no more elements than bytes");
}

void check_times(std::string_view body) {
  if (const auto lease = client::read_renew(body)) TS_CHECK(lease->count() >= 0, "a lease is not negative");
  if (const auto batch = client::read_renew_batch(body))
    for (const auto& element : *batch)
      TS_CHECK(!element.answer || element.answer->count() >= 0, "a lease is not negative");
}

void check_lock(std::string_view body) {
  const auto once = client::read_lock(body), again = client::read_lock(body);
  TS_CHECK(once.has_value() == again.has_value(), "an answer is judged alike each time");
  if (!once) return;
  TS_CHECK(once->token == again->token && once->references == again->references,
           "an answer is read alike each time");
  TS_CHECK(once->attempt >= 1, "the first attempt has the number 1");
}

}  // namespace

void run(std::string_view bytes) {
  const ExactCopy copy(bytes);
  const std::string_view body = copy.view();
  const bool object = client::is_json_object(body);
  const auto check = [&](bool accepted) {
    TS_CHECK(object || !accepted, "what is accepted is a JSON object");
  };
  check(client::read_refusal(body).has_value());
  check(client::read_lock(body).has_value());
  check(client::read_unlock(body).has_value());
  check(client::read_cancel(body).has_value());
  check(client::read_status(body).has_value());
  check(client::read_references(body).has_value());
  check(client::read_released_node(body).has_value());
  check(client::read_break(body).has_value());
  check(client::read_event(body).has_value());
  check(client::read_lock_batch(body).has_value());
  check(client::read_unlock_batch(body).has_value());
  if (!object) return;
  check_list(body);
  check_times(body);
  check_lock(body);
}

}  // namespace turnstile::fuzz
