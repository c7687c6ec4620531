#include "access/may.h"

#include <fmt/format.h>

namespace turnstile::access {
namespace {

// The rows of the table in docs/semantics.md (S52), one overload for each command.
struct Table {
  const Principal& who;

  // Works: a client for its nodes, in its prefixes; an admin.
  Barrier works(NodeId node, ResourceId resource) const {
    if (who.role == Role::admin) return Barrier::none;
    if (who.role != Role::client) return Barrier::role;
    if (!who.speaks_for(node)) return Barrier::node;
    return who.touches(resource) ? Barrier::none : Barrier::resource;
  }
  // Looks: everybody in his prefixes.
  Barrier looks(ResourceId resource) const {
    return who.role == Role::admin || who.touches(resource) ? Barrier::none : Barrier::resource;
  }
  // With a node it claims, or is a bond, in that node's name; without, it only looks.
  Barrier works_or_looks(NodeId node, ResourceId resource) const {
    return node.empty() ? looks(resource) : works(node, resource);
  }
  Barrier admin_only() const { return who.role == Role::admin ? Barrier::none : Barrier::role; }

  Barrier operator()(const LockRequest& c) const {
    return works(c.command.who.node, c.command.lane.resource);
  }
  Barrier operator()(const UnlockCommand& c) const { return works(c.who.node, c.lane.resource); }
  Barrier operator()(const RenewCommand& c) const { return works(c.who.node, c.lane.resource); }
  Barrier operator()(const CancelCommand& c) const { return works(c.who.node, c.lane.resource); }
  Barrier operator()(const AddReferenceCommand& c) const { return works(c.node, c.resource); }
  Barrier operator()(const ReleaseReferenceCommand& c) const { return works(c.node, c.resource); }
  Barrier operator()(const StatusCommand& c) const { return works_or_looks(c.who.node, c.lane.resource); }
  Barrier operator()(const SubscribeCommand& c) const { return works_or_looks(c.who.node, c.lane.resource); }
  Barrier operator()(const ReferencesCommand& c) const { return looks(c.resource); }
  // Left out of the answer is what is not in the caller's prefixes.
  Barrier operator()(const ListCommand&) const { return Barrier::none; }
  Barrier operator()(const EventsRequest&) const { return Barrier::none; }
  Barrier operator()(const ReleaseNodeCommand& c) const {
    if (who.role == Role::client) return who.speaks_for(c.node) ? Barrier::none : Barrier::node;
    return admin_only();
  }
  // Its items are asked about one by one.
  Barrier operator()(const BatchCommand&) const {
    return who.role == Role::read ? Barrier::role : Barrier::none;
  }
  Barrier operator()(const BreakCommand&) const { return admin_only(); }
  Barrier operator()(const ForgetCommand&) const { return admin_only(); }
};

struct About {
  static Subject of(const LaneName& lane, const Requester& by = {}) {
    return {lane.resource.text, by.node.text};
  }

  Subject operator()(const LockRequest& c) const { return of(c.command.lane, c.command.who); }
  Subject operator()(const UnlockCommand& c) const { return of(c.lane, c.who); }
  Subject operator()(const RenewCommand& c) const { return of(c.lane, c.who); }
  Subject operator()(const CancelCommand& c) const { return of(c.lane, c.who); }
  Subject operator()(const StatusCommand& c) const { return of(c.lane, c.who); }
  Subject operator()(const SubscribeCommand& c) const { return of(c.lane, c.who); }
  Subject operator()(const BreakCommand& c) const { return of(c.lane); }
  Subject operator()(const ForgetCommand& c) const { return of(c.lane); }
  Subject operator()(const ReferenceCommand& c) const { return {c.resource.text, c.node.text}; }
  Subject operator()(const ReferencesCommand& c) const { return {c.resource.text, {}}; }
  Subject operator()(const ReleaseNodeCommand& c) const { return {{}, c.node.text}; }
  Subject operator()(const ListCommand& c) const { return {c.prefix, {}}; }
  Subject operator()(const EventsRequest& c) const { return {c.prefix, {}}; }
  Subject operator()(const BatchCommand&) const { return {}; }
};

}  // namespace

std::string_view name_of(Role role) {
  switch (role) {
    case Role::client:
      return "client";
    case Role::read:
      return "read";
    case Role::admin:
      return "admin";
  }
  return "";
}

Barrier may(const Principal& who, const Command& command) { return std::visit(Table{who}, command); }

Barrier may(const Principal& who, Path path) {
  switch (path) {
    case Path::lock:
    case Path::unlock:
    case Path::renew:
    case Path::cancel:
    case Path::batch:
    case Path::lock_status:
    case Path::locks:
    case Path::lock_subscribe:
    case Path::subscribe:
    case Path::events:
    case Path::refs:
    case Path::refs_add:
    case Path::refs_release:
    case Path::refs_release_node:
    case Path::admin_break:
    case Path::admin_forget:
      return Barrier::none;  // the command decides
    case Path::metrics:
    case Path::summary:
    case Path::servers:
      return who.role == Role::client ? Barrier::role : Barrier::none;
    case Path::version:  // a client is told less of it
    case Path::healthz:
    case Path::readyz:
    case Path::openapi:
    case Path::page:
    case Path::root:
      return Barrier::none;
  }
  return Barrier::role;
}

bool is_for_everybody(Path path, bool open_metrics) {
  switch (path) {
    case Path::healthz:
    case Path::readyz:
    case Path::openapi:
    case Path::page:
    case Path::root:
      return true;
    case Path::metrics:
    case Path::version:
      return open_metrics;
    default:
      return false;
  }
}

Subject subject_of(const Command& command) { return std::visit(About{}, command); }

std::string explain(Barrier barrier, const Principal& who, const Subject& subject) {
  switch (barrier) {
    case Barrier::node:
      return fmt::format(
          "'{}' may not act for the node '{}': use that node's own credential, or ask the server's "
          "administrator to add the node to its `nodes`",
          who.name, subject.node);
    case Barrier::resource:
      return fmt::format(
          "'{}' may not use the resource '{}': ask the server's administrator to add a prefix of it to its "
          "`resources`",
          who.name, subject.resource);
    default:
      return fmt::format("'{}' has the role {}, which may not do that: use a credential with another role",
                         who.name, name_of(who.role));
  }
}

}  // namespace turnstile::access
