#include "client/answers.h"

#include <simdjson.h>

#include "client/wall_time.h"

namespace turnstile::client {
namespace {

namespace dom = simdjson::dom;

// A hundred years: no server of ours gives more, and a clock's time and so much can still be added.
constexpr uint64_t kLongestLeaseMs = uint64_t(100) * 365 * 24 * 60 * 60 * 1000;

// One object, read field by field. After a field that is not as promised, ok() is false and the rest is void.
class Reader {
 public:
  explicit Reader(dom::object object) : object_(object) {}

  bool ok() const { return ok_; }

  std::string text(const char* name, bool required = false) {
    std::string_view value;
    return get(name, value, required) ? std::string(value) : std::string();
  }
  WallTime time(const char* name) { return parse_wall_time(text(name)).value_or(WallTime{}); }
  bool boolean(const char* name, bool required = false) {
    bool value = false;
    get(name, value, required);
    return value;
  }
  bool boolean_or(const char* name, bool otherwise) {
    bool value = otherwise;
    get(name, value, false);
    return value;
  }
  uint64_t number(const char* name, bool required = false) {
    uint64_t value = 0;
    get(name, value, required);
    return value;
  }
  uint32_t small(const char* name, bool required = false) {
    const uint64_t value = number(name, required);
    if (value > UINT32_MAX) ok_ = false;
    return uint32_t(value);
  }
  std::optional<uint64_t> number_if(const char* name) {
    uint64_t value = 0;
    return get(name, value, false) ? std::optional(value) : std::nullopt;
  }
  std::optional<uint32_t> small_if(const char* name) {
    const std::optional<uint64_t> value = number_if(name);
    if (!value) return std::nullopt;
    require(*value <= UINT32_MAX);
    return uint32_t(*value);
  }
  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> values;
    dom::array array;
    if (!get(name, array, false)) return values;
    for (const dom::element element : array) {
      std::string_view text;
      if (element.get(text)) ok_ = false;
      values.emplace_back(text);
    }
    return values;
  }
  // Calls `read(Reader&)` for the object of that name, if there is one.
  template <class Read>
  bool object(const char* name, Read read) {
    dom::object inner;
    if (!get(name, inner, false)) return false;
    Reader reader(inner);
    read(reader);
    ok_ = ok_ && reader.ok();
    return true;
  }
  template <class Read>
  void objects(const char* name, bool required, Read read) {
    dom::array array;
    if (!get(name, array, required)) return;
    for (const dom::element element : array) {
      dom::object inner;
      if (element.get(inner)) {
        ok_ = false;
        return;
      }
      Reader reader(inner);
      read(reader);
      ok_ = ok_ && reader.ok();
    }
  }
  std::vector<std::string> nodes_of(const char* name) {
    std::vector<std::string> nodes;
    object(name, [&](Reader& references) { nodes = references.texts("nodes"); });
    return nodes;
  }
  void require(bool condition) { ok_ = ok_ && condition; }

 private:
  template <class T>
  bool get(const char* name, T& value, bool required) {
    dom::element element;
    if (object_.at_key(name).get(element) || element.is_null()) {
      ok_ = ok_ && !required;
      return false;
    }
    if (!element.get(value)) return true;
    ok_ = false;
    return false;
  }

