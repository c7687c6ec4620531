// The description of the API that the server hands out itself (src/api/openapi.yaml, compiled in).
#pragma once

#include <string_view>

namespace turnstile {

std::string_view openapi_yaml();

}  // namespace turnstile
