// One record as bytes. The same bytes are used by every journal that keeps records.
//
//   kind u8 | fields u16 | the fields whose bit is set, in the order of the bits
//
// An error that is the same as that of the last record with one, in the same frame, is only a bit, and such a
// result is an empty text: a hundred thousand endings with one error or result of 4 KiB must not make 400 MB.
//
// A field that has its default value takes no room, whatever the kind, so that the codec does not have to
// know which kinds use which fields and cannot lose one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/effects.h"

namespace turnstile {

// Where the last error and the last result of a frame lie in the bytes that are being written. Anew for each
// frame.
struct WrittenTexts {
  struct Place {
    size_t at = 0, size = 0;
  };
  Place error, result;
};
void append_record(std::string& out, const Record& record, WrittenTexts& last);

// Of the records that have been read. Empty for the first of a frame.
struct ReadTexts {
  std::string_view error, result;
};
// Takes one record from the front of `bytes`; its texts are views into them, its error and result perhaps
// into what was before them. False if they are not a record.
bool take_record(std::string_view& bytes, Record& record, ReadTexts& last);

}  // namespace turnstile
