// What can be asked of the engine. All texts are views that must live until the call returns.
//
// Commands are already valid: the api folder has checked lengths, characters and ranges (S1).
#pragma once

#include <optional>
#include <string_view>

#include "engine/types.h"

namespace turnstile {

struct LockCommand {
  LaneName lane;
  Requester who;
  std::optional<Scope> scope;     // else the server's default
  std::optional<Duration> lease;  // S22
  std::optional<bool> monitor;    // S21; absent leaves a hold as it is
  bool dereference = false;       // S19; only operations that clear references look at it
  std::string_view info;          // free text of the requester's, shown to people
  PollId poll = PollId::none;     // set: if it must wait, the answer follows as a Wake with this id (S24)
  BondId bond = BondId::none;     // the connection, which becomes a bond if `monitor` is true
};

struct UnlockCommand {
  LaneName lane;
  Requester who;
  Token token = Token::none;
  bool success = true;
  std::string_view error;
  bool permanent = false;
  // With success alone:
  std::optional<Duration> keep{};  // how long it counts (S38); absent: as the server is set
  std::string_view result{};       // for those who skip (S39)
};

struct RenewCommand {
  LaneName lane;
  Requester who;
  Token token = Token::none;
  std::optional<Duration> lease;
  std::optional<Progress> progress;
};

struct CancelCommand {
  LaneName lane;
  Requester who;
};

struct StatusCommand {
  LaneName lane;
  Requester who;  // an empty node: nobody in particular asks
};

struct BreakCommand {
  LaneName lane;
  std::string_view reason;
  Token token = Token::none;  // given: only this hold
};

// S40: how the lane's work went last is to count no more.
struct ForgetCommand {
  LaneName lane;
};

struct ReferenceCommand {
  ResourceId resource;
  NodeId node;
};

// Which nodes use a resource, in the order of their names, after the cursor.
struct ReferencesCommand {
  ResourceId resource;
  NodeId after;  // empty: from the beginning
  uint32_t limit = 100;
};

// A subscription to a lane. With a requester it is a bond of that requester's (S21).
struct SubscribeCommand {
  LaneName lane;
  Requester who;
  BondId bond = BondId::none;
};

enum class LaneState : uint8_t { idle, held, waiting, completed };
// What people ask for: `active` is held or waiting, `queued` whatever somebody waits for, held or not.
enum class LaneGroup : uint8_t { any, active, queued };
// `queue`: the longest queue first. `since`: the oldest hold first, what is not held last. Lanes that are
// equal in that stand in the order of their names, (resource, operation).
enum class ListOrder : uint8_t { name, queue, since };

// An answer names at most this many nodes or waiters, and says how many there are: a hundred thousand names
// would make an answer of megabytes out of a question of a hundred bytes.
inline constexpr size_t kMostNamed = 100;

// Which lanes to list (S33, S57).
struct ListCommand {
  std::string_view prefix{};    // of the resource id
  std::string_view contains{};  // a part of the resource id
  OperationName operation{};    // empty: all
  std::optional<LaneState> state{};
  LaneGroup group = LaneGroup::any;
  NodeId node{};     // holds it, or is one of the first kMostNamed that wait; empty: whoever
  LaneName after{};  // empty resource: from the beginning; only in the order of names
  uint32_t limit = 100;
  ListOrder order = ListOrder::name;
  bool count = false;           // tell how many match, wherever the page begins and ends
  uint32_t names = kMostNamed;  // so many waiters and nodes of each lane, at most kMostNamed
  Prefixes within{};            // what the caller may see
};

}  // namespace turnstile
