// The description must not lag behind the API: every path, code and field that exists is in it.
#include "api/openapi.h"

#include <gtest/gtest.h>

#include <string>

#include "api/error.h"
#include "api/fields.h"
#include "api/paths.h"

namespace turnstile {
namespace {

TEST(OpenApi, EveryPathIsDescribedWithItsMethods) {
  const std::string_view text = openapi_yaml();
  EXPECT_TRUE(text.starts_with("openapi: 3.0.3\n"));
  EXPECT_TRUE(text.ends_with("\n")) << "nothing was cut off";
  for (size_t i = 0; i < kPaths; ++i) {
    const Path path = Path(i);
    const std::string name = path == Path::page ? "\"/page/{file}\"" : std::string(text_of(path));
    const size_t at = text.find("\n  " + name + ":\n");
    ASSERT_NE(at, text.npos) << text_of(path);
    const std::string_view entry = text.substr(at + 1, text.find("\n  /", at + 1) - at);
    EXPECT_EQ(entry.contains("\n    get:"), allows(path, kGet)) << text_of(path);
    EXPECT_EQ(entry.contains("\n    post:"), allows(path, kPost)) << text_of(path);
  }
}

TEST(OpenApi, EveryErrorCodeIsDescribed) {
  for (size_t i = 0; i < kErrorCodes; ++i) {
    const std::string code(error_row(ErrorCode(i)).code);
    EXPECT_TRUE(openapi_yaml().contains("- " + code + "\n")) << code;
  }
}

TEST(OpenApi, EveryFieldOfARequestIsDescribed) {
  for (size_t i = 0; i < kFields; ++i) {
    const std::string name(name_of(Field(i)));
    EXPECT_TRUE(openapi_yaml().contains(" " + name + ":") || openapi_yaml().contains("name: " + name + "\n"))
        << name;
  }
}

}  // namespace
}  // namespace turnstile
