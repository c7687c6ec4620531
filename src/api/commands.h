// From the fields of a request to a command of the engine: what each call knows, requires and allows (S1).
//
// A command that leaves here is valid, so that nobody behind has to check again. Texts are still views into
// what the request was read from.
#pragma once

#include <chrono>

#include "api/error.h"
#include "api/fields.h"
#include "api/limits.h"
#include "engine/command.h"

namespace turnstile {

// What a call asks of the engine, and what of it is for the server alone.
struct LockRequest {
  LockCommand command;
  std::chrono::milliseconds wait{};  // S24: how long the answer may stay open
};

// GET /events: of everything that happens, that which the subscriber wants.
struct EventsRequest {
  std::string_view prefix;  // of the resource id
  OperationName operation;  // empty: all
};

// The fields that a call knows. All others are ignored, whatever they hold. In a batch nobody waits and no
// connection is a bond, so wait_ms and monitor are unknown there.
inline constexpr FieldSet kLaneFields(Field::type, Field::resource_id);
inline constexpr FieldSet kRequesterFields(Field::node_id, Field::request_id);
inline constexpr FieldSet kCancelFields = kLaneFields | kRequesterFields;
inline constexpr FieldSet kStatusFields = kCancelFields;
inline constexpr FieldSet kSubscribeFields = kCancelFields;
inline constexpr FieldSet kBatchLockFields =
    kCancelFields | FieldSet(Field::scope, Field::lease_ms, Field::dereference, Field::info);
inline constexpr FieldSet kLockFields = kBatchLockFields | FieldSet(Field::wait_ms, Field::monitor);
inline constexpr FieldSet kUnlockFields =
    kCancelFields |
    FieldSet(Field::token, Field::success, Field::error, Field::permanent, Field::keep_ms, Field::result);
inline constexpr FieldSet kRenewFields =
    kCancelFields | FieldSet(Field::token, Field::lease_ms, Field::done, Field::total);
inline constexpr FieldSet kBreakFields = kLaneFields | FieldSet(Field::reason, Field::token);
inline constexpr FieldSet kForgetFields = kLaneFields;
inline constexpr FieldSet kReferenceFields(Field::resource_id, Field::node_id);
inline constexpr FieldSet kReferencesFields(Field::resource_id, Field::limit, Field::after);
inline constexpr FieldSet kEventsFields(Field::prefix, Field::type);
inline constexpr FieldSet kListFields =
    kEventsFields | FieldSet(Field::state, Field::limit, Field::cursor, Field::contains, Field::node,
                             Field::sort, Field::count, Field::names);

// Each makes its command, or says which field is wrong and how. `fields` has only fields that the call knows.
ApiResult<LockRequest> make_lock(const Fields& fields, const ApiLimits& limits);
ApiResult<UnlockCommand> make_unlock(const Fields& fields, const ApiLimits& limits);
ApiResult<RenewCommand> make_renew(const Fields& fields, const ApiLimits& limits);
ApiResult<CancelCommand> make_cancel(const Fields& fields, const ApiLimits& limits);
ApiResult<StatusCommand> make_status(const Fields& fields, const ApiLimits& limits);
ApiResult<SubscribeCommand> make_subscribe(const Fields& fields, const ApiLimits& limits);
ApiResult<BreakCommand> make_break(const Fields& fields, const ApiLimits& limits);
ApiResult<ForgetCommand> make_forget(const Fields& fields, const ApiLimits& limits);
ApiResult<ReferenceCommand> make_reference(const Fields& fields, const ApiLimits& limits);
ApiResult<NodeId> make_release_node(const Fields& fields, const ApiLimits& limits);
ApiResult<ReferencesCommand> make_references(const Fields& fields, const ApiLimits& limits);
ApiResult<EventsRequest> make_events(const Fields& fields, const ApiLimits& limits);
// Without the cursor, which is a text of its own kind (cursor.h).
ApiResult<ListCommand> make_list(const Fields& fields, const ApiLimits& limits);

}  // namespace turnstile
