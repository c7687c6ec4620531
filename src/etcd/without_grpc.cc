// In place of the client that speaks gRPC, in a build that has none (TURNSTILE_ETCD=OFF).
#include "etcd/connect.h"

namespace turnstile::etcd {

std::expected<std::unique_ptr<Client>, std::string> connect(const Options&) {
  return std::unexpected("this program was built without etcd (TURNSTILE_ETCD=OFF): take another --store");
}

}  // namespace turnstile::etcd
