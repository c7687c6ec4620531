// Which of several servers to ask: the one that leads, as far as is known.
#pragma once

#include <cstdint>
#include <list>
#include <stop_token>
#include <string>
#include <vector>

#include "base/sync.h"
#include "client/timing.h"
#include "turnstile/settings.h"

namespace turnstile::client {

// The servers of the settings, and what was heard of them. The one that answered last is asked first; one
// that did not answer is *suspected* for a while: it is asked again only when there is no other, even if
// others say that it leads. A leader that is not in the settings is followed as decision 0027 allows.
//
// Threads: every member may be called by any number of threads.
class ServerList {
 public:
  explicit ServerList(const ClientSettings& settings);

  size_t count() const { return servers_.size(); }
  std::string current() const;

  // `server` has done what only a leader does. Streams of other servers end: their servers do not lead any
  // more, even if they cannot say so.
  void answered(const std::string& server);
  // `server` has not; the next one's turn, unless others have moved on already.
  void move_on_from(const std::string& server, Steady::time_point now);
  // It took `took` not to answer.
  void suspect(const std::string& server, Steady::duration took, Steady::time_point now);
  enum class Follow : uint8_t {
    yes,
    suspected,  // it did not answer just now, or is `from` itself; the next one's turn
    stranger,   // it is not one of ours, and may not be followed; the next one's turn
  };
  // `from` said that `leader` leads.
  Follow follow(const std::string& from, const std::string& leader, Steady::time_point now);

  // While it lives, a stream of `server` is open, and `stop` is used when another server leads.
  class OpenStream {
   public:
    OpenStream(ServerList& list, const std::string& server);
    ~OpenStream();
    OpenStream(const OpenStream&) = delete;
    OpenStream& operator=(const OpenStream&) = delete;
    std::stop_source& stop() { return place_->stop; }

   private:
    friend class ServerList;
    struct Place {
      std::string server;
      std::stop_source stop;
    };
    ServerList& list_;
    std::list<Place>::iterator place_;
  };

 private:
  struct Suspect {
    std::string server;
    Steady::time_point until;
  };

  bool is_suspected(const std::string& server, Steady::time_point now) const TS_REQUIRES(mutex_);
  void next(Steady::time_point now) TS_REQUIRES(mutex_);

  const std::vector<std::string> servers_;
  const bool with_credential_;
  mutable Mutex mutex_;
  size_t index_ TS_GUARDED_BY(mutex_) = 0;    // in servers_
  std::string leader_ TS_GUARDED_BY(mutex_);  // not in servers_, named by one of them; empty: index_ counts
  std::string led_ TS_GUARDED_BY(mutex_);     // who answered last
  std::vector<Suspect> suspects_ TS_GUARDED_BY(mutex_);
  std::list<OpenStream::Place> streams_ TS_GUARDED_BY(mutex_);
};

}  // namespace turnstile::client
