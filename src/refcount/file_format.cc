// Writing and reading the header and the records of a reference count file.
#include "refcount/file_format.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace turnstile::refcount {
namespace {

static_assert(std::endian::native == std::endian::little, "the integers of the format are little-endian");

constexpr std::string_view kMagic = "TURNREFC";
constexpr size_t kHeaderBytes = 40;
constexpr size_t kChecksumBytes = 8;

template <class Integer>
void put(std::string& to, Integer value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& to, std::string_view text) {
  TS_CHECK(text.size() <= UINT32_MAX, "an id fits the format's length");
  put(to, uint32_t(text.size()));
  to += text;
}

std::string encode_body(const std::string& resource, const ReferenceCount& count) {
  std::string body;
  put_text(body, resource);
  put(body, uint32_t(count.nodes.size()));
  for (const std::string& node : count.nodes) put_text(body, node);
  return body;
}

// Reads from the front; remembers how far it has come, for the message.
class Reader {
 public:
  Reader(std::string_view bytes, uint64_t at) : bytes_(bytes), at_(at) {}

  uint64_t at() const { return at_; }
  bool at_end() const { return bytes_.empty(); }

  bool take_bytes(size_t size, std::string_view& taken) {
    if (bytes_.size() < size) return false;
    taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    at_ += size;
    return true;
  }
  template <class Integer>
  bool take(Integer& value) {
    std::string_view raw;
    if (!take_bytes(sizeof value, raw)) return false;
    std::memcpy(&value, raw.data(), sizeof value);
    return true;
  }
  bool take_text(std::string_view& text) {
    uint32_t size;
    return take(size) && take_bytes(size, text);
  }

 private:
  std::string_view bytes_;
  uint64_t at_;
};

std::unexpected<FormatFault> fault(uint64_t at, std::string what) {
  return std::unexpected(FormatFault{at, std::move(what)});
}

struct Header {
  uint64_t resources = 0;
};

std::expected<Header, FormatFault> read_header(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes)
    return fault(bytes.size(), fmt::format("it ends within the header of {} bytes", kHeaderBytes));
  if (!bytes.starts_with(kMagic)) return fault(0, "it is no reference count file of Turnstile's");
  Reader reader(bytes.substr(kMagic.size()), kMagic.size());
  uint32_t version, reserved;
  uint64_t resources, size, checksum;
  const bool whole = reader.take(version) && reader.take(reserved) && reader.take(resources) &&
                     reader.take(size) && reader.take(checksum);
  TS_CHECK(whole, "the header's size was checked");
  if (checksum != xxh3_64(bytes.substr(0, kHeaderBytes - kChecksumBytes)))
    return fault(0, "the header's checksum is wrong");
  if (version != kRefCountFormatVersion)
    return fault(8, fmt::format("its format is version {} and this program knows {}; use a newer program",
                                version, kRefCountFormatVersion));
  if (reserved != 0) return fault(12, "the reserved field is not 0");
  if (size != bytes.size())
    return fault(std::min<uint64_t>(size, bytes.size()),
                 fmt::format("it has {} bytes and should have {}", bytes.size(), size));
  return Header{resources};
}

// The node list of one record. Ids ascend strictly, so that there is one way to write a set.
bool read_nodes(Reader& reader, ReferenceCount& count) {
  uint32_t nodes;
  if (!reader.take(nodes) || nodes == 0) return false;
  for (uint32_t i = 0; i < nodes; ++i) {
    std::string_view node;
    if (!reader.take_text(node) || node.empty()) return false;
    if (!count.nodes.empty() && node <= *count.nodes.rbegin()) return false;
    count.nodes.emplace_hint(count.nodes.end(), node);
  }
  return true;
}

std::expected<void, FormatFault> read_record(Reader& reader, Counts& counts) {
  const uint64_t start = reader.at();
  uint64_t checksum;
  uint32_t size;
  std::string_view body;
  if (!reader.take(checksum) || !reader.take(size) || !reader.take_bytes(size, body))
    return fault(start, "a record reaches beyond the end of the file");
  if (checksum != xxh3_64(body)) return fault(start, "the checksum of a record is wrong");
  Reader inside(body, start);
  std::string_view resource;
  ReferenceCount count;
  if (!inside.take_text(resource) || resource.empty() || !read_nodes(inside, count) || !inside.at_end())
    return fault(start, "a record is not built as it should be");
  if (!counts.empty() && resource <= counts.rbegin()->first) return fault(start, "a record is out of order");
  counts.emplace_hint(counts.end(), resource, std::make_shared<const ReferenceCount>(std::move(count)));
  return {};
}

}  // namespace

std::string encode_counts(const Counts& counts) {
  std::string records;
  for (const auto& [resource, count] : counts) {
    const std::string body = encode_body(resource, *count);
    put(records, xxh3_64(body));
    put_text(records, body);
  }
  std::string file(kMagic);
  put(file, kRefCountFormatVersion);
  put(file, uint32_t{0});
  put(file, uint64_t{counts.size()});
  put(file, uint64_t{kHeaderBytes + records.size()});
  put(file, xxh3_64(file));
  return file + records;
}

std::expected<Counts, FormatFault> decode_counts(std::string_view bytes) {
  const auto header = read_header(bytes);
  if (!header) return std::unexpected(header.error());
  Counts counts;
  Reader reader(bytes.substr(kHeaderBytes), kHeaderBytes);
  while (!reader.at_end())
    if (auto read = read_record(reader, counts); !read) return std::unexpected(read.error());
  if (counts.size() != header->resources)
    return fault(
        16, fmt::format("it holds {} resources and its header says {}", counts.size(), header->resources));
  return counts;
}

}  // namespace turnstile::refcount
