#include "etcd/etcd.h"

namespace turnstile::etcd {

// The first text behind all that begin with it: its last byte that can grow is one greater.
std::string prefix_end(std::string prefix) {
  while (!prefix.empty() && prefix.back() == char(0xff)) prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');  // etcd's word for "to the end"
  ++prefix.back();
  return prefix;
}

}  // namespace turnstile::etcd
