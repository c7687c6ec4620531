// A call of the API as a value: what every path and method comes down to.
//
// Whoever asks (a single request, an item of a batch, a test's fake server) makes one of these and has it
// carried out in the one place for that (service/carry_out.h). So what is true of every call, such as who may
// make it, is asked once, and of parsed values.
#pragma once

#include <variant>

#include "api/commands.h"

namespace turnstile {

struct AddReferenceCommand : ReferenceCommand {};
struct ReleaseReferenceCommand : ReferenceCommand {};

// All references of one node: many steps, so it is carried out in slices.
struct ReleaseNodeCommand {
  NodeId node;
};

// Its items follow one by one: CommandReader::next_in_batch().
struct BatchCommand {
  size_t count = 0;
};

using Command =
    std::variant<LockRequest, UnlockCommand, RenewCommand, CancelCommand, StatusCommand, BreakCommand,
                 ForgetCommand, ReferencesCommand, AddReferenceCommand, ReleaseReferenceCommand,
                 ReleaseNodeCommand, ListCommand, SubscribeCommand, EventsRequest, BatchCommand>;

// Those that are one step on one resource and are answered when it is done.
template <class T>
inline constexpr bool kIsOneStep =
    std::is_same_v<T, LockRequest> || std::is_same_v<T, UnlockCommand> || std::is_same_v<T, RenewCommand> ||
    std::is_same_v<T, CancelCommand> || std::is_same_v<T, StatusCommand> || std::is_same_v<T, BreakCommand> ||
    std::is_same_v<T, ForgetCommand> || std::is_same_v<T, ReferencesCommand> ||
    std::is_same_v<T, AddReferenceCommand> || std::is_same_v<T, ReleaseReferenceCommand>;
template <class T>
concept OneStep = kIsOneStep<T>;

}  // namespace turnstile
