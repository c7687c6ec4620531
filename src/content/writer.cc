// See writer.h.
#include "content/writer.h"

#include <fmt/format.h>

#include <vector>

#include "base/check.h"
#include "base/log.h"

namespace turnstile::content {
namespace {

// What is hashed before an answer at most: some 10 ms. containerd holds a lock of its own during the first
// STAT.
constexpr int64_t kHashAtOnce = 16 << 20;
// So much is gathered before the disk is told to begin, so that the sync of a commit finds little left to do.
constexpr int64_t kWriteBack = 8 << 20;
constexpr size_t kReadBack = 1 << 20;

Outcome<void> hash_file(int fd, int64_t begin, int64_t end, Hasher& hasher) {
  std::vector<char> buffer(size_t(std::min<int64_t>(kReadBack, end - begin)));
  while (begin < end) {
    const size_t want = size_t(std::min<int64_t>(int64_t(buffer.size()), end - begin));
    const Outcome<size_t> got = read_at(fd, begin, std::span(buffer).first(want));
    if (!got) return std::unexpected(got.error());
    if (*got < want) return fail(ErrorClass::internal, "the ingest became shorter while it was read");
    hasher.update({buffer.data(), *got});
    begin += int64_t(*got);
  }
  return {};
}

}  // namespace

Writer::Writer(const BlobStore& store, KeyLocks::Held held, Ingest ingest)
    : store_(store), held_(std::move(held)), ingest_(std::move(ingest)) {}

Outcome<std::unique_ptr<Writer>> Writer::open(const BlobStore& store, KeyLocks& locks, const std::string& ref,
                                              int64_t total, const std::string& expected) {
  if (ref.empty()) return fail(ErrorClass::invalid_argument, "the first message must have a ref");
  Outcome<KeyLocks::Held> held = locks.take(ref);
  if (!held) return std::unexpected(held.error());
  Outcome<Ingest> ingest = store.open_ingest(ref, total, expected);
  if (!ingest) return std::unexpected(ingest.error());
  return std::unique_ptr<Writer>(new Writer(store, std::move(*held), std::move(*ingest)));
}

Outcome<void> Writer::check_open() const {
  if (!held_) return fail(ErrorClass::failed_precondition, "the writer is closed");
  return {};
}

Outcome<void> Writer::write(int64_t offset, std::string_view data) {
  if (const Outcome<void> opened = check_open(); !opened) return opened;
  IngestStatus& status = ingest_.status;
  if (offset < 0 || (offset > 0 && offset != status.offset))
    return fail(ErrorClass::out_of_range,
                fmt::format("a write at {} must be at the current offset {}", offset, status.offset));
  if (offset == 0 && status.offset > 0)
    if (const Outcome<void> cut = truncate(); !cut) return cut;
  if (const Outcome<void> written = write_at(ingest_.data.get(), status.offset, data); !written) {
    // What was written of it counts for nobody: the file ends where the status says.
    if (::ftruncate(ingest_.data.get(), status.offset) != 0) close();
    return written;
  }
  status.offset += int64_t(data.size());
  status.updated = Timestamp::now();
  return {};
}

Outcome<void> Writer::truncate() {
  if (::ftruncate(ingest_.data.get(), 0) != 0) return fail_errno("cut", "the ingest", errno);
  ingest_.status.offset = hashed_ = write_back_ = 0;
  hasher_.reset();
  return {};
}

Outcome<void> Writer::catch_up(std::string_view last) {
  const int64_t offset = ingest_.status.offset;
  if (hashed_ == offset) return {};
  if (hashed_ + int64_t(last.size()) == offset) {
    hasher_.update(last);
  } else if (const Outcome<void> read = hash_file(ingest_.data.get(), hashed_, offset, hasher_); !read) {
    // Part of it is in the hash now; begin again next time rather than hash it twice.
    hasher_.reset();
    hashed_ = 0;
    return read;
  }
  hashed_ = offset;
  start_write_back();
  return {};
}

void Writer::start_write_back() {
  const int64_t offset = ingest_.status.offset;
  if (offset - write_back_ < kWriteBack) return;
  ::sync_file_range(ingest_.data.get(), write_back_, offset - write_back_, SYNC_FILE_RANGE_WRITE);
  write_back_ = offset;
}

Outcome<std::optional<Digest>> Writer::digest_so_far() {
  if (ingest_.status.offset - hashed_ > kHashAtOnce) return std::nullopt;
  if (const Outcome<void> hashed = catch_up(); !hashed) return std::unexpected(hashed.error());
  return hasher_.digest();
}

Outcome<Digest> Writer::verify(int64_t total, const std::optional<Digest>& expected) {
  if (const Outcome<void> opened = check_open(); !opened) return std::unexpected(opened.error());
  const int64_t size = ingest_.status.offset;
  if (total > 0 && total != size)
    return fail(ErrorClass::failed_precondition, fmt::format("there are {} bytes, expected {}", size, total));
  const Outcome<struct stat> file = look_at(ingest_.data.get());
  if (!file) return std::unexpected(file.error());
  if (file->st_nlink == 0) return fail(ErrorClass::failed_precondition, "the ingest was aborted");
  if (file->st_size != size)
    return fail(ErrorClass::internal, fmt::format("the ingest has {} bytes, not {}", file->st_size, size));
  if (expected && expected->algorithm() != Algorithm::sha256) {
    Hasher other(expected->algorithm());  // known only now, so all is hashed again
    if (const Outcome<void> read = hash_file(ingest_.data.get(), 0, size, other); !read)
      return std::unexpected(read.error());
    if (other.digest() == *expected) return *expected;
    return fail(ErrorClass::failed_precondition,
                fmt::format("the digest is {}, expected {}", other.digest().text(), expected->text()));
  }
  if (const Outcome<void> hashed = catch_up(); !hashed) return std::unexpected(hashed.error());
  Digest digest = hasher_.digest();
  if (expected && digest != *expected)
    return fail(ErrorClass::failed_precondition,
                fmt::format("the digest is {}, expected {}", digest.text(), expected->text()));
  return digest;
}

Outcome<void> Writer::publish(const Digest& digest) {
  if (const Outcome<void> opened = check_open(); !opened) return opened;
  const Outcome<void> published = store_.publish(ingest_, digest);
  if (published || published.error().code == ErrorClass::already_exists) {
    if (const Outcome<void> dropped = close_and_drop(); !dropped)
      log_warning("an ingest could not be removed", {{"error", dropped.error().message}});
  } else if (!ingest_.data.is_open()) {
    held_.reset();
  }
  return published;
}

Outcome<void> Writer::drop() {
  if (const Outcome<void> opened = check_open(); !opened) return opened;
  return close_and_drop();
}

// In this order: NFS removes a file that is open only by renaming it within its directory, which then cannot
// be removed.
Outcome<void> Writer::close_and_drop() {
  ingest_.data.reset();
  const Outcome<void> dropped = store_.drop_ingest(ingest_.status.ref);
  held_.reset();
  return dropped;
}

void Writer::close() {
  if (!held_) return;
  // The precise time of the last change, where the next writer and Status find it.
  const timespec updated = ingest_.status.updated.to_timespec();
  const timespec times[2] = {updated, updated};
  ::futimens(ingest_.data.get(), times);
  ingest_.data.reset();
  held_.reset();
}

}  // namespace turnstile::content
