// See read_calls.h. A Call is one small state machine: requested, writing (for each message), finishing.
#include "content/read_calls.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpc/slice.h>

#include <algorithm>

namespace turnstile::content {
namespace {

constexpr int64_t kMessage = 1 << 20;
// A file that is not in memory makes a thread wait for the disk; the others go on.
constexpr int kThreads = 2;

// ReadContentResponse{1 offset, 2 data} around bytes that are not copied again.
Outcome<grpc::ByteBuffer> read_message(const OpenBlob& blob, int64_t offset, int64_t size) {
  using google::protobuf::io::CodedOutputStream;
  grpc_slice data = grpc_slice_malloc(size_t(size));
  grpc::Slice owner(data, grpc::Slice::STEAL_REF);
  char* bytes = reinterpret_cast<char*>(GRPC_SLICE_START_PTR(data));
  const Outcome<size_t> got = read_at(blob.fd.get(), offset, {bytes, size_t(size)});
  if (!got) return std::unexpected(got.error());
  if (*got < size_t(size)) return fail(ErrorClass::internal, "a blob is shorter than it was");
  constexpr uint8_t kOffsetTag = 1 << 3 | 0, kDataTag = 2 << 3 | 2;
  uint8_t head[24];
  uint8_t* end = head;
  *end++ = kOffsetTag;
  end = CodedOutputStream::WriteVarint64ToArray(uint64_t(offset), end);
  *end++ = kDataTag;
  end = CodedOutputStream::WriteVarint64ToArray(uint64_t(size), end);
  // Small slices live inside their grpc_slice, so a copied one must not be pointed into: `data` is large or
  // copied here.
  const grpc::Slice slices[] = {grpc::Slice(head, size_t(end - head)),
                                size < 64 ? grpc::Slice(bytes, size_t(size)) : std::move(owner)};
  return grpc::ByteBuffer(slices, 2);
}

bool parse(const grpc::ByteBuffer& buffer, wire::ReadContentRequest& request) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return false;
  std::string bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return request.ParseFromString(bytes);
}

}  // namespace

class ReadCalls::Call {
 public:
  explicit Call(ReadCalls& calls) : owner_(calls), writer_(&context_) {
    owner_.calls_.fetch_add(1);
    owner_.service_.RequestRead(&context_, &request_, &writer_, owner_.queue_.get(), owner_.queue_.get(),
                                this);
  }

  ~Call() {
    if (owner_.calls_.fetch_sub(1) == 1) owner_.calls_.notify_all();
  }

  // What was begun last has ended. `ok` false: the client or the server has gone.
  void proceed(bool ok) {
    if (finishing_ || (!ok && !begun_)) {
      delete this;
    } else if (!ok) {
      finish(grpc::Status::CANCELLED);
    } else if (!begun_) {
      begun_ = true;
      new Call(owner_);  // for the next client; it belongs to the queue
      begin();
    } else {
      next();
    }
  }

 private:
  void begin() {
    wire::ReadContentRequest request;
    if (!parse(request_, request)) return finish({grpc::StatusCode::INTERNAL, "not a ReadContentRequest"});
    const Outcome<Digest> digest = Digest::parse(request.digest());
    if (!digest) return finish(to_status(digest.error()));
    Outcome<std::shared_ptr<const OpenBlob>> blob = owner_.store_.open(*digest);
    if (!blob) return finish(to_status(blob.error()));
    blob_ = std::move(*blob);
    offset_ = std::max<int64_t>(request.offset(), 0);
    if (offset_ > blob_->size)
      return finish({grpc::StatusCode::OUT_OF_RANGE, "the offset is behind the end of the blob"});
    left_ = blob_->size - offset_;
    if (request.size() > 0) left_ = std::min(left_, request.size());
    next();
  }

  void next() {
    if (left_ == 0) return finish(grpc::Status::OK);
    const int64_t size = std::min(left_, kMessage);
    const Outcome<grpc::ByteBuffer> message = read_message(*blob_, offset_, size);
    if (!message) return finish(to_status(message.error()));
    offset_ += size;
    left_ -= size;
    if (left_ > 0) return writer_.Write(*message, this);
    finishing_ = true;  // the last message and the status leave together
    writer_.WriteAndFinish(*message, grpc::WriteOptions(), grpc::Status::OK, this);
  }

  void finish(const grpc::Status& status) {
    finishing_ = true;
    writer_.Finish(status, this);
  }

  ReadCalls& owner_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_;
  bool begun_ = false, finishing_ = false;
  std::shared_ptr<const OpenBlob> blob_;
  int64_t offset_ = 0, left_ = 0;
};

void ReadCalls::start() {
  for (int i = 0; i < kThreads; ++i) {
    new Call(*this);
    threads_.emplace_back([this] { serve(); });
  }
}

void ReadCalls::stop() {
  if (!queue_) return;
  // Nothing may be begun on a queue that is shut down, so the calls end first.
  for (int calls = calls_.load(); calls != 0; calls = calls_.load()) calls_.wait(calls);
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  queue_.reset();
}

void ReadCalls::serve() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Call*>(tag)->proceed(ok);
}

}  // namespace turnstile::content
