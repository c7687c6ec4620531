// What the tables of framing cases share: bytes as a connection would feed them, and what the reader made of
// them.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "http/request_reader.h"

namespace turnstile::http {

// Feeds `bytes` in pieces, the first of `first` bytes, and tells in a line for each request or refusal what
// was seen: "METHOD path?query body" or the status.
inline std::vector<std::string> read_in_pieces(std::string_view bytes, size_t first, size_t piece,
                                               const Limits& limits = {}) {
  std::vector<std::string> seen;
  InBuffer in;
  RequestReader reader;
  const auto take_all = [&] {
    Incoming incoming;
    for (;;) {
      switch (reader.next(in, limits, incoming)) {
        case RequestReader::Result::incomplete:
          return true;
        case RequestReader::Result::refused:
          seen.push_back(std::to_string(incoming.status));
          return false;
        case RequestReader::Result::complete:
          const Request& request = incoming.request;
          seen.push_back(std::string(request.method_text) + " " + std::string(request.path) + "?" +
                         std::string(request.query) + " " + std::string(request.body));
          reader.finish(in);
      }
    }
  };
  for (size_t size = first; !bytes.empty(); size = piece) {
    std::string_view part = bytes.substr(0, size);
    bytes.remove_prefix(part.size());
    while (!part.empty()) {
      reader.compact(in);
      in.prepare(reader.wanted(limits));
      const size_t count = std::min(part.size(), in.room());
      std::memcpy(in.tail(), part.data(), count);
      in.commit(count);
      part.remove_prefix(count);
      if (!take_all()) return seen;
    }
  }
  return seen;
}

inline std::vector<std::string> read_at_once(std::string_view bytes, const Limits& limits = {}) {
  return read_in_pieces(bytes, bytes.size(), bytes.size(), limits);
}

// One framing and what it must be read as. The name is that of the test.
struct FramingCase {
  std::string name, bytes;
  std::vector<std::string> expected;
};
using Cases = std::vector<FramingCase>;
inline const std::vector<std::string> kRefused{"400"};
inline void PrintTo(const FramingCase& each, std::ostream* out) {
  *out << testing::PrintToString(each.bytes);
}

class FramingTest : public testing::TestWithParam<FramingCase> {
 protected:
  void expect_the_same_in_all_pieces() const {
    const auto& [name, bytes, expected] = GetParam();
    EXPECT_EQ(read_at_once(bytes), expected);
    for (size_t split = 1; split < bytes.size(); ++split)
      EXPECT_EQ(read_in_pieces(bytes, split, bytes.size()), expected) << "split at " << split;
    for (size_t piece = 1; piece <= 7; ++piece)
      EXPECT_EQ(read_in_pieces(bytes, piece, piece), expected) << "pieces of " << piece;
  }
};

inline std::string framing_case_name(const testing::TestParamInfo<FramingCase>& info) {
  return info.param.name;
}

}  // namespace turnstile::http
