// See read_method.h.
#include "content/read_method.h"

#include <containerd_content.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <sys/uio.h>

#include <algorithm>

#include "content/service.h"

namespace turnstile::content {
namespace {

namespace wire = ::containerd::services::content::v1;

constexpr int64_t kMessage = 1 << 20;

struct Range {
  std::shared_ptr<const OpenBlob> blob;
  int64_t offset = 0, left = 0;
};

Outcome<wire::ReadContentRequest> parse(const std::string& bytes) {
  wire::ReadContentRequest request;
  if (request.ParseFromString(bytes)) return request;
  return fail(ErrorClass::internal, "not a ReadContentRequest");
}

Outcome<Range> range_of(const wire::ReadContentRequest& request, std::shared_ptr<const OpenBlob> blob) {
  const int64_t offset = std::max<int64_t>(request.offset(), 0);
  if (offset > blob->size) return fail(ErrorClass::out_of_range, "the offset is behind the end of the blob");
  const int64_t rest = blob->size - offset;
  return Range{std::move(blob), offset, request.size() > 0 ? std::min(rest, request.size()) : rest};
}

// ReadContentResponse{1 offset, 2 data}; the data follows.
std::string head_of(int64_t offset, size_t size) {
  using google::protobuf::io::CodedOutputStream;
  constexpr uint8_t kOffsetTag = 1 << 3 | 0, kDataTag = 2 << 3 | 2;
  uint8_t head[24];
  uint8_t* end = head;
  *end++ = kOffsetTag;
  end = CodedOutputStream::WriteVarint64ToArray(uint64_t(offset), end);
  *end++ = kDataTag;
  end = CodedOutputStream::WriteVarint64ToArray(size, end);
  return {head, end};
}

rpc::Message message_of(int64_t offset, std::shared_ptr<const char[]> bytes, size_t size) {
  return {.head = head_of(offset, size), .data = std::move(bytes), .data_size = size};
}

// One message's worth that is in memory already, of a file that is open already; otherwise nothing.
std::optional<rpc::Status> read_at_once(ContentStore& store, const std::string& message, rpc::Call& call) {
  const Outcome<wire::ReadContentRequest> request = parse(message);
  if (!request) return to_status(request.error());
  const Outcome<Digest> digest = Digest::parse(request->digest());
  if (!digest) return to_status(digest.error());
  std::shared_ptr<const OpenBlob> blob = store.find_open(*digest);
  if (!blob) return std::nullopt;
  const Outcome<Range> range = range_of(*request, std::move(blob));
  if (!range) return to_status(range.error());
  if (range->left > kMessage) return std::nullopt;
  if (range->left == 0) return rpc::Status{};
  const size_t size = size_t(range->left);
  const std::shared_ptr<char[]> bytes = std::make_shared_for_overwrite<char[]>(size);
  const iovec place{bytes.get(), size};
  if (::preadv2(range->blob->fd.get(), &place, 1, range->offset, RWF_NOWAIT) != ssize_t(size))
    return std::nullopt;  // on the disk, or of a file system that cannot say
  call.write(message_of(range->offset, bytes, size));
  return rpc::Status{};
}

rpc::Status read_waiting(ContentStore& store, rpc::Call& call) {
  std::string message;
  if (!call.read(message)) return {rpc::Code::cancelled, ""};
  const Outcome<wire::ReadContentRequest> request = parse(message);
  if (!request) return to_status(request.error());
  const Outcome<Digest> digest = Digest::parse(request->digest());
  if (!digest) return to_status(digest.error());
  Outcome<std::shared_ptr<const OpenBlob>> blob = store.open(*digest);
  if (!blob) return to_status(blob.error());
  Outcome<Range> range = range_of(*request, std::move(*blob));
  if (!range) return to_status(range.error());
  while (range->left > 0) {
    const size_t size = size_t(std::min(range->left, kMessage));
    const std::shared_ptr<char[]> bytes = std::make_shared_for_overwrite<char[]>(size);
    const Outcome<size_t> got = read_at(range->blob->fd.get(), range->offset, {bytes.get(), size});
    if (!got) return to_status(got.error());
    if (*got < size) return to_status({ErrorClass::internal, "a blob is shorter than it was"});
    if (!call.write(message_of(range->offset, bytes, size))) return {rpc::Code::cancelled, ""};
    range->offset += int64_t(size);
    range->left -= int64_t(size);
  }
  return {};
}

}  // namespace

rpc::Method read_method(ContentStore& store) {
  return {.run = [&store](rpc::Call& call) { return read_waiting(store, call); },
          .run_at_once = [&store](const std::string& request,
                                  rpc::Call& call) { return read_at_once(store, request, call); }};
}

}  // namespace turnstile::content
