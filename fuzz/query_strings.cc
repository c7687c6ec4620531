// Query strings into commands. What must hold:
// - any query is a command or refused with a message that is not much longer than a line;
// - an accepted command keeps every limit of the API, and written anew, each byte escaped, it is the same
// command.
#include "api/command_reader.h"
#include "command_fields.h"

namespace turnstile::fuzz {
namespace {

constexpr Path kGetPaths[] = {Path::lock_status, Path::locks, Path::lock_subscribe, Path::events, Path::refs};

std::optional<std::string> read(Path path, std::string_view query) {
  static CommandReader reader;
  const ExactCopy copy(query);
  const ApiResult<Command> command = reader.read(path, false, copy.view(), {});
  if (command) return fields_of(*command).as_query();
  TS_CHECK(command.error().message.size() < 500, "an error does not repeat all that was sent");
  return std::nullopt;
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  const Path path = kGetPaths[input.byte() % std::size(kGetPaths)];
  const auto command = read(path, input.rest());
  if (command) TS_CHECK(read(path, *command) == command, "a command written anew is the same command");
}

}  // namespace turnstile::fuzz
