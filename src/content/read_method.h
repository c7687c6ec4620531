// The Read call, which decides how fast containerd unpacks: 32 KiB at a time, one call each.
//
// What lies in the kernel's memory is answered by the loop itself, without a change of threads, and goes from
// the file into the message that is sent without another copy.
#pragma once

#include "content/content_store.h"
#include "rpc/call.h"

namespace turnstile::content {

// `store` must outlive it.
rpc::Method read_method(ContentStore& store);

}  // namespace turnstile::content
