// The rules of a Write stream. What containerd does with an answer is why they are so:
//  - "Not now" is `unavailable`, at once, to the first message only; to a later one it ends the pull.
//  - "It is there" must not be `already_exists` then (the pull would die): all bytes are said to be there.
//  - After the ticket was taken one looks again: the blob may have come between containerd's Info and now.
#include "content/write_session.h"

#include <fmt/format.h>

#include "base/log.h"
#include "content/pause.h"
#include "content/verification.h"

namespace turnstile::content {
namespace {

constexpr int64_t kHashedWhenAdopted = 1 << 20;
constexpr int kCopies = 3;  // behind a damaged one on this node's disk others may show another one

}  // namespace

WriteSession::~WriteSession() {
  if (!writer_) return;
  store_.metrics_->write_ended();
  if (!committed_ && !needless_) store_.metrics_->add(Count::failed_writes);
}

std::unexpected<ContentError> WriteSession::not_now(const Digest& digest, const std::string& why) {
  store_.metrics_->add(Count::waits);
  return fail(ErrorClass::unavailable, fmt::format("content {}: {}", digest.text(), why));
}

std::unexpected<ContentError> WriteSession::exists_already(const Digest& digest) {
  needless_ = true;
  return fail(ErrorClass::already_exists, fmt::format("content {}: already exists", digest.text()));
}

Outcome<WriteAnswer> WriteSession::handle(const WriteMessage& message) {
  if (committed_) return fail(ErrorClass::failed_precondition, "the stream has been committed");
  if (const Outcome<void> noted = note_expectations(message); !noted) return std::unexpected(noted.error());
  if (!opened_)
    if (const Outcome<void> opened = open(message); !opened) return std::unexpected(opened.error());
  opened_ = true;
  switch (message.action) {
    case WriteAction::stat:
      return stat();
    case WriteAction::write:
      return write(message);
    case WriteAction::commit:
      return adoption_ ? commit_adopted(message) : commit_written(message);
  }
  return fail(ErrorClass::invalid_argument, "unknown action");
}

Outcome<void> WriteSession::note_expectations(const WriteMessage& message) {
  if (message.total < 0) return fail(ErrorClass::invalid_argument, "total must not be negative");
  if (message.total > 0) total_ = message.total;
  if (message.expected.empty()) return {};
  Outcome<Digest> expected = Digest::parse(message.expected);
  if (!expected) return std::unexpected(expected.error());
  expected_ = *expected;
  if (adoption_ || !store_.has(*expected)) return {};
  const Outcome<void> dropped =
      writer_ ? writer_->drop() : store_.blobs_.drop_ingest(std::string(message.ref));
  if (!dropped) return dropped;
  if (ask_.is_for(*expected)) ask_.was_needless();  // D7: that it exists is no failure
  return exists_already(*expected);
}

Outcome<void> WriteSession::open(const WriteMessage& message) {
  if (message.ref.empty()) return fail(ErrorClass::invalid_argument, "the first message must have a ref");
  ref_ = message.ref;
  const std::optional<Digest> digest = expected_ ? expected_ : digest_in_ref(ref_);
  if (digest)
    if (const Outcome<void> allowed = arbitrate(*digest); !allowed) return allowed;
  if (adoption_) return {};
  Outcome<std::unique_ptr<Writer>> writer =
      Writer::open(store_.blobs_, store_.refs_, ref_, total_, expected_ ? expected_->text() : "");
  if (!writer) return give_up(writer.error());
  writer_ = std::move(*writer);
  store_.metrics_->write_began();
  if (total_ == 0) total_ = writer_->status().total;
  return {};
}

// Ends with the right to write it, or an adoption, or an error.
Outcome<void> WriteSession::arbitrate(const Digest& digest) {
  Outcome<OpenBlob> blob = store_.blobs_.find(digest);
  if (!blob && blob.error().code != ErrorClass::not_found) return std::unexpected(blob.error());
  const std::optional<Stage> stage = store_.state_->stage_of(digest);
  bool own = blob && stage && *stage != Stage::leaving;
  // It may have been kept for long, and read by nobody.
  if (own && *stage == Stage::kept && !find_intact(digest)) {
    own = !store_.blobs_.find_published(digest);
    if (own) blob = store_.blobs_.find(digest);  // published by nobody, but under this node's own name
    own = own && blob;
  }
  if (!own) {
    blob = find_intact(digest);
    if (const Outcome<void> asked = ask(digest, blob.has_value(), total_); !asked) return asked;
    const bool finished = adopts_ && !alone_;
    blob = find_usable(digest, blob ? blob->file : FileId());
    if (!blob && finished)
      return not_now(digest, store_.blobs_.find_published(digest)
                                 ? "another node has it, but the file that can be seen here is damaged"
                                 : "another node has it, but it cannot be seen here yet");
  }
  if (blob) adoption_ = Adoption{digest, blob->size, Timestamp::now()};
  return {};
}

// What others have published is believed, for hashing a layer takes longer than containerd waits; but a
// manifest that is wrong would spoil a whole image, and costs nothing to look at.
Outcome<OpenBlob> WriteSession::find_intact(const Digest& digest, const FileId& good) {
  for (int tries = 0; tries < kCopies; ++tries) {
    Outcome<OpenBlob> blob = store_.blobs_.find_published(digest);
    if (!blob || blob->file == good) return blob;
    if (store_.damaged_elsewhere_.has(digest, *blob)) break;
    if (blob->size > kHashedWhenAdopted) return blob;
    const Outcome<bool> intact = is_intact(*blob, digest);
    if (!intact || *intact) return blob;
    const Outcome<bool> away = store_.put_away(digest, *blob);
    if (!away) return std::unexpected(away.error());
    store_.metrics_->add(Count::damaged_blobs);
    log_error(*away ? "a blob holds other bytes; put away, and pulled again"
                    : "a blob holds other bytes, on another node's disk; not used, and pulled again",
              {{"digest", digest.text()}});
  }
  return fail(ErrorClass::not_found, fmt::format("content {}: damaged", digest.text()));
}

Outcome<OpenBlob> WriteSession::find_usable(const Digest& digest, const FileId& good) {
  Outcome<OpenBlob> blob = find_intact(digest, good);
  if (!blob || !alone_ || blob->is_own) return blob;
  return fail(ErrorClass::not_found, fmt::format("content {}: on another node's disk", digest.text()));
}

Outcome<void> WriteSession::ask(const Digest& digest, bool is_there, int64_t size) {
  ask_ = {};  // of another digest, or lost
  Lives::Answer answer = store_.lives_.ask(digest, is_there, size);
  switch (answer.kind) {
    case Decision::Kind::write:
    case Decision::Kind::adopt:
      adopts_ = answer.kind == Decision::Kind::adopt;
      ask_ = std::move(answer.ask);
      alone_ = answer.is_alone;
      return {};
    case Decision::Kind::wait:
      return not_now(digest, answer.why);
    case Decision::Kind::error:
      break;
  }
  return fail(ErrorClass::failed_precondition, fmt::format("content {}: {}", digest.text(), answer.why));
}

// Whoever waits need not wait until this stream ends, and is told why. A second try asks anew.
std::unexpected<ContentError> WriteSession::give_up(const ContentError& error) {
  ask_.failed(error.message);
  return std::unexpected(error);
}

Outcome<WriteAnswer> WriteSession::answer(int64_t offset, const Timestamp& started, const Timestamp& updated,
                                          std::string digest) const {
  return WriteAnswer{started, updated, offset, total_, std::move(digest)};
}

Outcome<WriteAnswer> WriteSession::stat() {
  if (adoption_) {
    total_ = adoption_->size;
    return answer(adoption_->size, adoption_->since, adoption_->since, adoption_->digest.text());
  }
  const Outcome<std::optional<Digest>> digest = writer_->digest_so_far();
  if (!digest) return std::unexpected(digest.error());
  const IngestStatus& status = writer_->status();
  return answer(status.offset, status.started, status.updated, *digest ? (*digest)->text() : "");
}

Outcome<WriteAnswer> WriteSession::write(const WriteMessage& message) {
  if (adoption_) {
    if (message.data.empty()) return stat();
    return fail(ErrorClass::failed_precondition, "all bytes are there already; only a commit is missing");
  }
  if (const Outcome<void> written = writer_->write(message.offset, message.data); !written)
    return give_up(written.error());
  store_.metrics_->add(Count::received_bytes, int64_t(message.data.size()));
  const IngestStatus& status = writer_->status();
  ask_.progress(status.offset, total_);
  return answer(status.offset, status.started, status.updated, "");
}

void WriteSession::catch_up(std::string_view data) {
  if (!writer_ || committed_) return;
  // It is tried again when the digest is needed, and then the client is told.
  if (const Outcome<void> hashed = writer_->catch_up(data); !hashed)
    log_warning("an ingest cannot be read", {{"ref", ref_}, {"error", hashed.error().message}});
}

void WriteSession::stalled() {
  if (!ask_) return;
  log_warning("a download has stalled; another node may take it over", {{"ref", ref_}});
  ask_.failed("stalled");
}

Outcome<WriteAnswer> WriteSession::commit_written(const WriteMessage& message) {
  if (const Outcome<void> labels = check_labels(message.labels); !labels)
    return std::unexpected(labels.error());
  if (!message.data.empty()) {
    if (const Outcome<WriteAnswer> written = write(message); !written) return written;
  } else if (message.offset != 0 && message.offset != writer_->status().offset) {
    return fail(ErrorClass::out_of_range, fmt::format("a commit at {} must be at the current offset {}",
                                                      message.offset, writer_->status().offset));
  }
  const Outcome<Digest> digest = writer_->verify(total_, expected_);
  if (!digest) return give_up(digest.error());
  const IngestStatus status = writer_->status();
  if (const Outcome<void> made = make_blob(*digest, status.offset, message.labels); !made)
    return std::unexpected(made.error());
  return answer(status.offset, status.started, Timestamp::now(), digest->text());
}

// From verified bytes to a blob of this node's.
Outcome<void> WriteSession::make_blob(const Digest& digest, int64_t size, const Labels& labels) {
  const Outcome<KeyLocks::Held> held = store_.digests_.take(digest.text());
  if (!held) return std::unexpected(held.error());
  if (store_.has(digest)) {
    if (ask_.is_for(digest)) ask_.was_needless();
    if (const Outcome<void> dropped = writer_->drop(); !dropped) return dropped;
    return exists_already(digest);
  }
  bool there = find_usable(digest).has_value();
  if (!ask_.is_for(digest) || !ask_.still_valid()) {
    // The ref did not tell the digest, or the right to write it was lost on the way: ask now.
    if (const Outcome<void> asked = ask(digest, there, size); !asked) return asked;
    there = find_usable(digest).has_value();
  }
  const Outcome<void> made = there ? writer_->drop() : writer_->publish(digest);
  const bool published = made && !there;
  if (!made && made.error().code != ErrorClass::already_exists) {
    ask_.failed(made.error().message);
    return made;
  }
  if (const Outcome<void> used = use(digest, size, labels, published && store_.blobs_.is_guarded(digest));
      !used)
    return used;
  if (published) {
    store_.metrics_->add(Count::pulled_blobs);
    store_.metrics_->add(Count::pulled_bytes, size);
  } else {
    store_.metrics_->add(Count::adopted_blobs);  // downloaded in vain: nothing was saved
  }
  return {};
}

Outcome<WriteAnswer> WriteSession::commit_adopted(const WriteMessage& message) {
  if (const Outcome<void> labels = check_labels(message.labels); !labels)
    return std::unexpected(labels.error());
  const Adoption& adopted = *adoption_;
  if (!message.data.empty() || (message.offset != 0 && message.offset != adopted.size))
    return fail(ErrorClass::out_of_range, fmt::format("all {} bytes are there already", adopted.size));
  if (message.total > 0 && message.total != adopted.size)
    return fail(ErrorClass::failed_precondition,
                fmt::format("there are {} bytes, expected {}", adopted.size, message.total));
  if (expected_ && *expected_ != adopted.digest)
    return fail(ErrorClass::failed_precondition,
                fmt::format("the digest is {}, expected {}", adopted.digest.text(), expected_->text()));
  const Outcome<KeyLocks::Held> held = store_.digests_.take(adopted.digest.text());
  if (!held) return std::unexpected(held.error());
  if (!store_.has(adopted.digest)) {
    const Outcome<bool> again =
        store_.lives_.use_again(info_of(adopted.digest, adopted.size, message.labels));
    if (!again) return std::unexpected(again.error());
    if (!*again) {
      if (!ask_.is_for(adopted.digest) || !ask_.still_valid())
        if (const Outcome<void> asked = ask(adopted.digest, true, adopted.size); !asked)
          return std::unexpected(asked.error());
      if (const Outcome<void> used = use(adopted.digest, adopted.size, message.labels, false); !used)
        return std::unexpected(used.error());
    }
    store_.metrics_->add(Count::adopted_blobs);
    store_.metrics_->add(Count::saved_bytes, adopted.size);
  }
  // Of a download that was interrupted before another node went on with it.
  if (const Outcome<void> dropped = store_.blobs_.drop_ingest(ref_); !dropped)
    log_warning("an ingest could not be removed", {{"error", dropped.error().message}});
  committed_ = true;
  total_ = adopted.size;
  return answer(adopted.size, adopted.since, Timestamp::now(), adopted.digest.text());
}

BlobInfo WriteSession::info_of(const Digest& digest, int64_t size, const Labels& labels) {
  const Timestamp now = Timestamp::now();
  BlobInfo info{digest, size, now, now, labels};
  std::erase_if(info.labels, [](const auto& label) { return label.second.empty(); });
  return info;
}

Outcome<void> WriteSession::use(const Digest& digest, int64_t size, const Labels& labels, bool guarded) {
  pause("before a blob is used");
  if (!guarded) {
    const Outcome<bool> linked = store_.blobs_.guard(digest);
    if (!linked && linked.error().code == ErrorClass::not_found) {
      ask_.failed("it was removed meanwhile");
      return not_now(digest, "it was removed meanwhile");
    }
    if (!linked) {
      ask_.failed(linked.error().message);
      return std::unexpected(linked.error());
    }
    guarded = *linked;
  }
  // Looked at once more, now that it counts: where there are no second names, it may have gone meanwhile.
  if (!guarded && !store_.blobs_.find_published(digest)) {
    ask_.failed("it was removed meanwhile");
    return not_now(digest, "it was removed meanwhile");
  }
  pause("before the server is told of a use");
  if (const Outcome<void> used = store_.lives_.use(ask_, info_of(digest, size, labels), guarded); !used) {
    ask_.failed(used.error().message);
    return used;
  }
  ask_ = {};
  committed_ = true;
  return {};
}

}  // namespace turnstile::content
