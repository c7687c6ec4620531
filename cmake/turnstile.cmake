# Compiler settings, and the functions with which every folder declares itself.

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)

add_library(turnstile_options INTERFACE)
target_include_directories(turnstile_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(turnstile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion -Werror
  -fno-omit-frame-pointer)
# simdjson and Boost are compiled with -isystem, so their warnings are theirs.
target_compile_definitions(turnstile_options INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_SEPARATE_COMPILATION)
target_link_libraries(turnstile_options INTERFACE Threads::Threads fmt::fmt spdlog::spdlog)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(turnstile_options INTERFACE -Wthread-safety -Wthread-safety-beta)
else()
  # g++ 12 reports these in its own library's inlined code.
  target_compile_options(turnstile_options INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-maybe-uninitialized)
endif()
if(TURNSTILE_SANITIZE)
  target_compile_options(turnstile_options INTERFACE -fsanitize=${TURNSTILE_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(turnstile_options INTERFACE -fsanitize=${TURNSTILE_SANITIZE})
endif()

# turnstile_folder(NAME SOURCES ... USES ...): the library of src/NAME and what it may use.
function(turnstile_folder name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(ts_${name} STATIC ${ARG_SOURCES})
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
