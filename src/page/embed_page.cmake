# Run by the build as `cmake -D OUT=page_texts.cc -P embed_page.cmake -- FILE...`: writes a source file that holds these files.
# In pieces, because a compiler need not take a literal of more than 65,536 characters.
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

set(rows "")
set(after OFF)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  set(file "${CMAKE_ARGV${i}}")
  if(NOT after)
    if(file STREQUAL "--")
      set(after ON)
    endif()
    continue()
  endif()
  get_filename_component(name "${file}" NAME)
  string(REGEX REPLACE ".*\\." "" kind "${name}")
  file(SHA256 "${file}" hash)
  string(SUBSTRING ${hash} 0 32 hash)
  file(READ "${file}" text)
  string(LENGTH "${text}" length)
  set(pieces "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 piece)
    string(APPEND pieces "     R\"embedded(${piece})embedded\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  string(APPEND rows "    {\"${name}\", \"${type_${kind}}\", \"\\\"${hash}\\\"\",\n${pieces}    },\n")
endforeach()
file(WRITE "${OUT}" "// Made from the files of src/page by embed_page.cmake.
#include <array>

#include \"page/page_files.h\"

namespace turnstile {

const PageFile* find_page_file(std::string_view name) {
  static constexpr auto kFiles = std::to_array<PageFile>({
${rows}  });
  for (const PageFile& file : kFiles)
    if (file.name == name) return &file;
  return nullptr;
}

}  // namespace turnstile
")
