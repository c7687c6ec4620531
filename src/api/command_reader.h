// From a request's path, query and body to its Command: the API's way in.
#pragma once

#include "api/command.h"
#include "api/paths.h"
#include "api/query.h"
#include "api/request_parser.h"

namespace turnstile {

// Reads one request at a time. What it returns holds views into the request and the reader's own memory: they
// live until the next read(). Threads: one reader for each.
class CommandReader {
 public:
  explicit CommandReader(const ApiLimits& limits = {}) : bodies_(limits), queries_(limits) {}

  // The call of this path, which is one of a command's (is_command()). `post`: its fields are in the body,
  // which has RequestParser::kBodyPadding readable bytes behind it; otherwise in the query.
  ApiResult<Command> read(Path path, bool post, std::string_view query, std::string_view body);

  // The next item of the BatchCommand that was read last. One that is faulty does not spoil the others.
  ApiResult<Command> next_in_batch();

 private:
  RequestParser bodies_;
  QueryParser queries_;
};

// False: the path tells something about the server itself.
bool is_command(Path path);

}  // namespace turnstile
