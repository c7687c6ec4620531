// File headers: which versions of the format are read.
#include "journal/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "journal/wire.h"

namespace turnstile {
namespace {

using ::testing::HasSubstr;

// A header that is right in all but its version.
std::string header_of_version(uint32_t version) {
  std::string bytes = make_file_header(FileKind::log, 7);
  wire::put_fixed(bytes.data() + 8, version);
  wire::put_fixed(bytes.data() + 24, xxh3_64(std::string_view(bytes).substr(0, 24)));
  return bytes;
}

TEST(FileHeader, EveryVersionSinceTheFirstIsRead) {
  for (uint32_t version = 1; version <= kFormatVersion; ++version)
    EXPECT_FALSE(fault_in_file_header(header_of_version(version), FileKind::log, 7)) << version;
  EXPECT_EQ(make_file_header(FileKind::log, 7), header_of_version(3)) << "and the latest is written";
}

TEST(FileHeader, AnotherVersionIsRefusedByItsNumber) {
  for (const uint32_t version : {0u, kFormatVersion + 1}) {
    const auto fault = fault_in_file_header(header_of_version(version), FileKind::log, 7);
    ASSERT_TRUE(fault);
    EXPECT_THAT(*fault, HasSubstr("format version " + std::to_string(version)));
  }
}

}  // namespace
}  // namespace turnstile
