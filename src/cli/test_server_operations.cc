// The server's half of operations_test.cc: the engine's names and the library's are alike, so no file
// includes both.
#include "engine/settings.h"

namespace turnstile::cli {

std::vector<std::string> operations_of_server() {
  std::vector<std::string> names;
  for (const OperationRules& rules : default_operations(false)) names.push_back(rules.name);
  return names;
}

}  // namespace turnstile::cli
