// What the bytes look like: requests and replies of each protocol the generator speaks.
//
// Not here: when to send what, and what a refusal means. The modes decide that.
#pragma once

#include <strings.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

enum class Call { lock, unlock, ping };

struct Reply {
  bool lost = false;      // the connection broke before the reply came
  int status = 0;         // of HTTP; Redis replies are mapped: done 200, refused 409
  std::string_view body;  // valid only during the callback
};

class Wire {
 public:
  virtual ~Wire() = default;

  // Each appends one request. `wait_ms` > 0 asks the server to hold the answer until granted.
  virtual void lock(std::string& out, std::string_view resource, std::string_view node,
                    int wait_ms) const = 0;
  virtual void unlock(std::string& out, std::string_view resource, std::string_view node) const = 0;
  // Frees it, and says that the work failed, where the protocol can.
  virtual void fail(std::string& out, std::string_view resource, std::string_view node) const {
    unlock(out, resource, node);
  }
  virtual void ping(std::string& out) const = 0;

  // Appends the same call for several resources; returns how many replies will come.
  virtual int batch(std::string& out, Call call, const std::vector<std::string>& resources,
                    std::string_view node) const = 0;

  // Takes one reply off the front of `input`; returns its length, or 0 if it is not complete yet.
  virtual size_t parse(std::string_view input, Reply& reply) const = 0;

  // How many of the `asked` calls that this reply answers were successful.
  virtual int successes(const Reply& reply, Call call, int asked) const = 0;
};

// How often `"name": true` occurs in a JSON text, with or without space after the colon.
inline int count_true(std::string_view json, std::string_view name) {
  const std::string quoted = '"' + std::string(name) + '"';
  int count = 0;
  for (size_t at = json.find(quoted); at != json.npos; at = json.find(quoted, at + 1)) {
    size_t value = json.find_first_not_of(" :", at + quoted.size());
    if (value != json.npos && json.substr(value, 4) == "true") ++count;
  }
  return count;
}

// POST /lock, /unlock and /batch with JSON bodies.
class HttpWire : public Wire {
 public:
  explicit HttpWire(std::string type) : type_(std::move(type)) {}

  void lock(std::string& out, std::string_view resource, std::string_view node, int wait_ms) const override {
    std::string body = "{";
    fields(body, resource, node);
    if (wait_ms > 0) body.append(",\"wait_ms\":").append(std::to_string(wait_ms));
    post(out, "/lock", body.append("}"));
  }

  void unlock(std::string& out, std::string_view resource, std::string_view node) const override {
    std::string body = "{";
    fields(body, resource, node);
    post(out, "/unlock", body.append("}"));
  }

  void fail(std::string& out, std::string_view resource, std::string_view node) const override {
    std::string body = "{";
    fields(body, resource, node);
    post(out, "/unlock", body.append(",\"error\":\"it did not work\"}"));
  }

  void ping(std::string& out) const override {
    out.append("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }

  int batch(std::string& out, Call call, const std::vector<std::string>& resources,
            std::string_view node) const override {
    std::string body = "{\"requests\":[";
    for (const std::string& resource : resources) {
      if (body.back() == '}') body += ',';
      body.append(call == Call::lock ? "{\"call\":\"lock\"," : "{\"call\":\"unlock\",");
      fields(body, resource, node);
      body += '}';
    }
    post(out, "/batch", body.append("]}"));
    return 1;
  }

  size_t parse(std::string_view input, Reply& reply) const override {
    size_t head = input.find("\r\n\r\n");
    if (head == input.npos) return 0;
    size_t body = head + 4, length = content_length(input.substr(0, head));
    if (input.size() < body + length) return 0;
    reply.status = std::atoi(std::string(input.substr(input.find(' ') + 1, 3)).c_str());
    reply.body = input.substr(body, length);
    return body + length;
  }

  int successes(const Reply& reply, Call call, int) const override {
    if (call == Call::ping) return reply.status == 200;
    if (reply.status != 200) return 0;
    return count_true(reply.body, call == Call::lock ? "acquired" : "released");
  }

 private:
  void fields(std::string& body, std::string_view resource, std::string_view node) const {
    body.append("\"type\":\"").append(type_).append("\",\"resource_id\":\"").append(resource);
    body.append("\",\"node_id\":\"").append(node).append("\"");
  }

  static void post(std::string& out, std::string_view path, std::string_view body) {
    out.append("POST ").append(path).append(" HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    out.append("Content-Type: application/json\r\nContent-Length: ");
    out.append(std::to_string(body.size())).append("\r\n\r\n").append(body);
  }

  static size_t content_length(std::string_view head) {
    constexpr std::string_view kName = "\r\ncontent-length:";
    for (size_t at = head.find("\r\n"); at != head.npos; at = head.find("\r\n", at + 2)) {
      std::string_view line = head.substr(at, kName.size());
      if (line.size() == kName.size() && strncasecmp(line.data(), kName.data(), kName.size()) == 0)
        return std::strtoul(std::string(head.substr(at + kName.size(), 12)).c_str(), nullptr, 10);
    }
    throw std::runtime_error("HTTP answer without Content-Length: " + std::string(head));
  }

  std::string type_;
};

// The floor: the same requests to a web server that does no locking. Any 200 is a success.
class FloorWire : public HttpWire {
 public:
  using HttpWire::HttpWire;
  int successes(const Reply& reply, Call, int asked) const override {
    return reply.status == 200 ? asked : 0;
  }
};

// The usual Redis lock: SET key token NX PX, and a script that deletes the key if the token matches.
class RedisWire : public Wire {
 public:
  static constexpr std::string_view kReleaseScript =
      "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) "
      "else return 0 end";

  RedisWire(std::string script_hash, int lease_ms)
      : script_hash_(std::move(script_hash)), lease_ms_(std::to_string(lease_ms)) {}

  static std::string command(const std::vector<std::string_view>& words) {
    std::string out = "*" + std::to_string(words.size()) + "\r\n";
    for (std::string_view word : words)
      out.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
    return out;
  }

  void lock(std::string& out, std::string_view resource, std::string_view node, int) const override {
    out += command({"SET", resource, node, "NX", "PX", lease_ms_});
  }
  void unlock(std::string& out, std::string_view resource, std::string_view node) const override {
    out += command({"EVALSHA", script_hash_, "1", resource, node});
  }
  void ping(std::string& out) const override { out += command({"PING"}); }

  int batch(std::string& out, Call call, const std::vector<std::string>& resources,
            std::string_view node) const override {
    for (const std::string& resource : resources)
      call == Call::lock ? lock(out, resource, node, 0) : unlock(out, resource, node);
    return int(resources.size());
  }

  // Every reply expected here is one line: +OK, +PONG, :1, :0, $-1 (refused), -ERR.
  size_t parse(std::string_view input, Reply& reply) const override {
    size_t end = input.find("\r\n");
    if (end == input.npos) return 0;
    reply.body = input.substr(0, end);
    bool done = reply.body[0] == '+' || reply.body == ":1";
    reply.status = done ? 200 : reply.body[0] == '-' ? 500 : 409;
    return end + 2;
  }

  int successes(const Reply& reply, Call, int) const override { return reply.status == 200; }

 private:
  std::string script_hash_;
  std::string lease_ms_;
};
