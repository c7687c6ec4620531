#include "base/file_text.h"

#include <array>
#include <fstream>

namespace turnstile {

std::optional<std::string> file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text;
  for (std::array<char, 4096> part; file.read(part.data(), part.size()) || file.gcount() > 0;)
    text.append(part.data(), size_t(file.gcount()));
  if (file.bad()) return std::nullopt;
  return text;
}

}  // namespace turnstile
