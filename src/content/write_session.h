// One Write stream of containerd's: which rules its messages follow, without the gRPC.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "content/content_store.h"
#include "content/writer.h"

namespace turnstile::content {

enum class WriteAction : uint8_t { stat, write, commit };

struct WriteMessage {
  WriteAction action = WriteAction::stat;
  std::string_view ref;  // in the first message
  int64_t total = 0;
  std::string_view expected;
  int64_t offset = 0;
  std::string_view data;
  Labels labels;  // with commit
};

struct WriteAnswer {
  Timestamp started, updated;
  int64_t offset = 0, total = 0;
  std::string digest;  // empty: not known yet
};

// Either a blob is written through it, or one that is there already is adopted: then the first answer says
// that all bytes are there, containerd sends none, and its commit makes the blob this node's.
//
// Destroying it keeps what was written and frees the ref and the ticket, however the stream ended.
// Threads: one at a time.
class WriteSession {
 public:
  explicit WriteSession(ContentStore& store) : store_(store) {}
  ~WriteSession();
  WriteSession(const WriteSession&) = delete;
  WriteSession& operator=(const WriteSession&) = delete;

  // An error ends the stream. `unavailable` makes containerd ask again, if it was the first message.
  Outcome<WriteAnswer> handle(const WriteMessage& message);
  // Hashes what was written, while the client works on the answer. `data`: of the message just handled.
  void catch_up(std::string_view data);
  // Nothing has come for long: the right is given away, so that the next node need not wait. What was written
  // stays, and the stream may go on; its commit asks anew.
  void stalled();
  bool committed() const { return committed_; }

 private:
  struct Adoption {
    Digest digest;
    int64_t size;
    Timestamp since;
  };

  Outcome<void> open(const WriteMessage& message);
  Outcome<void> arbitrate(const Digest& digest);
  // `good`: the file that was found to be intact before, if any.
  Outcome<OpenBlob> find_intact(const Digest& digest, const FileId& good = {});
  // The same, of what this node may use: alone it cannot keep what lies on another node's disk.
  Outcome<OpenBlob> find_usable(const Digest& digest, const FileId& good = {});
  std::unexpected<ContentError> give_up(const ContentError& error);
  // Asks for the right to write or adopt it, by whether it is there.
  Outcome<void> ask(const Digest& digest, bool is_there, int64_t size);
  Outcome<void> note_expectations(const WriteMessage& message);
  Outcome<WriteAnswer> answer(int64_t offset, const Timestamp& started, const Timestamp& updated,
                              std::string digest) const;

  Outcome<WriteAnswer> stat();
  Outcome<WriteAnswer> write(const WriteMessage& message);
  Outcome<WriteAnswer> commit_written(const WriteMessage& message);
  Outcome<WriteAnswer> commit_adopted(const WriteMessage& message);
  Outcome<void> make_blob(const Digest& digest, int64_t size, const Labels& labels);
  // Of what is published: gives it a second name, and makes it this node's.
  Outcome<void> use(const Digest& digest, int64_t size, const Labels& labels, bool guarded);
  static BlobInfo info_of(const Digest& digest, int64_t size, const Labels& labels);
  std::unexpected<ContentError> not_now(const Digest& digest, const std::string& why);
  std::unexpected<ContentError> exists_already(const Digest& digest);

  ContentStore& store_;
  bool opened_ = false, committed_ = false;
  bool needless_ = false;  // the blob turned out to be this node's already
  std::string ref_;
  int64_t total_ = 0;
  std::optional<Digest> expected_;
  Lives::Ask ask_;       // of nothing: the blob is this node's already, or its digest is not known yet
  bool adopts_ = false;  // with ask_: another node has finished it
  bool alone_ = false;   // with ask_: nobody counts this node
  std::optional<Adoption> adoption_;
  std::unique_ptr<Writer> writer_;  // else
};

}  // namespace turnstile::content
