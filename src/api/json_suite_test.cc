// The public JSON conformance files (test/data/json) through our parser: y_* are JSON, n_* are not, i_* may
// be either but must not crash. Each is put where a request has an unknown field, which our rules promise to
// check.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "api/test_body.h"

namespace turnstile {
namespace {

bool accepted(std::string_view value) {
  RequestParser parser;
  const Body body(R"({"type":"t","resource_id":"r","node_id":"n","unknown":)" + std::string(value) + "}");
  return parser.parse_lock(body.view()).has_value();
}

TEST(JsonSuite, EveryValidTextIsTakenAndEveryInvalidOneRefused) {
  size_t valid = 0, wrong = 0, either = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TURNSTILE_TEST_DATA "/json")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const std::string name = entry.path().filename();
    // As a whole body, too: only an object may be one, so that for the others it is enough not to crash.
    const Body alone(text);
    RequestParser parser;
    EXPECT_FALSE(parser.parse_batch(alone.view()).has_value()) << name;
    switch (name[0]) {
      case 'y':
        ++valid;
        EXPECT_TRUE(accepted(text)) << name;
        break;
      case 'n':
        ++wrong;
        EXPECT_FALSE(accepted(text)) << name;
        break;
      default:
        ++either;
        accepted(text);
    }
  }
  EXPECT_GT(valid, 90u);
  EXPECT_GT(wrong, 180u);
  EXPECT_GT(either, 30u);
}

TEST(JsonSuite, DeepNestingIsRefusedAndDoesNotCrash) {
  EXPECT_FALSE(accepted(std::string(100'000, '[')));
  EXPECT_FALSE(accepted(std::string(100'000, '[') + std::string(100'000, ']')));
  std::string objects;
  for (int i = 0; i < 50'000; ++i) objects += "[{\"\":";
  EXPECT_FALSE(accepted(objects));
  RequestParser parser;
  EXPECT_FALSE(parser.parse_batch(Body(std::string(100'000, '[')).view()));
  EXPECT_FALSE(parser.parse_batch(Body(objects).view()));
  EXPECT_TRUE(accepted(std::string(500, '[') + std::string(500, ']')));
}

}  // namespace
}  // namespace turnstile
