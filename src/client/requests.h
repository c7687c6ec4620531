// What the client says, as bytes: JSON bodies and query strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "client/timing.h"
#include "turnstile/hold.h"
#include "turnstile/lock_client.h"

namespace turnstile::client {

// Who asks for what: one requester in one lane.
struct Requester {
  std::string operation, resource, node_id, request_id;
};

// A JSON object that is written field by field. A text that is no valid UTF-8 is written as it is: the server
// checks and says so.
class JsonObject {
 public:
  // `texts`: about how many bytes its values have.
  explicit JsonObject(size_t texts = 0) {
    out_.reserve(texts + kNames);
    out_ += '{';
  }
  JsonObject& text(std::string_view name, std::string_view value);
  JsonObject& text_if(std::string_view name, std::string_view value) {
    return value.empty() ? *this : text(name, value);
  }
  JsonObject& number(std::string_view name, uint64_t value);
  JsonObject& boolean(std::string_view name, bool value);
  std::string take();

 private:
  void name(std::string_view name);
  static constexpr size_t kNames = 160;  // names, numbers and what stands between them
  std::string out_;
};

// "path?name=value&…", percent-encoded; empty values are left out.
class Target {
 public:
  explicit Target(std::string_view path) : out_(path) {}
  Target& with(std::string_view name, std::string_view value);
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  char next_ = '?';
};

// Why no server would take it; of many in one body, one such would cost the others their answers.
std::optional<std::string> fault_of(const LockRequest& request);
std::optional<std::string> fault_of_name(std::string_view resource);

struct LockBody {
  const Requester& who;
  const LockRequest& request;
  Milliseconds wait{0};
};

// Each is the body of the call of its name. `call` (as in "lock"): as an element of a batch.
std::string lock_body(const LockBody& lock, std::string_view call = {});
// An error is told as far as the server takes it; a result is told as it is, or not at all.
std::string unlock_body(const Requester& who, uint64_t token, const WorkResult& result,
                        std::string_view call = {});
struct Progress {
  uint64_t done = 0, total = 0;
};
std::string renew_body(const Requester& who, uint64_t token, Milliseconds lease,
                       const std::optional<Progress>& progress, std::string_view call = {});
std::string cancel_body(const Requester& who, std::string_view call = {});
std::string reference_body(std::string_view resource, std::string_view node, std::string_view call = {});

// Many elements as the fewest bodies of /batch that keep within its limits.
class BatchBodies {
 public:
  void add(std::string_view element);
  struct Body {
    std::string text;
    size_t count = 0;
  };
  std::vector<Body> take();

 private:
  std::vector<Body> bodies_;
};

}  // namespace turnstile::client
