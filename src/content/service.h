// containerd.services.content.v1.Content: its messages to calls of the store, and back; nothing else.
#pragma once

#include "content/content_store.h"
#include "rpc/call.h"

namespace turnstile::content {

// Error classes become gRPC's status codes here and nowhere else.
rpc::Status to_status(const ContentError& error);

// `store` must outlive them.
// `stalled_after`: so long containerd may send nothing of a blob before other nodes may write it; 0: for
// ever.
rpc::Methods content_methods(ContentStore& store, std::chrono::milliseconds stalled_after);

}  // namespace turnstile::content