  dom::object object_;
  bool ok_ = true;
};

// Parses `body` and reads it with `read(Reader&)`.
template <class Read>
auto read_object(std::string_view body, Read read) -> std::optional<decltype(read(std::declval<Reader&>()))> {
  // A parser that is kept saves the allocations of each answer; one that a large answer made large is not.
  constexpr size_t kKept = 64 << 10;
  thread_local dom::parser kept;
  dom::parser own;
  dom::parser& parser = body.size() <= kKept ? kept : own;
  dom::object object;
  if (parser.parse(body.data(), body.size(), true).get(object)) return std::nullopt;
  Reader reader(object);
  auto value = read(reader);
  if (!reader.ok()) return std::nullopt;
  return value;
}

Milliseconds milliseconds_of(uint64_t ms) { return Milliseconds(std::min(ms, kLongestLeaseMs)); }

HolderStatus holder_of(Reader& from) {
  HolderStatus holder;
  holder.node_id = from.text("node_id", true);
  holder.request_id = from.text("request_id");
  holder.token = from.number("token");
  holder.since = from.time("since");
  holder.lease = milliseconds_of(from.number("lease_ms"));
  holder.done = from.number_if("done");
  holder.total = from.number_if("total");
  holder.info = from.text("info");
  return holder;
}

Refusal refusal_of(Reader& from) {
  return {.code = from.text("code", true),
          .error = from.text("error"),
          .leader = from.text("leader"),
          .nodes = from.nodes_of("references")};
}

LockAnswer lock_of(Reader& from) {
  LockAnswer answer;
  const std::string state = from.text("state", true);
  answer.token = from.number("token", state == "acquired");
  answer.attempt = std::max(1u, from.small("attempt"));
  answer.previous_error = from.text("previous_error");
  answer.references = from.nodes_of("references");
  if (state == "skipped") {
    answer.work.node_id = from.text("completed_by");
    if (const auto ago = from.number_if("completed_ms_ago")) answer.work.ago = milliseconds_of(*ago);
    answer.work.result = from.text("result");
  }
  answer.waiting.position = from.small("position");
  from.object("holder", [&](Reader& inner) {
    const HolderStatus holder = holder_of(inner);
    answer.waiting.holder = holder.node_id;
    answer.waiting.holder_since = holder.since;
    answer.waiting.done = holder.done;
    answer.waiting.total = holder.total;
  });
  using State = LockAnswer::State;
  if (state == "acquired") {
    answer.state = State::acquired;
  } else if (state == "skipped") {
    answer.state = State::skipped;
  } else if (state == "cancelled") {
    answer.state = State::cancelled;
  } else {
    from.require(state == "queued");
  }
  return answer;
}

Released unlock_of(Reader& from) {
  from.require(from.boolean("released", true));
  Released released;
  released.already = from.boolean("already");
  released.result_kept = from.boolean_or("result_kept", true);
  if (const auto keep = from.number_if("keep_ms")) released.keep = milliseconds_of(*keep);
  released.next = from.text("next");
  released.waiters = from.texts("waiters");
  return released;
}

Milliseconds renew_of(Reader& from) {
  from.require(from.boolean("renewed", true));
  const uint64_t lease_ms = from.number("lease_ms");
  from.require(lease_ms <= kLongestLeaseMs);
  return Milliseconds(lease_ms);
}

LaneStatus lane_of(Reader& from) {
  LaneStatus lane;
  lane.operation = from.text("type", true);
  lane.resource = from.text("resource_id", true);
  lane.state = from.text("state", true);
  from.object("holder", [&](Reader& inner) { lane.holder = holder_of(inner); });
  from.objects("queue", false, [&](Reader& inner) {
    lane.queue.push_back({.node_id = inner.text("node_id", true),
                          .request_id = inner.text("request_id"),
                          .position = inner.small("position"),
                          .since = inner.time("since"),
                          .info = inner.text("info")});
  });
  lane.queue_length = from.small_if("queue_length").value_or(uint32_t(lane.queue.size()));
  from.object("completion", [&](Reader& inner) {
    lane.completion = CompletionStatus{.node_id = inner.text("node_id"),
                                       .success = inner.boolean("success"),
                                       .error = inner.text("error"),
                                       .permanent = inner.boolean("permanent"),
                                       .completed_at = inner.time("completed_at"),
                                       .result = inner.text("result")};
  });
  from.object("references", [&](Reader& inner) {
    lane.references = inner.texts("nodes");
    lane.reference_count = inner.small("count");
  });
  lane.waiters = from.texts("waiters");
  return lane;
}

ReferenceStatus references_of(Reader& from) {
  return {.resource = from.text("resource_id", true),
          .count = from.small("count", true),
          .nodes = from.texts("nodes"),
          .changed = from.boolean("changed")};
}

template <class T, class Read>
std::optional<std::vector<BatchElement<T>>> read_batch(std::string_view body, Read read) {
  return read_object(body, [&](Reader& from) {
    std::vector<BatchElement<T>> elements;
    from.objects("answers", true, [&](Reader& inner) {
      BatchElement<T>& element = elements.emplace_back();
      element.status = int(inner.small("status", true));
      if (element.status == 200) {
        element.answer = read(inner);
      } else {
        element.refusal = refusal_of(inner);
      }
    });
    return elements;
  });
}

}  // namespace

