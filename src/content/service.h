// containerd.services.content.v1.Content: its messages to calls of the store, and back; nothing else.
#pragma once

#include "content/content_store.h"
#include "rpc/call.h"

namespace turnstile::content {

// Error classes become gRPC's status codes here and nowhere else.
rpc::Status to_status(const ContentError& error);

// `store` must outlive them.
rpc::Methods content_methods(ContentStore& store);

}  // namespace turnstile::content
