# Precompiled headers: half of the time of a file went into reading what nearly every file includes (decision 0022).
#
# There is one set for each kind of code, not for each folder. g++ takes a set only for a file that is compiled with the
# same options, and says so otherwise, which is an error here (-Winvalid-pch). Only headers of other people's are in a
# set: ours change. And only what most files include: with simdjson in it every file took a quarter longer.
# A set must not hide that an #include is missing: the preset `clang`, with which clang-tidy reads what has changed, does
# without.
option(TURNSTILE_PRECOMPILED "Read the headers that most files include once for all of them" ON)

set(common_headers
  <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <cstring> <deque> <expected> <functional> <map>
  <memory> <mutex> <optional> <set> <shared_mutex> <span> <stop_token> <string> <string_view> <thread> <unordered_map>
  <unordered_set> <utility> <variant> <vector> <fmt/format.h>)

# The code of a folder may become part of a shared library (cmake/install.cmake). All of it is compiled so, that there
# be one set. turnstiled is not affected: it is compiled when it is linked (decision 0014), as the executable it is.
function(turnstile_library_code target)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# turnstile_precompiled_set(SET [OPTIONS ...] [HEADERS ...] [USES ...]): compiled only if somebody uses it.
function(turnstile_precompiled_set set)
  cmake_parse_arguments(ARG "" "" "OPTIONS;HEADERS;USES" ${ARGN})
  add_library(precompiled_${set} OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
  target_compile_options(precompiled_${set} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(precompiled_${set} PRIVATE turnstile_options ${ARG_USES})
  target_precompile_headers(precompiled_${set} PRIVATE ${common_headers} ${ARG_HEADERS})
endfunction()

if(TURNSTILE_PRECOMPILED)
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
  turnstile_precompiled_set(code)
  turnstile_library_code(precompiled_code)
  if(TURNSTILE_WHOLE)
    turnstile_precompiled_set(whole_code OPTIONS ${TURNSTILE_WHOLE_OPTIONS})
    turnstile_library_code(precompiled_whole_code)
  endif()
  if(TURNSTILE_TESTS)
    find_package(GTest REQUIRED)
    turnstile_precompiled_set(tests OPTIONS ${TURNSTILE_TEST_OPTIONS} HEADERS <gtest/gtest.h> <gmock/gmock.h>
      USES GTest::gtest GTest::gmock)
  endif()
endif()

# turnstile_precompiled(TARGET SET): the target's files begin with the headers of this set.
function(turnstile_precompiled target set)
  if(TURNSTILE_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM precompiled_${set})
  endif()
endfunction()
