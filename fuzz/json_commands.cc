// JSON bodies into commands, batches included. What must hold:
// - any body is a command or refused with a message that is itself good JSON;
// - what lies behind the body does not matter;
// - an accepted command keeps every limit of the API, and written anew from its fields it is the same
// command;
// - of a batch, as many items can be taken as it says, each of which is as good as a request of its own.
#include "api/command_reader.h"
#include "command_fields.h"

namespace turnstile::fuzz {
namespace {

constexpr Path kPostPaths[] = {Path::lock,       Path::unlock,       Path::renew,
                               Path::cancel,     Path::batch,        Path::lock_status,
                               Path::refs_add,   Path::refs_release, Path::refs_release_node,
                               Path::admin_break};

// One for all inputs, as in a server.
CommandReader& reader() {
  static CommandReader reader;
  return reader;
}

void check_error(const ApiError& error) {
  std::string json;
  append_error_json(json, error);
  TS_CHECK(json.size() < 1000, "an error does not repeat all that was sent");
  TS_CHECK(is_json_object(json), "an error is good JSON");
}

std::string_view call_of(const Command& command) {
  return std::holds_alternative<LockRequest>(command)           ? "lock"
         : std::holds_alternative<UnlockCommand>(command)       ? "unlock"
         : std::holds_alternative<RenewCommand>(command)        ? "renew"
         : std::holds_alternative<CancelCommand>(command)       ? "cancel"
         : std::holds_alternative<AddReferenceCommand>(command) ? "refs/add"
                                                                : "refs/release";
}

// The command as JSON, of a batch those of its items that are good; nothing: it was refused.
std::optional<std::string> read(Path path, std::string_view body, char behind) {
  const ExactCopy padded(body, RequestParser::kBodyPadding, behind);
  const ApiResult<Command> command = reader().read(path, true, {}, padded.view());
  if (!command) {
    check_error(command.error());
    return std::nullopt;
  }
  CommandFields fields = fields_of(*command);
  const auto* const batch = std::get_if<BatchCommand>(&*command);
  if (!batch) return fields.as_json();
  std::string items;
  for (size_t i = 0; i < batch->count; ++i) {
    const ApiResult<Command> item = reader().next_in_batch();
    if (!item) {
      check_error(item.error());
      continue;
    }
    CommandFields of_item = fields_of(*item);
    of_item.text("call", call_of(*item), 12);
    items += (items.empty() ? "" : ",") + of_item.as_json();
  }
  return "{\"requests\":[" + items + "]}";
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const Path path = kPostPaths[input.byte() % std::size(kPostPaths)];
  const std::string_view body = input.rest();
  const auto command = read(path, body, '\0');
  TS_CHECK(command == read(path, body, '"') && command == read(path, body, '}'),
           "what lies behind a body is not read");
  if (!command) return;
  TS_CHECK(read(path, *command, ' ') == command, "a command written anew is the same command");
}

}  // namespace turnstile::fuzz
