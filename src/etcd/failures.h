// What an error of gRPC's or etcd's means for whoever made the call: the one place that knows their texts.
#pragma once

#include <grpcpp/support/status.h>

#include <optional>
#include <string>
#include <string_view>

#include "etcd/etcd.h"

namespace turnstile::etcd {

// Of a call that failed. `member`: its URL, for the sentence.
CallError call_error(const grpc::Status& status, std::string_view member);

// The member could not be reached, so that nothing was sent to it.
bool is_unreachable(const grpc::Status& status);
// What proves who we are is not taken any more, and the call was not carried out: log in again.
bool wants_login(const grpc::Status& status);
// A member has answered, and does not let this user in or do that: the others will not either. TLS is each
// member's own.
bool is_about_user(const CallError& error);
// Another member may do better: this one is away, has lost the others, or cannot be believed (its
// certificate).
bool is_of_member(Failure failure);

// A sentence if a member of this version lacks what is needed.
std::optional<std::string> too_old(std::string_view version);

}  // namespace turnstile::etcd
