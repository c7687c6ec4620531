// One record as bytes. The same bytes are used by every journal that keeps records.
//
//   kind u8 | fields u16 | the fields whose bit is set, in the order of the bits
//
// A field that has its default value takes no room, whatever the kind, so that the codec does not have to
// know which kinds use which fields and cannot lose one.
#pragma once

#include <string>
#include <string_view>

#include "engine/effects.h"

namespace turnstile {

void append_record(std::string& out, const Record& record);

// Takes one record from the front of `bytes`; its texts are views into them. False if they are not a record.
bool take_record(std::string_view& bytes, Record& record);

}  // namespace turnstile
