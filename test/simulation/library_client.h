// libturnstile itself as a simulated client: its waiting, retrying and renewing, on simulated connections and
// in virtual time. Apart from the other clients, because the library's headers and the server's have names in
// common.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "history.h"
#include "schedule.h"

namespace turnstile::sim {

struct LibraryWork {
  std::string node;
  std::vector<std::string> servers;
  std::string type, resource, scope;
  unsigned way = 0;     // of waiting: long poll, stream, status poll, automatic
  unsigned how = 0;     // the work ends: success, failure, for good
  Duration lease{};     // 0: none
  Duration work{};      // how long it takes
  Duration patience{};  // for the lock
};

// One lock(), the work, and its release(). Begins when it is made.
class LibraryClient {
 public:
  using Connect = std::function<LinkPtr(Remote&, std::string_view server)>;

  LibraryClient(const LibraryWork& work, Schedule& schedule, History& history, Connect connect);
  ~LibraryClient();

  bool finished() const;
  // What the library did that it must not do.
  const std::vector<std::string>& violations() const;
  const std::string& outcome() const;  // "acquired", "skipped", or the error

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace turnstile::sim
