// The table of docs/semantics.md (S52), cell by cell.
#include "access/may.h"

#include <gtest/gtest.h>

#include <map>

namespace turnstile::access {
namespace {

using enum Barrier;

const Principal kClient{
    "node-a", Role::client, {{"node-a", false}, {"ci-", true}}, {"sha256:", "build/"}, {}};
const Principal kRead{"watcher", Role::read, {}, {}, {}};
const Principal kNarrowRead{"guest", Role::read, {}, {"build/"}, {}};
const Principal kAdmin{"root", Role::admin, {}, {}, {}};

LaneName lane(std::string_view resource) { return {OperationName("pull"), ResourceId(resource)}; }
Requester by(std::string_view node) { return {NodeId(node), {}}; }

// Every call, of this node and resource.
std::map<std::string, Command> calls(std::string_view node, std::string_view resource) {
  LockRequest lock;
  lock.command.lane = lane(resource);
  lock.command.who = by(node);
  UnlockCommand unlock;
  unlock.lane = lane(resource);
  unlock.who = by(node);
  RenewCommand renew;
  renew.lane = lane(resource);
  renew.who = by(node);
  ListCommand list;
  list.prefix = resource;
  ReferencesCommand references;
  references.resource = ResourceId(resource);
  AddReferenceCommand add;
  add.resource = ResourceId(resource);
  add.node = NodeId(node);
  ReleaseReferenceCommand release;
  release.resource = ResourceId(resource);
  release.node = NodeId(node);
  return {
      {"lock", lock},
      {"unlock", unlock},
      {"renew", renew},
      {"cancel", CancelCommand{lane(resource), by(node)}},
      {"refs/add", add},
      {"refs/release", release},
      {"status of a node", StatusCommand{lane(resource), by(node)}},
      {"subscribe of a node", SubscribeCommand{lane(resource), by(node), {}}},
      {"status", StatusCommand{lane(resource), {}}},
      {"subscribe", SubscribeCommand{lane(resource), {}, {}}},
      {"refs", references},
      {"locks", list},
      {"events", EventsRequest{resource, {}}},
      {"refs/release_node", ReleaseNodeCommand{NodeId(node)}},
      {"batch", BatchCommand{1}},
      {"admin/break", BreakCommand{lane(resource), "why"}},
      {"admin/forget", ForgetCommand{lane(resource)}},
  };
}

struct Row {
  std::string call;
  // A client: for its node in its prefix, for another node, in another prefix; and a reader, one of build/
  // who asks for something else, an admin.
  Barrier own, other_node, other_resource, read, narrow_read, admin;
};
const Row kRows[] = {
    {"lock", none, node, resource, role, role, none},
    {"unlock", none, node, resource, role, role, none},
    {"renew", none, node, resource, role, role, none},
    {"cancel", none, node, resource, role, role, none},
    {"refs/add", none, node, resource, role, role, none},
    {"refs/release", none, node, resource, role, role, none},
    {"status of a node", none, node, resource, role, role, none},
    {"subscribe of a node", none, node, resource, role, role, none},
    {"status", none, none, resource, none, resource, none},
    {"subscribe", none, none, resource, none, resource, none},
    {"refs", none, none, resource, none, resource, none},
    {"locks", none, none, none, none, none, none},   // what it may not see is left out
    {"events", none, none, none, none, none, none},  // likewise
    {"refs/release_node", none, node, none, role, role, none},
    {"batch", none, none, none, role, role, none},  // its items are asked about one by one
    {"admin/break", role, role, role, role, role, none},
    {"admin/forget", role, role, role, role, role, none},
};

TEST(May, IsTheTableCellByCell) {
  EXPECT_EQ(std::size(kRows), std::size(calls("", "")));
  EXPECT_GE(std::size(kRows), std::variant_size_v<Command>);
  for (const Row& row : kRows) {
    const Command own = calls("node-a", "sha256:1").at(row.call);
    const Command other_node = calls("node-b", "sha256:1").at(row.call);
    const Command other_resource = calls("node-a", "secret/1").at(row.call);
    EXPECT_EQ(may(kClient, own), row.own) << row.call;
    EXPECT_EQ(may(kClient, other_node), row.other_node) << row.call;
    EXPECT_EQ(may(kClient, other_resource), row.other_resource) << row.call;
    EXPECT_EQ(may(kRead, own), row.read) << row.call;
    EXPECT_EQ(may(kNarrowRead, own), row.narrow_read) << row.call;
    EXPECT_EQ(may(kAdmin, other_resource), row.admin) << row.call;
  }
}

TEST(May, EveryAlternativeOfTheCommandHasARow) {
  std::vector<bool> seen(std::variant_size_v<Command>);
  for (const auto& [name, command] : calls("n", "r")) seen[command.index()] = true;
  for (size_t i = 0; i < seen.size(); ++i)
    EXPECT_TRUE(seen[i]) << "alternative " << i << " of Command is not tested";
}

TEST(May, TellsEachRoleItsPagesOfTheServer) {
  struct Page {
    Path path;
    bool client, read, admin, nobody;
  };
  const Page pages[] = {
      {Path::metrics, false, true, true, false}, {Path::version, true, true, true, false},
      {Path::summary, false, true, true, false}, {Path::servers, false, true, true, false},
      {Path::healthz, true, true, true, true},   {Path::readyz, true, true, true, true},
      {Path::openapi, true, true, true, true},   {Path::root, true, true, true, true},
      {Path::page, true, true, true, true},
  };
  for (const Page& page : pages) {
    EXPECT_EQ(may(kClient, page.path) == none, page.client) << text_of(page.path);
    EXPECT_EQ(may(kRead, page.path) == none, page.read) << text_of(page.path);
    EXPECT_EQ(may(kAdmin, page.path) == none, page.admin) << text_of(page.path);
    EXPECT_EQ(is_for_everybody(page.path, false), page.nobody) << text_of(page.path);
  }
  EXPECT_TRUE(is_for_everybody(Path::metrics, true));
  EXPECT_TRUE(is_for_everybody(Path::version, true));
  EXPECT_FALSE(is_for_everybody(Path::locks, true));
  EXPECT_FALSE(is_for_everybody(Path::admin_break, true));
}

TEST(May, NodesAreNamesOrPrefixes) {
  EXPECT_TRUE(kClient.speaks_for(NodeId("ci-7")));
  EXPECT_TRUE(kClient.speaks_for(NodeId("ci-")));
  EXPECT_FALSE(kClient.speaks_for(NodeId("node-ab")));
  EXPECT_FALSE(kClient.speaks_for(NodeId("CI-7")));
  EXPECT_FALSE(kClient.speaks_for(NodeId("")));
  EXPECT_FALSE(kAdmin.speaks_for(NodeId("node-a")));  // it may, but not as one of its own
}

TEST(May, SaysWhoWasRefusedAndWhatToDo) {
  const Command command = calls("node-b", "sha256:1").at("lock");
  const std::string text = explain(may(kClient, command), kClient, subject_of(command));
  EXPECT_NE(text.find("'node-a'"), text.npos);
  EXPECT_NE(text.find("'node-b'"), text.npos);
  EXPECT_NE(text.find("`nodes`"), text.npos);
  EXPECT_NE(explain(Barrier::resource, kClient, {"x/1", "n"}).find("'x/1'"), text.npos);
  EXPECT_NE(explain(Barrier::role, kRead, {}).find("role read"), text.npos);
}

}  // namespace
}  // namespace turnstile::access
