// One record as bytes. The same bytes are used by every journal that keeps records.
//
//   kind u8 | fields u16 | the fields whose bit is set, in the order of the bits
//
// An error that is the same as that of the last record with one, in the same frame, is only a bit: a hundred
// thousand endings with one error of 4 KiB must not make 400 MB.
//
// A field that has its default value takes no room, whatever the kind, so that the codec does not have to
// know which kinds use which fields and cannot lose one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/effects.h"

namespace turnstile {

// Where the last error of a frame lies in the bytes that are being written. Anew for each frame.
struct WrittenError {
  size_t at = 0, size = 0;
};
void append_record(std::string& out, const Record& record, WrittenError& last);

// Takes one record from the front of `bytes`; its texts are views into them, its error perhaps into what was
// before them. False if they are not a record. `last_error`: empty for the first record of a frame.
bool take_record(std::string_view& bytes, Record& record, std::string_view& last_error);

}  // namespace turnstile
