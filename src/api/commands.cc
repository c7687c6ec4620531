#include "api/commands.h"

#include <fmt/format.h>

#include <optional>

#include "api/byte_scan.h"

namespace turnstile {
namespace {

using std::chrono::milliseconds;

// Reads values out of Fields and judges them. The first fault is remembered and told by result(); until then
// a faulty value reads as an empty one, so that a command can be built in one go.
class Reader {
 public:
  Reader(const Fields& fields, const ApiLimits& limits) : fields_(fields), limits_(limits) {}

  LaneName lane() {
    return {OperationName(required_id(Field::type, limits_.type)),
            ResourceId(required_id(Field::resource_id, limits_.resource_id))};
  }
  Requester requester() { return {node(), RequestId(id(Field::request_id, limits_.request_id))}; }
  // For calls that nobody in particular may make, too.
  Requester optional_requester() {
    const Requester who{NodeId(id(Field::node_id, limits_.node_id)),
                        RequestId(id(Field::request_id, limits_.request_id))};
    if (who.node.empty() && !who.request.empty())
      fault("\"request_id\" without \"node_id\" names nobody: send both or neither");
    return who;
  }
  NodeId node() { return NodeId(required_id(Field::node_id, limits_.node_id)); }
  ResourceId resource() { return ResourceId(required_id(Field::resource_id, limits_.resource_id)); }

  // A name: nothing in it that could not be shown on one line.
  std::string_view id(Field field, size_t longest) {
    const std::string_view value = text(field, longest);
    if (has_control_character(value))
      fault(fmt::format("\"{}\" contains a control character: remove it", name_of(field)));
    return value;
  }
  std::string_view required_id(Field field, size_t longest) {
    require(field);
    return id(field, longest);
  }
  // Free text, for people.
  std::string_view text(Field field, size_t longest) {
    const std::string_view value = fields_.text(field);
    if (value.size() > longest)
      fault(fmt::format("\"{}\" is {} bytes long: at most {} are allowed", name_of(field), value.size(),
                        longest));
    return value;
  }

  // 0 if it is not given.
  uint64_t integer(Field field, uint64_t least = 0, uint64_t most = kMaxJsonInteger) {
    const uint64_t value = fields_.number(field);
    if (fields_.has(field) && (value < least || value > most))
      fault(fmt::format("\"{}\" must be from {} to {}", name_of(field), least, most));
    return value;
  }
  std::optional<bool> boolean(Field field) {
    if (!fields_.has(field)) return std::nullopt;
    return fields_.is_true(field);
  }
  std::optional<Scope> scope() {
    if (!fields_.has(Field::scope)) return std::nullopt;
    const std::string_view value = fields_.text(Field::scope);
    if (value == "resource") return Scope::resource;
    if (value != "operation") fault("\"scope\" must be \"operation\" or \"resource\"");
    return Scope::operation;
  }
  std::optional<Duration> lease() {
    if (!fields_.has(Field::lease_ms)) return std::nullopt;
    const uint64_t least = limits_.lease_min.count(), most = limits_.lease_max.count();
    return milliseconds(std::min(integer(Field::lease_ms, least, most), most));
  }
  // Who wants to wait for ever gets the longest wait there is, and asks again.
  milliseconds wait() {
    return milliseconds(std::min(integer(Field::wait_ms), uint64_t(limits_.wait_max.count())));
  }
  // However long: the engine cuts it. Whoever has done the work must not be refused for wanting too much.
  std::optional<Duration> keep() {
    if (!fields_.has(Field::keep_ms)) return std::nullopt;
    return milliseconds(std::min(integer(Field::keep_ms), kMaxJsonInteger));
  }
  void lane_states(ListCommand& command) {
    if (!fields_.has(Field::state)) return;
    const std::string_view value = fields_.text(Field::state);
    if (value == "active")
      command.group = LaneGroup::active;
    else if (value == "queued")
      command.group = LaneGroup::queued;
    else if (value == "held")
      command.state = LaneState::held;
    else if (value == "waiting")
      command.state = LaneState::waiting;
    else if (value == "completed")
      command.state = LaneState::completed;
    else if (value == "idle")
      command.state = LaneState::idle;
    else
      fault(R"("state" must be "idle", "held", "waiting", "completed", "active" or "queued")");
  }
  ListOrder list_order() {
    if (!fields_.has(Field::sort)) return ListOrder::name;
    const std::string_view value = fields_.text(Field::sort);
    if (value != "name" && fields_.has(Field::cursor))
      fault(R"("cursor" goes with "sort":"name" only: places in another order change all the time)");
    if (value == "queue") return ListOrder::queue;
    if (value == "since") return ListOrder::since;
    if (value != "name") fault(R"("sort" must be "name", "queue" or "since")");
    return ListOrder::name;
  }
  uint32_t page_size() {
    if (!fields_.has(Field::limit)) return limits_.list_default;
    return uint32_t(integer(Field::limit, 1, limits_.list_max));
  }

