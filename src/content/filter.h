// containerd's filter language: which blobs or ingests a List is about.
//
//   labels."containerd.io/gc.root",digest~=/^sha256:ab/     both must hold
// Several filters together: one must match; none: everything does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "content/content_error.h"

namespace re2 {
class RE2;
}

namespace turnstile::content {

// One `field`, `field==value`, `field!=value` or `field~=expression`.
struct Selector {
  enum class Operator : uint8_t { present, equal, not_equal, matches };

  std::vector<std::string> path;  // "labels.a.b" is {"labels", "a", "b"}
  Operator op = Operator::present;
  std::string value;
  std::shared_ptr<const re2::RE2> expression;  // with `matches`
};

// Filters, parsed. Threads: matching changes nothing.
class Filter {
 public:
  // The value of a field of the thing in question; none: it has no such field. `key` is what follows the
  // first point of the path: of "labels.a.b" it is "a.b".
  using Field = std::function<std::optional<std::string_view>(std::string_view field, std::string_view key)>;

  // Error invalid_argument: says where the text stops making sense.
  template <class Texts>
  static Outcome<Filter> parse(const Texts& texts) {
    Filter filter;
    for (const auto& text : texts)
      if (Outcome<void> added = filter.add(text); !added) return std::unexpected(added.error());
    return filter;
  }

  bool matches(const Field& field) const;

 private:
  Outcome<void> add(std::string_view text);

  std::vector<std::vector<Selector>> any_of_;
};

}  // namespace turnstile::content
