// Connections that somebody lives by (S21), with a real server around them.
#include <gtest/gtest.h>

#include "http/test_client.h"
#include "server/app.h"

namespace turnstile {
namespace {

using http::Client;
using http::post;

std::string lock(const std::string& node, const std::string& more = {}) {
  return post("/lock", R"({"type":"own","resource_id":"r","node_id":")" + node + "\"" + more + "}");
}
std::string unlock(const std::string& node, const std::string& more = {}) {
  return post("/unlock", R"({"type":"own","resource_id":"r","node_id":")" + node + "\"" + more + "}");
}
std::string token_in(const std::string& body) {
  const size_t at = body.find("\"token\":");
  return at == body.npos ? "" : body.substr(at, body.find(',', at) - at);
}

class BondsTest : public ::testing::Test {
 protected:
  BondsTest() {
    Settings settings;
    settings.listen = {"127.0.0.1:0"};
    settings.hosts = {"test"};  // what the test client calls it
    settings.store = "memory";
    settings.threads = 2;
    settings.engine.bond_grace = std::chrono::milliseconds(20);
    app_ = std::make_unique<App>(settings);
    EXPECT_TRUE(app_->start([](const Error&) {}));
  }
  std::string ask(Client& client, const std::string& request) {
    client.send(request);
    const auto answer = client.receive();
    return answer ? answer->body : "no answer";
  }
  std::unique_ptr<Client> connect() { return std::make_unique<Client>(app_->addresses().front()); }

  std::unique_ptr<App> app_;
};

// The connection was no bond any more for the server, and still one for the rules: the hold never ended.
TEST_F(BondsTest, S15_ARepeatedUnlockTakesNoBondFromAWaiterOfTheSameName) {
  auto a = connect(), b = connect(), c = connect();
  const std::string token = token_in(ask(*a, lock("a")));
  EXPECT_NE(ask(*a, unlock("a", "," + token)).find("released"), std::string::npos);
  EXPECT_NE(ask(*b, lock("b")).find("acquired\":true"), std::string::npos);
  EXPECT_NE(ask(*a, lock("a", R"(,"monitor":true)")).find("queued"), std::string::npos);
  EXPECT_NE(ask(*a, unlock("a", "," + token)).find("already\":true"), std::string::npos);
  EXPECT_NE(ask(*b, unlock("b")).find("next\":\"a\""), std::string::npos);
  a.reset();
  EXPECT_NE(ask(*c, lock("c", R"(,"wait_ms":30000)")).find("acquired\":true"), std::string::npos);
}

TEST_F(BondsTest, S8_AnUnlockByTokenTakesNoBondFromAnotherRequestOfTheNode) {
  auto a = connect(), c = connect();
  const std::string token = token_in(ask(*a, lock("a", R"(,"request_id":"1")")));
  EXPECT_NE(ask(*a, lock("a", R"(,"request_id":"2","monitor":true)")).find("queued"), std::string::npos);
  EXPECT_NE(ask(*a, unlock("a", R"(,"request_id":"2",)" + token)).find("next\":\"a\""), std::string::npos);
  a.reset();
  EXPECT_NE(ask(*c, lock("c", R"(,"wait_ms":30000)")).find("acquired\":true"), std::string::npos);
}

}  // namespace
}  // namespace turnstile
