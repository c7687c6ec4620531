#include "journal/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "journal/wire.h"

namespace turnstile {
namespace {

constexpr uint64_t kFileMagic = 0x4c4e524a4e525554;  // "TURNJRNL"
constexpr size_t kChecksumAt = 24;
constexpr size_t kDigits = 20;
constexpr std::string_view kTemporarySuffix = ".tmp";

constexpr std::string_view prefix_of(FileKind kind) { return kind == FileKind::log ? "log-" : "snapshot-"; }

std::optional<uint64_t> parse_name(std::string_view name, FileKind kind) {
  const std::string_view prefix = prefix_of(kind);
  if (!name.starts_with(prefix) || name.size() != prefix.size() + kDigits) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string file_name(FileKind kind, uint64_t first_batch) {
  return fmt::format("{}{:020}", prefix_of(kind), first_batch);
}

std::string temporary_name(uint64_t first_batch) {
  return file_name(FileKind::snapshot, first_batch) + std::string(kTemporarySuffix);
}

Listing sort_names(const std::vector<std::string>& names) {
  Listing listing;
  for (const std::string& name : names) {
    if (const auto log = parse_name(name, FileKind::log)) listing.logs.push_back(*log);
    if (const auto snapshot = parse_name(name, FileKind::snapshot)) listing.snapshots.push_back(*snapshot);
    if (name.starts_with(prefix_of(FileKind::snapshot)) && name.ends_with(kTemporarySuffix))
      listing.temporaries.push_back(name);
  }
  std::ranges::sort(listing.logs);
  std::ranges::sort(listing.snapshots);
  return listing;
}

std::string make_file_header(FileKind kind, uint64_t first_batch) {
  std::string bytes(kFileHeaderBytes, '\0');
  char* to = wire::put_fixed(bytes.data(), kFileMagic);
  to = wire::put_fixed(to, kFormatVersion);
  to = wire::put_fixed(to, uint32_t(kind));
  to = wire::put_fixed(to, first_batch);
  wire::put_fixed(to, xxh3_64(std::string_view(bytes).substr(0, kChecksumAt)));
  return bytes;
}

std::optional<std::string> fault_in_file_header(std::string_view bytes, FileKind kind, uint64_t first_batch) {
  if (bytes.size() < kFileHeaderBytes) return "the file is shorter than its header";
  wire::Reader from(bytes);
  uint64_t magic = 0, first = 0, checksum = 0;
  uint32_t version = 0, stored_kind = 0;
  from.take_fixed(magic);
  from.take_fixed(version);
  from.take_fixed(stored_kind);
  from.take_fixed(first);
  from.take_fixed(checksum);
  if (magic != kFileMagic) return "this is not a journal file of Turnstile, or its header is damaged";
  if (checksum != xxh3_64(bytes.substr(0, kChecksumAt))) return "the checksum of the file's header is wrong";
  if (version < kOldestVersion || version > kFormatVersion)
    return fmt::format("it has format version {}, this program knows {} to {}: use the program that wrote it",
                       version, kOldestVersion, kFormatVersion);
  if (stored_kind != uint32_t(kind) || first != first_batch)
    return fmt::format("its header says that it is {}: it has been renamed",
                       file_name(FileKind(stored_kind), first));
  return std::nullopt;
}

}  // namespace turnstile
