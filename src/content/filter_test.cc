// containerd's filter language.
#include "content/filter.h"

#include <gtest/gtest.h>

#include <map>

namespace turnstile::content {
namespace {

bool matches(const std::vector<std::string>& filters) {
  const Outcome<Filter> filter = Filter::parse(filters);
  EXPECT_TRUE(filter) << filter.error().message;
  return filter->matches([](std::string_view field, std::string_view key) -> std::optional<std::string_view> {
    if (field == "digest") return "sha256:abc";
    if (field == "size") return "256";
    if (field == "labels" && key == "color") return "red, dark";
    if (field == "labels" && key == "containerd.io/gc.root") return "now";
    if (field == "labels" && key == "a.b") return "dotted";
    return std::nullopt;
  });
}

TEST(Filter, ComparesMatchesAndLooksForPresence) {
  for (const std::string filter :
       {"digest==sha256:abc", "digest", "size==256", "digest!=sha256:abd", "digest~=/^sha256:a/",
        "digest~=abc$", "digest~=|c$|", "labels.color", "labels.color==\"red, dark\"", "labels.a.b==dotted",
        "labels.none!=x", R"(labels."containerd.io/gc.root"==now)", "labels.'containerd.io/gc.root'", "",
        "size~='^2.*'"})
    EXPECT_TRUE(matches({filter})) << filter;
  for (const std::string filter : {"digest==sha256:abd", "digest!=sha256:abc", "labels.none", "unknown",
                                   "digest~=/^abc/", "labels.color==red"})
    EXPECT_FALSE(matches({filter})) << filter;
}

TEST(Filter, CommaMeansBothAndSeveralFiltersMeanOneOfThem) {
  EXPECT_TRUE(matches({"digest,labels.color"}));
  EXPECT_FALSE(matches({"digest,labels.none"}));
  EXPECT_TRUE(matches({"labels.none", "digest"}));
  EXPECT_FALSE(matches({"labels.none", "digest==x"}));
  EXPECT_TRUE(matches({}));
}

TEST(Filter, ThatMakesNoSenseIsAnInvalidArgument) {
  for (const std::string& bad :
       {std::string("=="), std::string("digest="), std::string("digest=x"), std::string("digest=="),
        std::string("digest==a b"), std::string(","), std::string("digest,"), std::string("labels."),
        std::string("digest~=/("), std::string("digest~=/(/"), std::string("digest==\"open"),
        std::string("digest==\"\\q\""), std::string("1digest"), std::string("digest==\0", 9),
        std::string(1 << 17, 'a')}) {
    const Outcome<Filter> filter = Filter::parse(std::vector{bad});
    ASSERT_FALSE(filter) << bad.substr(0, 100);
    EXPECT_EQ(filter.error().code, ErrorClass::invalid_argument);
  }
}

}  // namespace
}  // namespace turnstile::content
