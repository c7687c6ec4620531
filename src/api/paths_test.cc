#include "api/paths.h"

#include <gtest/gtest.h>

#include <string>

namespace turnstile {
namespace {

TEST(Paths, EveryPathIsFoundByItsText) {
  for (size_t i = 0; i < kPaths; ++i) EXPECT_EQ(find_path(text_of(Path(i))), Path(i)) << text_of(Path(i));
  EXPECT_EQ(find_path("/lock"), Path::lock);
  EXPECT_EQ(find_path("/refs/release_node"), Path::refs_release_node);
  EXPECT_EQ(find_path("/"), Path::root);
}

TEST(Paths, AnythingElseIsUnknown) {
  for (const std::string& path :
       {std::string(), std::string("lock"), std::string("/lock/"), std::string("/Lock"),
        std::string("/locksmith"), std::string("//"), std::string("/lock%2Fstatus"), std::string("/status"),
        std::string(5000, '/')})
    EXPECT_FALSE(find_path(path)) << path;
}

TEST(Paths, EachPathTakesItsMethodsAndNamesThem) {
  for (const Path path :
       {Path::lock, Path::unlock, Path::renew, Path::cancel, Path::batch, Path::refs_add, Path::refs_release,
        Path::refs_release_node, Path::admin_break, Path::admin_forget}) {
    EXPECT_TRUE(allows(path, kPost) && !allows(path, kGet) && !allows(path, kHead)) << text_of(path);
    EXPECT_EQ(allow_header(path), "Allow: POST, OPTIONS\r\n");
  }
  for (const Path path : {Path::lock_subscribe, Path::subscribe, Path::events}) {
    EXPECT_TRUE(allows(path, kGet) && !allows(path, kPost) && !allows(path, kHead)) << text_of(path);
    EXPECT_EQ(allow_header(path), "Allow: GET, OPTIONS\r\n");
  }
  for (const Path path : {Path::locks, Path::refs, Path::healthz, Path::readyz, Path::metrics, Path::version,
                          Path::openapi, Path::root}) {
    EXPECT_TRUE(allows(path, kGet) && allows(path, kHead) && !allows(path, kPost)) << text_of(path);
    EXPECT_EQ(allow_header(path), "Allow: GET, HEAD, OPTIONS\r\n");
  }
  for (const PathMethod method : {kGet, kHead, kPost}) EXPECT_TRUE(allows(Path::lock_status, method));
  EXPECT_EQ(allow_header(Path::lock_status), "Allow: GET, HEAD, POST, OPTIONS\r\n");
}

TEST(Paths, OptionsNamesTheMethodsOfAPathOrOfTheWholeServer) {
  EXPECT_EQ(options_header("*"), "Allow: GET, HEAD, POST, OPTIONS\r\n");
  EXPECT_EQ(options_header("/lock"), allow_header(Path::lock));
  EXPECT_EQ(options_header("/nothing"), "");
}

}  // namespace
}  // namespace turnstile
