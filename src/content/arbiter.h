// Who may write or remove a blob, when several nodes share one directory: the questions, not the answers.
//
// The content store asks; an implementation decides, alone (alone_arbiter.h) or with the lock server. No call
// may wait for another node: containerd asks inside a transaction of its own, and is told to come again
// instead.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "content/digest.h"

namespace turnstile::content {

// The right to do one piece of work, given back in whatever way the work ends.
//
// Ended once: by succeeded() or failed(), or by being destroyed, which is failed("abandoned"). What comes
// after that is ignored. None of the members fails: work that was done stays done when the server cannot be
// told just now, and the implementation tells it later. Threads: still_valid() and progress() by one, while
// no other call is under way.
class Ticket {
 public:
  virtual ~Ticket() = default;

  virtual void progress(int64_t done, int64_t total) = 0;  // total 0: not known
  // False when somebody else may have been given the right meanwhile.
  virtual bool still_valid() = 0;
  // The blob is published, and this node uses it; or, of a removal: it is gone.
  virtual void succeeded() = 0;
  virtual void failed(const std::string& why) = 0;
};

struct Decision {
  enum class Kind : uint8_t {
    write,  // go on and write, with the ticket
    adopt,  // it is there; use it, with the ticket (whose success makes this node one of its users)
    wait,   // another node is at it: come again
    error,
  };
  Kind kind = Kind::error;
  std::unique_ptr<Ticket> ticket;  // with write and adopt
  std::string why;                 // with wait and error
};

struct Removal {
  enum class Kind : uint8_t {
    keep,               // others use it (or it cannot be known now): only this node's use has ended
    remove_own,         // take it out of this node's own root
    remove_everywhere,  // nobody uses it any more: take it out of every root
  };
  Kind kind = Kind::keep;
  std::unique_ptr<Ticket> ticket;  // with the two removes; held while the files are removed

  // Not `keep`: removes the files by `remove`, while the ticket is good, and tells the ticket. True: they are
  // gone. If not, the log says why.
  bool carry_out(const Digest& digest, const std::function<Outcome<void>()>& remove) const;
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
  // This node does not use the blob any more. Must get through at some time, also when the server is away
  // now.
  virtual Removal forget(const Digest& digest) = 0;
  // At the start: what this node uses, as its own database says, so that the server can be put right.
  virtual void resume(const std::vector<Digest>& used) = 0;
};

}  // namespace turnstile::content
