#include "api/command_reader.h"

#include "base/check.h"

namespace turnstile {
namespace {

// What was parsed, as the command `To`, of which it is all or the only part.
template <class To, class From>
ApiResult<Command> as(ApiResult<From>&& parsed) {
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  return Command(To{*std::move(parsed)});
}

template <class From>
ApiResult<Command> as_it_is(ApiResult<From>&& parsed) {
  return as<From>(std::move(parsed));
}

}  // namespace

bool is_command(Path path) { return path <= Path::admin_forget; }

ApiResult<Command> CommandReader::read(Path path, bool post, std::string_view query, std::string_view body) {
  switch (path) {
    case Path::lock:
      return as_it_is(bodies_.parse_lock(body));
    case Path::unlock:
      return as_it_is(bodies_.parse_unlock(body));
    case Path::renew:
      return as_it_is(bodies_.parse_renew(body));
    case Path::cancel:
      return as_it_is(bodies_.parse_cancel(body));
    case Path::batch:
      return as<BatchCommand>(bodies_.parse_batch(body));
    case Path::lock_status:
      return as_it_is(post ? bodies_.parse_status(body) : queries_.parse_status(query));
    case Path::locks:
      return as_it_is(queries_.parse_list(query));
    case Path::lock_subscribe:
    case Path::subscribe:
      return as_it_is(queries_.parse_subscribe(query));
    case Path::events:
      return as_it_is(queries_.parse_events(query));
    case Path::refs:
      return as_it_is(queries_.parse_references(query));
    case Path::refs_add:
      return as<AddReferenceCommand>(bodies_.parse_reference(body));
    case Path::refs_release:
      return as<ReleaseReferenceCommand>(bodies_.parse_reference(body));
    case Path::refs_release_node:
      return as<ReleaseNodeCommand>(bodies_.parse_release_node(body));
    case Path::admin_break:
      return as_it_is(bodies_.parse_break(body));
    case Path::admin_forget:
      return as_it_is(bodies_.parse_forget(body));
    default:
      break;
  }
  TS_CHECK(false, "only a command's path is read");
  return {};
}

ApiResult<Command> CommandReader::next_in_batch() {
  return std::visit(
      [](auto&& item) -> ApiResult<Command> {
        using Item = std::remove_cvref_t<decltype(item)>;
        if constexpr (std::is_same_v<Item, ApiError>)
          return std::unexpected(std::move(item));
        else if constexpr (std::is_same_v<Item, LockCommand>)
          return Command(LockRequest{item, {}});
        else
          return Command(item);
      },
      bodies_.next_in_batch());
}

}  // namespace turnstile
