// Digests and refs as containerd sends them, and as an attacker would.
#include "content/digest.h"

#include <gtest/gtest.h>

#include "content/test_directory.h"

namespace turnstile::content {
namespace {

const std::string k64(64, 'a');

TEST(Digest, IsAnAlgorithmWeKnowAndAllOfItsHexDigits) {
  for (const std::string& good : {"sha256:" + k64, "sha512:" + k64 + k64}) {
    const Outcome<Digest> digest = Digest::parse(good);
    ASSERT_TRUE(digest);
    EXPECT_EQ(digest->text(), good);
    EXPECT_EQ(digest->hex(), good.substr(7));
  }
}

TEST(Digest, IsNothingElseWhateverAPathCouldBeMadeOf) {
  const std::string nul = "sha256:" + std::string(63, 'a') + '\0';
  for (const std::string& bad : {std::string(),
                                 std::string("sha256"),
                                 std::string("sha256:"),
                                 "sha256:" + k64.substr(1),
                                 "sha256:" + k64 + "a",
                                 "sha512:" + k64,
                                 "sha384:" + k64 + k64.substr(32),
                                 "md5:" + k64.substr(32),
                                 "SHA256:" + k64,
                                 "sha256:" + std::string(64, 'A'),
                                 "sha256:" + std::string(63, 'a') + "g",
                                 "sha256:" + std::string(61, 'a') + "/..",
                                 "sha256:../../" + k64.substr(6),
                                 "sha256/" + k64,
                                 "/" + k64,
                                 "../sha256:" + k64,
                                 " sha256:" + k64,
                                 "sha256:" + k64 + "\n",
                                 nul,
                                 std::string(1 << 20, 'a')}) {
    const Outcome<Digest> digest = Digest::parse(bad);
    ASSERT_FALSE(digest) << bad;
    EXPECT_EQ(digest.error().code, ErrorClass::invalid_argument);
    EXPECT_LT(digest.error().message.size(), 400u);
  }
}

TEST(Ref, CarriesItsDigestAtTheEnd) {
  for (const std::string before : {"default/1/layer-", "k8s.io/12/manifest-", "default/3/config-", "layer-",
                                   "default/7/index-registry.example/img@"}) {
    const std::optional<Digest> digest = digest_in_ref(before + "sha256:" + k64);
    ASSERT_TRUE(digest) << before;
    EXPECT_EQ(digest->text(), "sha256:" + k64);
  }
  EXPECT_EQ(digest_in_ref("default/1/layer-sha512:" + k64 + k64)->algorithm(), Algorithm::sha512);
}

TEST(Ref, OfAnotherKindHasNoDigest) {
  for (const std::string& ref :
       {std::string(), std::string("c1"), "sha256:" + k64, "xsha256:" + k64, "layer-sha256:" + k64 + "x",
        "layer-sha256:" + k64.substr(1), "layer-sha256:../" + k64.substr(3), "layer-md5:" + k64})
    EXPECT_FALSE(digest_in_ref(ref)) << ref;
}

TEST(Hasher, TellsTheDigestSoFarAndGoesOn) {
  Hasher hasher(Algorithm::sha256);
  EXPECT_EQ(hasher.digest().text(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  hasher.update("ab");
  EXPECT_EQ(hasher.digest(), digest_of("ab"));
  hasher.update("c");
  EXPECT_EQ(hasher.digest().text(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  hasher.reset();
  EXPECT_EQ(hasher.digest(), digest_of(""));
}

}  // namespace
}  // namespace turnstile::content
