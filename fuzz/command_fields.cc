// See command_fields.h.
#include "command_fields.h"

#include <simdjson.h>

#include "api/cursor.h"

namespace turnstile::fuzz {
namespace {

const ApiLimits kLimits;

void add(CommandFields& to, const LockRequest& request) {
  const LockCommand& lock = request.command;
  to.lane(lock.lane);
  to.requester(lock.who, true);
  if (lock.scope) to.text("scope", *lock.scope == Scope::resource ? "resource" : "operation", 9);
  to.lease(lock.lease);
  if (lock.monitor) to.boolean("monitor", *lock.monitor);
  to.boolean("dereference", lock.dereference);
  to.text("info", lock.info, kLimits.info);
  TS_CHECK(request.wait.count() >= 0 && request.wait <= kLimits.wait_max, "a wait is within its limit");
  to.number("wait_ms", uint64_t(request.wait.count()));
}
void add(CommandFields& to, const UnlockCommand& unlock) {
  to.lane(unlock.lane);
  to.requester(unlock.who, true);
  to.number("token", uint64_t(unlock.token));
  to.boolean("success", unlock.success);
  to.boolean("permanent", unlock.permanent);
  to.text("error", unlock.error, kLimits.error);
  to.text("result", unlock.result, kLimits.result);
  if (unlock.keep) to.number("keep_ms", uint64_t(to_ms(*unlock.keep)));
  TS_CHECK(!unlock.success || (unlock.error.empty() && !unlock.permanent), "a success has no error");
  TS_CHECK(unlock.success || (!unlock.keep && unlock.result.empty()), "a failure leaves nothing");
}
void add(CommandFields& to, const RenewCommand& renew) {
  to.lane(renew.lane);
  to.requester(renew.who, true);
  TS_CHECK(renew.token != Token::none, "a renewal names its hold");
  to.number("token", uint64_t(renew.token));
  to.lease(renew.lease);
  if (!renew.progress) return;
  to.number("done", renew.progress->done);
  to.number("total", renew.progress->total);
}
void add(CommandFields& to, const CancelCommand& cancel) {
  to.lane(cancel.lane);
  to.requester(cancel.who, true);
}
void add(CommandFields& to, const StatusCommand& status) {
  to.lane(status.lane);
  to.requester(status.who, false);
}
void add(CommandFields& to, const SubscribeCommand& subscribe) {
  to.lane(subscribe.lane);
  to.requester(subscribe.who, false);
}
void add(CommandFields& to, const BreakCommand& broken) {
  to.lane(broken.lane);
  TS_CHECK(!broken.reason.empty(), "who breaks a hold says why");
  to.text("reason", broken.reason, kLimits.reason);
  to.number("token", uint64_t(broken.token));
}
void add(CommandFields& to, const ForgetCommand& forget) { to.lane(forget.lane); }
void add(CommandFields& to, const ReferenceCommand& reference) {
  to.id("resource_id", reference.resource.text, kLimits.resource_id, true);
  to.id("node_id", reference.node.text, kLimits.node_id, true);
}
void add(CommandFields& to, const ReferencesCommand& references) {
  to.id("resource_id", references.resource.text, kLimits.resource_id, true);
  to.id("after", references.after.text, kLimits.node_id, false);
  TS_CHECK(references.limit >= 1 && references.limit <= kLimits.list_max, "a page has a size");
  to.number("limit", references.limit);
}
void add(CommandFields& to, const ReleaseNodeCommand& release) {
  to.id("node_id", release.node.text, kLimits.node_id, true);
}
void add(CommandFields& to, const EventsRequest& events) {
  to.id("prefix", events.prefix, kLimits.resource_id, false);
  to.id("type", events.operation.text, kLimits.type, false);
}
void add(CommandFields& to, const ListCommand& list) {
  to.id("prefix", list.prefix, kLimits.resource_id, false);
  to.id("type", list.operation.text, kLimits.type, false);
  constexpr std::string_view kStates[] = {"idle", "held", "waiting", "completed"};
  if (list.state) to.text("state", kStates[size_t(*list.state)], 9);
  TS_CHECK(list.limit >= 1 && list.limit <= kLimits.list_max, "a page has a size");
  to.number("limit", list.limit);
  if (list.after.resource.empty()) return;
  std::string cursor;
  append_cursor(cursor, list.after);
  to.text("cursor", cursor, 4096);
}
void add(CommandFields&, const BatchCommand& batch) {
  TS_CHECK(batch.count <= kLimits.batch, "a batch is within its limit");
}

}  // namespace

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

bool is_json_object(std::string_view text) {
  thread_local simdjson::dom::parser parser;
  simdjson::dom::object object;
  return !parser.parse(text.data(), text.size(), true).get(object);
}

CommandFields fields_of(const Command& command) {
  CommandFields fields;
  std::visit([&](const auto& each) { add(fields, each); }, command);
  return fields;
}

}  // namespace turnstile::fuzz
