// Who may write or remove a blob, when several nodes share one directory: the questions, not the answers.
//
// Lives asks (lives.h); an implementation decides, alone (alone_arbiter.h) or with the lock server
// (lock_arbiter.h). No question of a beginning may wait for another node: containerd asks inside a
// transaction of its own, and is told to come again instead.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "content/digest.h"

namespace turnstile::content {

// The right to do one piece of work, given back in whatever way the work ends.
//
// Ended once: by succeeded() or failed(), or by being destroyed, which is failed("abandoned"). What comes
// after that is ignored. Threads: one at a time.
class Ticket {
 public:
  virtual ~Ticket() = default;

  virtual void progress(int64_t done, int64_t total) = 0;  // total 0: not known
  // False when somebody else may have been given the right meanwhile. Of a removal it is true only if whoever
  // gave the right has just confirmed it.
  virtual bool still_valid() = 0;
  // The blob is published, and this node uses it; or, of a removal: it is gone. True: this was *confirmed*,
  // so that nobody takes away what this node uses. False: it may not be known.
  virtual bool succeeded() = 0;
  virtual void failed(const std::string& why) = 0;
};

struct Decision {
  enum class Kind : uint8_t {
    write,  // go on and write, with the ticket
    adopt,  // it is there; use it, with the ticket (whose success makes this node one of its users)
    wait,   // another node is working on it: come again
    error,
  };
  Kind kind = Kind::error;
  std::unique_ptr<Ticket> ticket{};  // with write and adopt
  std::string why{};                 // with wait and error
  // Whether this node may now count as a user, whatever becomes of this: then that must be undone.
  bool may_count = false;
  // Nobody can be asked, so nobody counts it: it keeps only what it has a second name for.
  bool is_alone = false;
};

struct Removal {
  enum class Kind : uint8_t {
    settled,            // this node does not count any more; others use the blob, or have removed it
    later,              // it does not count any more; but another is at the blob: ask again
    not_asked,          // nobody could be asked now
    unknown,            // was asked, and no answer came: it may be taken out of the count at any moment
    remove_own,         // take it out of this node's own root
    remove_everywhere,  // nobody uses it any more: take it out of every root
  };
  Kind kind = Kind::not_asked;
  std::unique_ptr<Ticket> ticket{};  // with the two removes; held while the files are removed
  // With a ticket: whether it is known which life of the server has decided; and which, if its count was
  // asked.
  bool is_certain = false;
  std::string life{};
};

// Threads: every member may be called by any number of them.
class Arbiter {
 public:
  virtual ~Arbiter() = default;

  // This node wants a blob that it cannot see in any root. `size` 0: not known. `adopt` means that another
  // node has finished it; the caller then looks again, and lets containerd come again if it still is not to
  // be seen.
  virtual Decision begin_write(const Digest& digest, int64_t size) = 0;
  // This node wants a blob that is there. Answers `adopt`, or `wait` while somebody is removing it.
  virtual Decision begin_adoption(const Digest& digest) = 0;
  // Whether an earlier question is still in a queue for this node, and may be answered behind its back.
  virtual bool is_waiting(const Digest&) { return false; }
  // This node does not use the blob any more. `is_there`: some root has it.
  virtual Removal end_use(const Digest& digest, bool is_there) = 0;

  // Whether it is known that the server counts no node as using it; asks.
  virtual bool counts_nobody(const Digest&) { return false; }

  // The life of the server that counts this node's uses, as last seen, or as it says when asked. Empty: not
  // known, or no server counts them. Other nodes take away what this one does not use by that life's count
  // alone, second names too.
  virtual std::string life() const { return {}; }
  virtual std::string ask_life() { return {}; }
  // Whether what was confirmed before may be forgotten by now; to be asked every second or so. From then on
  // all uses count as not confirmed.
  virtual bool has_forgotten() { return false; }
  // This node uses these. For each whether that is confirmed now.
  virtual std::vector<bool> confirm_uses(const std::vector<Digest>& used) = 0;
  // What this node counts as using, where that can be seen, whatever its own database says.
  virtual std::vector<Digest> counted() { return {}; }
  // Whether everybody has had time to say what they use: before that, nothing is removed.
  virtual bool is_settled() { return true; }
  // False: another plugin may have this node's name. What is given up under it now may be what that one uses.
  virtual bool has_its_name() { return true; }
  // Whether questions may take long: then they are asked behind containerd's back where that is possible.
  virtual bool is_remote() const { return false; }
  // What has to be done now and then. Called by one thread.
  virtual void look_after() {}
};

}  // namespace turnstile::content
