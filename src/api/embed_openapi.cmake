# Run by the build as `cmake -D IN=openapi.yaml -D OUT=openapi.cc -P embed_openapi.cmake`: writes a source file that
# holds the text. In pieces, because a compiler need not take a literal of more than 65,536 characters.
file(READ "${IN}" text)
set(pieces "")
string(LENGTH "${text}" length)
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 8000 piece)
  string(APPEND pieces "    R\"openapi(${piece})openapi\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE "${OUT}" "// Made from openapi.yaml by embed_openapi.cmake.
#include \"api/openapi.h\"

namespace turnstile {

std::string_view openapi_yaml() {
  static constexpr std::string_view kText =
${pieces}      ;
  return kText;
}

}  // namespace turnstile
")
