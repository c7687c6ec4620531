// What the code behind a gRPC method sees: messages in, messages out, and the status it ends with.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace turnstile::rpc {

// gRPC's own numbers.
enum class Code {
  ok = 0,
  cancelled = 1,
  invalid_argument = 3,
  not_found = 5,
  already_exists = 6,
  resource_exhausted = 8,
  failed_precondition = 9,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
};

struct Status {
  Code code = Code::ok;
  std::string message;
};

// A message to send: some bytes, and more behind them that are not copied on their way to the socket.
struct Message {
  std::string head;
  std::shared_ptr<const char[]> data;
  size_t data_size = 0;
};

// One call under way. Threads: one at a time.
class Call {
 public:
  // Waits until read() would not. False: nothing has come for that long.
  virtual bool wait_to_read(std::chrono::milliseconds time) = 0;
  // The next message of the client's, in place of what `message` held; its memory is used again. False: there
  // is no further one, or the client has gone.
  virtual bool read(std::string& message) = 0;
  // False: the client has gone. Waits while the client takes nothing and much is under way already.
  virtual bool write(Message message) = 0;

 protected:
  ~Call() = default;
};

struct Method {
  // Runs on a thread of the call's own, so it may wait.
  std::function<Status(Call&)> run;
  // May be missing. Runs on the loop when the request, of one message, is complete; it must not wait for
  // anything. Nothing returned: it would have to and has written nothing; `run` does it instead.
  std::function<std::optional<Status>(const std::string& request, Call&)> run_at_once = nullptr;
};

// By path: "/package.Service/Method".
using Methods = std::map<std::string, Method, std::less<>>;

}  // namespace turnstile::rpc
