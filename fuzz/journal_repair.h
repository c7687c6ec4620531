// Journal files whose checksums are right although their bytes were mutated.
//
// A fuzzer never guesses a checksum: without this it would see nothing but the code that refuses wrong ones.
#pragma once

#include "base/hash.h"
#include "journal/batch.h"
#include "journal/layout.h"
#include "journal/wire.h"
#include "support.h"

namespace turnstile::fuzz {

// Sets the header of the file, and the checksums and marks of every frame in it, but for those frames whose
// bit is set in `left_alone` (the file's header is bit 7). A frame whose end is not in the file gets a good
// header: it is torn.
inline void repair(std::string& file, FileKind kind, uint64_t first_batch, uint8_t left_alone) {
  constexpr size_t kPayload = 24, kPayloadChecksum = 32, kChecksum = 44, kEnd = 52;
  if (file.size() >= kFileHeaderBytes && !(left_alone & 128))
    file.replace(0, kFileHeaderBytes, make_file_header(kind, first_batch));
  char magic[sizeof kFrameMagic];
  wire::put_fixed(magic, kFrameMagic);
  size_t at = kFileHeaderBytes;
  for (unsigned frame = 0; at + kFrameHeaderBytes <= file.size(); ++frame) {
    at = file.find(std::string_view(magic, sizeof magic), at);
    if (at == file.npos || at + kFrameHeaderBytes > file.size()) return;
    char* const bytes = file.data() + at;
    const uint64_t size = wire::get_fixed<uint32_t>(bytes + kPayload);
    const bool whole = size + kFrameTrailerBytes <= file.size() - at - kFrameHeaderBytes;
    if (!(left_alone >> frame % 7 & 1)) {
      const std::string_view view = std::string_view(file).substr(at);
      if (whole) {
        wire::put_fixed(bytes + kPayloadChecksum, xxh3_64(view.substr(kFrameHeaderBytes, size)));
        bytes[kFrameHeaderBytes + size] = char(0xc5);
      }
      wire::put_fixed(bytes + kChecksum, xxh3_64(view.substr(0, kChecksum)));
      wire::put_fixed(bytes + kEnd, uint32_t(0xe7d3b5a9));
    }
    at += kFrameHeaderBytes + (whole ? size + kFrameTrailerBytes : 0);
  }
}

}  // namespace turnstile::fuzz
