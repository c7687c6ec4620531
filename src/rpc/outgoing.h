// Bytes on their way to a socket, in one call of the kernel's: small ones copied here, large ones where they
// lie.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace turnstile::rpc {

class Outgoing {
 public:
  void add(std::string_view bytes);
  void add(std::shared_ptr<const char[]> owner, std::string_view bytes);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  enum class Sent { all, some, broken };
  // As much as the socket takes now.
  Sent send_to(int fd);

 private:
  struct Piece {
    std::shared_ptr<const char[]> owner;  // none: `at` is a place in copied_, which may move
    const char* data;
    size_t at, size;
  };

  std::string_view bytes_of(const Piece& piece) const {
    return {piece.owner ? piece.data : copied_.data() + piece.at, piece.size};
  }
  void drop(size_t sent);

  std::string copied_;
  std::vector<Piece> pieces_;
  size_t first_ = 0;  // of pieces_ that is not sent
  size_t gone_ = 0;   // of that piece
  size_t size_ = 0;
};

}  // namespace turnstile::rpc
