// See verification.h.
#include "content/verification.h"

#include "content/hasher.h"

namespace turnstile::content {
namespace {

constexpr std::chrono::seconds kHidden{1};  // longer than a blob lies aside

// None: it was stopped.
std::optional<Finding> verify_blob(const BlobStore& blobs, const BlobInfo& info, Pace& pace) {
  using enum Finding::Kind;
  Outcome<OpenBlob> blob = blobs.find_published(info.digest);
  const bool published = blob.has_value();
  if (!blob && blob.error().code == ErrorClass::not_found) blob = blobs.find(info.digest);
  if (!blob && blob.error().code == ErrorClass::not_found) return Finding{info.digest, gone};
  if (!blob) return Finding{info.digest, unreadable, blob.error().message};
  bool stopped = false;
  const Outcome<bool> good =
      is_intact(*blob, info.digest, [&](size_t bytes) { return !(stopped = !pace.after(bytes)); });
  if (stopped) return std::nullopt;
  if (!good) return Finding{info.digest, unreadable, good.error().message};
  if (!*good) return Finding{info.digest, damaged, {}, std::move(*blob)};
  return Finding{info.digest, published ? intact : unpublished};
}

bool is_out_of_sight(const Finding& finding) {
  return finding.kind == Finding::Kind::gone || finding.kind == Finding::Kind::unpublished;
}

}  // namespace

Outcome<bool> is_intact(const OpenBlob& blob, const Digest& digest,
                        const std::function<bool(size_t bytes)>& pause) {
  constexpr size_t kPiece = 256 * 1024;
  std::vector<char> piece(kPiece);
  Hasher hasher(digest.algorithm());
  for (int64_t offset = 0;;) {
    const Outcome<size_t> got = read_at(blob.fd.get(), offset, piece);
    if (!got) return std::unexpected(got.error());
    if (*got == 0) break;
    hasher.update({piece.data(), *got});
    offset += int64_t(*got);
    if (pause && !pause(*got)) return fail(ErrorClass::unavailable, "stopped");
  }
  return hasher.digest() == digest;
}

bool Pace::after(size_t bytes) {
  if (seen_) seen_(bytes);
  if (bytes_per_second_ <= 0) return !stop_.stop_requested();
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> takes(double(bytes) / bytes_per_second_);
  due_ = std::max(due_, now) + std::chrono::duration_cast<Clock::duration>(takes);
  return wait(std::chrono::duration_cast<std::chrono::milliseconds>(due_ - now));
}

bool Pace::wait(std::chrono::milliseconds time) {
  const Locked lock(mutex_);
  never_.wait_for(mutex_, stop_, time, [] { return false; });
  return !stop_.stop_requested();
}

bool verify_blobs(const BlobStore& blobs, const std::vector<BlobInfo>& infos, Pace& pace,
                  const std::function<void(Finding)>& told) {
  std::vector<BlobInfo> again;
  for (const BlobInfo& info : infos) {
    std::optional<Finding> finding = verify_blob(blobs, info, pace);
    if (!finding) return false;
    if (is_out_of_sight(*finding)) {
      again.push_back(info);
    } else {
      told(std::move(*finding));
    }
  }
  if (again.empty()) return true;
  if (!pace.wait(kHidden)) return false;
  for (const BlobInfo& info : again) {
    std::optional<Finding> finding = verify_blob(blobs, info, pace);
    if (!finding) return false;
    told(std::move(*finding));
  }
  return true;
}

}  // namespace turnstile::content
