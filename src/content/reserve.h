// Room on the disk of --state that is kept for the worst moment.
//
// To remove an image the node's database must write a line, and to start it needs files beside it: on a disk
// that is full to the last byte neither would go, and only people could help. The room of this file is freed
// then, and taken again when there is enough. Nothing else may use it (NodeState::Room).
#pragma once

#include <cstdint>
#include <string>

namespace turnstile::content {

// Threads: one at a time.
class Reserve {
 public:
  static constexpr int64_t kBytes = 1 << 20;  // some hundred changes

  explicit Reserve(std::string path) : path_(std::move(path)) {}

  // Takes the room, if it is not taken yet and there is four times as much.
  void keep();
  // Frees it. False: there was none.
  bool give_up();

 private:
  const std::string path_;
  bool kept_ = false;
};

}  // namespace turnstile::content