std::optional<Refusal> read_refusal(std::string_view body) { return read_object(body, refusal_of); }
std::optional<LockAnswer> read_lock(std::string_view body) { return read_object(body, lock_of); }
std::optional<Released> read_unlock(std::string_view body) { return read_object(body, unlock_of); }
std::optional<Milliseconds> read_renew(std::string_view body) { return read_object(body, renew_of); }

std::optional<bool> read_cancel(std::string_view body) {
  return read_object(body, [](Reader& from) { return from.boolean("cancelled", true); });
}

std::optional<bool> read_forgotten(std::string_view body) {
  return read_object(body, [](Reader& from) { return from.boolean("forgotten", true); });
}

std::optional<OwnStatus> read_status(std::string_view body) {
  return read_object(body, [](Reader& from) {
    OwnStatus own;
    own.acquired = from.boolean("acquired");
    own.completed = from.boolean("completed");
    own.position = from.small("position");
    own.lane = lane_of(from);
    return own;
  });
}

std::optional<LanePage> read_list(std::string_view body) {
  return read_object(body, [](Reader& from) {
    LanePage page;
    from.objects("locks", true, [&](Reader& inner) { page.lanes.push_back(lane_of(inner)); });
    page.next_cursor = from.text("next_cursor");
    return page;
  });
}

std::optional<ReferenceStatus> read_references(std::string_view body) {
  return read_object(body, references_of);
}

std::optional<uint32_t> read_released_node(std::string_view body) {
  return read_object(body, [](Reader& from) { return from.small("count", true); });
}

std::optional<std::string> read_break(std::string_view body) {
  return read_object(body, [](Reader& from) { return from.text("node_id", true); });
}

std::optional<Event> read_event(std::string_view data) {
  return read_object(data, [](Reader& from) {
    Event event;
    event.event = from.text("event", true);
    event.operation = from.text("type");
    event.resource = from.text("resource_id");
    event.node_id = from.text("node_id");
    event.request_id = from.text("request_id");
    event.success = from.boolean("success");
    event.error = from.text("error");
    event.reason = from.text("reason");
    event.permanent = from.boolean("permanent");
    event.completed_at = from.time("completed_at");
    event.token = from.number("token");
    event.attempt = from.small("attempt");
    event.result = from.text("result");
    return event;
  });
}

bool is_json_object(std::string_view body) {
  return read_object(body, [](Reader&) { return true; }).has_value();
}

std::optional<std::vector<BatchElement<LockAnswer>>> read_lock_batch(std::string_view body) {
  return read_batch<LockAnswer>(body, lock_of);
}
std::optional<std::vector<BatchElement<Released>>> read_unlock_batch(std::string_view body) {
  return read_batch<Released>(body, unlock_of);
}
std::optional<std::vector<BatchElement<Milliseconds>>> read_renew_batch(std::string_view body) {
  return read_batch<Milliseconds>(body, renew_of);
}
std::optional<std::vector<BatchElement<ReferenceStatus>>> read_references_batch(std::string_view body) {
  return read_batch<ReferenceStatus>(body, references_of);
}

}  // namespace turnstile::client
