// The text of a status as grpc-message carries it.
#pragma once

#include <string>
#include <string_view>

namespace turnstile::rpc {

// Printable ASCII, all else escaped as in a URL. A long text is cut: clients take few KiB of headers (gRPC's
// C++ library 8), and nghttp2 sends none at all above 64 KiB.
std::string status_text(std::string_view text);

}  // namespace turnstile::rpc
