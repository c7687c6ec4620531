#include "base/file_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace turnstile {
namespace {

TEST(FileText, IsAllOfAFileHoweverLong) {
  const std::string path = testing::TempDir() + "/turnstile_file_text_test";
  for (const size_t size : {0, 1, 4096, 10'000}) {
    const std::string text(size, '\0');
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(file_text(path), text) << size;
  }
  std::remove(path.c_str());
}

TEST(FileText, WhatCannotBeReadHasNoneAndThrowsNothing) {
  EXPECT_EQ(file_text("/nowhere/at/all"), std::nullopt);
  EXPECT_EQ(file_text(testing::TempDir()), std::nullopt);
}

}  // namespace
}  // namespace turnstile
