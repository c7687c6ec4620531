// What the tests of this folder share: bodies with the padding that the parser needs, and answers read back.
#pragma once

#include <gtest/gtest.h>
#include <simdjson.h>

#include <string>
#include <string_view>

#include "api/request_parser.h"

namespace turnstile {

// A body in a block of its own, so that ASan sees a read behind the padding. The padding is rubbish on
// purpose.
class Body {
 public:
  explicit Body(std::string_view text) : block_(text), size_(text.size()) {
    block_.append(RequestParser::kBodyPadding, '}');
  }
  std::string_view view() const { return std::string_view(block_).substr(0, size_); }

 private:
  std::string block_;
  size_t size_;
};

// A JSON text that was written, parsed again. Fails the test if it is no JSON.
class Parsed {
 public:
  explicit Parsed(const std::string& text) {
    EXPECT_EQ(parser_.parse(text).get(root_), simdjson::SUCCESS) << text;
  }

  // At a JSON pointer such as "/holder/node_id".
  std::string text(std::string_view at) const {
    std::string_view found;
    EXPECT_EQ(root_.at_pointer(at).get(found), simdjson::SUCCESS) << at;
    return std::string(found);
  }
  uint64_t number(std::string_view at) const {
    uint64_t found = UINT64_MAX;
    EXPECT_EQ(root_.at_pointer(at).get(found), simdjson::SUCCESS) << at;
    return found;
  }
  bool truth(std::string_view at) const {
    bool found = false;
    EXPECT_EQ(root_.at_pointer(at).get(found), simdjson::SUCCESS) << at;
    return found;
  }
  bool has(std::string_view at) const { return root_.at_pointer(at).error() == simdjson::SUCCESS; }

 private:
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
};

}  // namespace turnstile
