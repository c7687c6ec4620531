// What a server writes about itself into etcd, for people who ask who is there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace turnstile {

struct ServerEntry {
  std::string name, url;
  bool leads = false;
  uint64_t number = 0;  // of the log's next key, as far as it has read
  Time since{};
  uint64_t lag = 0;  // batches that it found when it looked last
  bool operator==(const ServerEntry&) const = default;
};
// Lines of text, so that etcdctl shows something readable.
std::string encode(const ServerEntry& entry);
std::optional<ServerEntry> decode_server_entry(std::string_view value);

}  // namespace turnstile
