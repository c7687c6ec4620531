# Compiler settings, and the functions with which every folder declares itself.

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)

add_library(turnstile_options INTERFACE)
target_include_directories(turnstile_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(turnstile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion -Werror
  -fno-omit-frame-pointer)
target_link_libraries(turnstile_options INTERFACE Threads::Threads fmt::fmt spdlog::spdlog)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++ 12 uses in its own stable_sort what it calls deprecated.
  target_compile_options(turnstile_options INTERFACE -Wthread-safety -Wthread-safety-beta -Wno-deprecated-declarations)
else()
  # g++ 12 reports these in its own library's inlined code.
  target_compile_options(turnstile_options INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-maybe-uninitialized)
endif()
if(TURNSTILE_SANITIZE)
  target_compile_options(turnstile_options INTERFACE -fsanitize=${TURNSTILE_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(turnstile_options INTERFACE -fsanitize=${TURNSTILE_SANITIZE})
  if(TURNSTILE_SANITIZE MATCHES "thread" AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # It does not understand fences. Ours order atomics among themselves; no plain data depends on them.
    target_compile_options(turnstile_options INTERFACE -Wno-tsan)
  endif()
endif()

# turnstiled is optimized as a whole (docs/decisions/0014-optimized-as-a-whole.md). Everything else links the same
# objects the usual way, in a fraction of the time: they hold both kinds of code.
set(TURNSTILE_WHOLE OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE MATCHES "^Rel" AND NOT TURNSTILE_SANITIZE)
  set(TURNSTILE_WHOLE ON)
  target_link_options(turnstile_options INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:TURNSTILE_WHOLE>>>:-fno-lto>)
endif()

# turnstile_folder(NAME [WHOLE] SOURCES ... USES ...): the library of src/NAME and what it may use.
# WHOLE: it is part of a program that is optimized as a whole.
function(turnstile_folder name)
  cmake_parse_arguments(ARG "WHOLE" "" "SOURCES;USES" ${ARGN})
  add_library(ts_${name} STATIC ${ARG_SOURCES})
  if(ARG_WHOLE AND TURNSTILE_WHOLE)
    target_compile_options(ts_${name} PRIVATE -flto=auto -ffat-lto-objects)
  endif()
  target_link_libraries(ts_${name} PUBLIC turnstile_options ${ARG_USES})
endfunction()

# turnstile_test(NAME SOURCES ... USES ... [LABELS ...]): one test program; each TEST in it is a test of CTest's.
function(turnstile_test name)
  if(NOT TURNSTILE_TESTS)
    return()
  endif()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_USES} turnstile_options GTest::gtest GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  set(properties TIMEOUT 300)
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${name}/" DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

# turnstile_bench(NAME SOURCES ... USES ...): one Google Benchmark program.
function(turnstile_bench name)
  if(NOT TURNSTILE_BENCH)
    return()
  endif()
  find_package(benchmark REQUIRED)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_USES} turnstile_options benchmark::benchmark_main benchmark::benchmark)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endfunction()