  void require(Field field) {
    if (!fields_.has(field))
      fault(fmt::format("\"{}\" is missing or empty: this call needs it", name_of(field)));
  }
  void fault(std::string message) {
    if (!error_) error_ = make_error(ErrorCode::invalid, std::move(message));
  }

  template <class T>
  ApiResult<T> result(const T& made) {
    if (error_) [[unlikely]]
      return std::unexpected(*std::move(error_));
    return made;
  }

 private:
  const Fields& fields_;
  const ApiLimits& limits_;
  std::optional<ApiError> error_;
};

}  // namespace

ApiResult<LockRequest> make_lock(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  LockRequest request;
  request.command.lane = read.lane();
  request.command.who = read.requester();
  request.command.scope = read.scope();
  request.command.lease = read.lease();
  request.command.monitor = read.boolean(Field::monitor);
  request.command.dereference = fields.is_true(Field::dereference);
  request.command.info = read.text(Field::info, limits.info);
  request.wait = read.wait();
  return read.result(request);
}

ApiResult<UnlockCommand> make_unlock(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  UnlockCommand command;
  command.lane = read.lane();
  command.who = read.requester();
  command.token = Token(read.integer(Field::token));
  command.error = read.text(Field::error, limits.error);
  command.success = read.boolean(Field::success).value_or(command.error.empty());  // S9
  command.permanent = fields.is_true(Field::permanent);
  command.keep = read.keep();
  command.result = read.text(Field::result, limits.result);
  if (command.success) {  // said outright, it wins over an error text that came along, and is never permanent
    command.error = {};
    command.permanent = false;
  } else {  // S38, S39: a failure does not count for anybody
    command.keep.reset();
    command.result = {};
  }
  return read.result(command);
}

ApiResult<RenewCommand> make_renew(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  RenewCommand command;
  command.lane = read.lane();
  command.who = read.requester();
  read.require(Field::token);
  // The engine takes 0 for "no token given", and a renewal without one could keep somebody else's hold alive.
  command.token = Token(read.integer(Field::token, 1));
  command.lease = read.lease();
  if (fields.has(Field::done) || fields.has(Field::total))
    command.progress = Progress{read.integer(Field::done), read.integer(Field::total)};
  return read.result(command);
}

ApiResult<CancelCommand> make_cancel(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  const LaneName lane = read.lane();
  return read.result(CancelCommand{lane, read.requester()});
}

ApiResult<StatusCommand> make_status(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  const LaneName lane = read.lane();
  return read.result(StatusCommand{lane, read.optional_requester()});
}

ApiResult<SubscribeCommand> make_subscribe(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  const LaneName lane = read.lane();
  return read.result(SubscribeCommand{lane, read.optional_requester(), BondId::none});
}

ApiResult<BreakCommand> make_break(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  const LaneName lane = read.lane();
  read.require(Field::reason);
  const auto token = Token(read.integer(Field::token));
  return read.result(BreakCommand{lane, read.text(Field::reason, limits.reason), token});
}

ApiResult<ForgetCommand> make_forget(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  return read.result(ForgetCommand{read.lane()});
}

ApiResult<ReferenceCommand> make_reference(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  const ResourceId resource = read.resource();
  return read.result(ReferenceCommand{resource, read.node()});
}

ApiResult<NodeId> make_release_node(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  return read.result(read.node());
}

ApiResult<ReferencesCommand> make_references(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  ReferencesCommand command;
  command.resource = read.resource();
  command.after = NodeId(read.id(Field::after, limits.node_id));
  command.limit = read.page_size();
  return read.result(command);
}

ApiResult<EventsRequest> make_events(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  const std::string_view prefix = read.id(Field::prefix, limits.resource_id);
  return read.result(EventsRequest{prefix, OperationName(read.id(Field::type, limits.type))});
}

ApiResult<ListCommand> make_list(const Fields& fields, const ApiLimits& limits) {
  Reader read(fields, limits);
  ListCommand command;
  command.prefix = read.id(Field::prefix, limits.resource_id);
  command.operation = OperationName(read.id(Field::type, limits.type));
  command.contains = read.id(Field::contains, limits.resource_id);
  command.node = NodeId(read.id(Field::node, limits.node_id));
  read.lane_states(command);
  command.limit = read.page_size();
  command.order = read.list_order();
  command.count = read.integer(Field::count, 0, 1) == 1;
  if (fields.has(Field::names)) command.names = uint32_t(read.integer(Field::names, 0, kMostNamed));
  return read.result(command);
}

}  // namespace turnstile
