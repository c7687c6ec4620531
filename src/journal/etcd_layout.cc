#include "journal/etcd_layout.h"

#include <fmt/format.h>

#include <charconv>

#include "base/hash.h"
#include "journal/wire.h"

namespace turnstile {
namespace {

constexpr uint32_t kPartMagic = 0x31506554, kChunkMagic = 0x31436554, kPointerMagic = 0x31537554;
constexpr size_t kDigits = 16;

// Bytes with a checksum of all of them at the end.
class Writer {
 public:
  explicit Writer(uint32_t magic) { fixed(magic); }
  template <class Integer>
  Writer& fixed(Integer value) {
    char bytes[sizeof value];
    wire::put_fixed(bytes, value);
    out_.append(bytes, sizeof bytes);
    return *this;
  }
  Writer& text(std::string_view text) {
    out_ += text;
    return *this;
  }
  std::string finish() {
    fixed(xxh3_64(out_));
    return std::move(out_);
  }

 private:
  std::string out_;
};

// What is between magic and checksum; nothing: one of them is wrong.
std::optional<wire::Reader> open(std::string_view value, uint32_t magic) {
  if (value.size() < sizeof magic + sizeof(uint64_t)) return std::nullopt;
  const std::string_view body = value.substr(0, value.size() - sizeof(uint64_t));
  uint32_t found = 0;
  uint64_t checksum = 0;
  wire::Reader(value.substr(body.size())).take_fixed(checksum);
  wire::Reader from(body);
  if (!from.take_fixed(found) || found != magic || checksum != xxh3_64(body)) return std::nullopt;
  return from;
}

bool take_time(wire::Reader& from, Time& time) {
  int64_t count = 0;
  if (!from.take_fixed(count)) return false;
  time = Time(Duration(count));
  return true;
}

}  // namespace

std::string EtcdKeys::log(uint64_t number) const { return fmt::format("{}/log/{:016x}", prefix_, number); }

std::optional<uint64_t> EtcdKeys::number_of(std::string_view log_key) const {
  const std::string_view name = log_key.substr(std::min(log_key.size(), prefix_.size() + 5));
  uint64_t number = 0;
  if (name.size() != kDigits) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number, 16);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::string EtcdKeys::generation(etcd::Revision term, uint64_t first_number) const {
  return fmt::format("{:016x}-{:016x}", uint64_t(term), first_number);
}

std::string EtcdKeys::chunk(const std::string& generation, uint64_t index) const {
  return fmt::format("{}{}/{:08x}", snapshots(), generation, index);
}

std::string encode(const LogPart& part) {
  return Writer(kPartMagic)
      .fixed<int64_t>(part.term)
      .fixed(part.number)
      .fixed<int64_t>(part.time.time_since_epoch().count())
      .fixed(part.part)
      .fixed(part.parts)
      .fixed(part.records)
      .text(part.payload)
      .finish();
}

std::optional<LogPart> decode_log_part(std::string_view value) {
  auto from = open(value, kPartMagic);
  LogPart part;
  if (!from || !from->take_fixed(part.term) || !from->take_fixed(part.number) ||
      !take_time(*from, part.time) || !from->take_fixed(part.part) || !from->take_fixed(part.parts) ||
      !from->take_fixed(part.records) || part.part >= part.parts)
    return std::nullopt;
  part.payload = from->rest();
  return part;
}

std::string encode(const SnapshotChunk& chunk) {
  return Writer(kChunkMagic).fixed(chunk.index).fixed(chunk.records).text(chunk.payload).finish();
}

std::optional<SnapshotChunk> decode_snapshot_chunk(std::string_view value) {
  auto from = open(value, kChunkMagic);
  SnapshotChunk chunk;
  if (!from || !from->take_fixed(chunk.index) || !from->take_fixed(chunk.records)) return std::nullopt;
  chunk.payload = from->rest();
  return chunk;
}

std::string encode(const SnapshotPointer& pointer) {
  return Writer(kPointerMagic)
      .fixed(pointer.first_number)
      .fixed(pointer.chunks)
      .fixed(pointer.records)
      .fixed(pointer.bytes)
      .fixed<int64_t>(pointer.time.time_since_epoch().count())
      .text(pointer.generation)
      .finish();
}

std::optional<SnapshotPointer> decode_snapshot_pointer(std::string_view value) {
  auto from = open(value, kPointerMagic);
  SnapshotPointer pointer;
  if (!from || !from->take_fixed(pointer.first_number) || !from->take_fixed(pointer.chunks) ||
      !from->take_fixed(pointer.records) || !from->take_fixed(pointer.bytes) ||
      !take_time(*from, pointer.time))
    return std::nullopt;
  pointer.generation = std::string(from->rest());
  return pointer;
}

}  // namespace turnstile
