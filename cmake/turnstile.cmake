# Compiler settings, and the functions with which every folder declares itself.

# What must be said to ccache about precompiled headers (its manual): files that begin with one are known by it alone.
# And that it does not matter where a clone is: a second one takes what the first has compiled.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)

add_library(turnstile_options INTERFACE)
target_include_directories(turnstile_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(turnstile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion -Werror
  -fno-omit-frame-pointer -pthread)
target_link_libraries(turnstile_options INTERFACE Threads::Threads fmt::fmt spdlog::spdlog)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++ 12 uses in its own stable_sort what it calls deprecated. And who names the fields that matter leaves out
  # the others on purpose.
  target_compile_options(turnstile_options INTERFACE -Wthread-safety -Wthread-safety-beta -Wno-deprecated-declarations
    -Wno-missing-designated-field-initializers)
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
  set(TURNSTILE_WHOLE_OPTIONS -flto=auto -ffat-lto-objects)
  target_link_options(turnstile_options INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:TURNSTILE_WHOLE>>>:-fno-lto>)
endif()

# What need not be fast is not optimized: tests wait for the code that they test, seldom for their own. Sanitizers keep
# their level: what they add is slow enough.
set(TURNSTILE_TEST_OPTIONS)
set(TURNSTILE_COLD_OPTIONS)
if(CMAKE_BUILD_TYPE MATCHES "^Rel" AND NOT TURNSTILE_SANITIZE)
  set(TURNSTILE_TEST_OPTIONS -O0)
  set(TURNSTILE_COLD_OPTIONS -O1)
endif()

include(cmake/precompiled.cmake)

# What nobody changes line by line is compiled five files at a time, for they share headers and templates: less than half
# the compiler's time. So what such a file calls its own must have a name of its own in the folder.
option(TURNSTILE_TOGETHER "Compile the files of a test together" ON)
function(turnstile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TURNSTILE_TOGETHER} UNITY_BUILD_BATCH_SIZE 5)
endfunction()

# turnstile_folder(NAME [WHOLE] SOURCES ... [COLD ...] USES ...): the library of src/NAME and what it may use.
# WHOLE: it is part of a program that is optimized as a whole.
# COLD: more sources, that run once in a process's life or at a person's pace, and take long to optimize. Not for a
# folder that is WHOLE: a template that such a file has in common with others would be taken from it.
function(turnstile_folder name)
  cmake_parse_arguments(ARG "WHOLE" "" "SOURCES;COLD;USES" ${ARGN})
  add_library(ts_${name} STATIC ${ARG_SOURCES} ${ARG_COLD})
  turnstile_library_code(ts_${name})
  if(ARG_WHOLE AND TURNSTILE_WHOLE)
    target_compile_options(ts_${name} PRIVATE ${TURNSTILE_WHOLE_OPTIONS})
    turnstile_precompiled(ts_${name} whole_code)
  else()
    turnstile_precompiled(ts_${name} code)
  endif()
  if(ARG_COLD AND TURNSTILE_COLD_OPTIONS)
    set_source_files_properties(${ARG_COLD} PROPERTIES
      COMPILE_OPTIONS "${TURNSTILE_COLD_OPTIONS}" SKIP_PRECOMPILE_HEADERS ON)
  endif()
  target_link_libraries(ts_${name} PUBLIC turnstile_options ${ARG_USES})
endfunction()

# turnstile_test(NAME [OPTIMIZED] SOURCES ... USES ... [LABELS ...]): one test program; each TEST in it is a test of
# CTest's. OPTIMIZED: its own code is what takes the time, not the code that it tests.
function(turnstile_test name)
  if(NOT TURNSTILE_TESTS)
    return()
  endif()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  cmake_parse_arguments(ARG "OPTIMIZED" "" "SOURCES;USES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(NOT ARG_OPTIMIZED)
    target_compile_options(${name} PRIVATE ${TURNSTILE_TEST_OPTIONS})
    turnstile_precompiled(${name} tests)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_USES} turnstile_options GTest::gtest GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  turnstile_together(${name})
  set(properties TIMEOUT 300)
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  gtest_discover_tests(${name} NO_PRETTY_VALUES TEST_PREFIX "${name}/" DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

add_custom_target(benchmarks)  # all programs of build/bench/

# turnstile_bench_program(NAME SOURCES ... USES ...): a program of build/bench/ with a main() of its own.
function(turnstile_bench_program name)
  if(NOT TURNSTILE_BENCH)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_USES} turnstile_options)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  add_dependencies(benchmarks ${name})
endfunction()

# turnstile_bench(NAME SOURCES ... USES ...): one Google Benchmark program.
function(turnstile_bench name)
  if(NOT TURNSTILE_BENCH)
    return()
  endif()
  find_package(benchmark REQUIRED)
  turnstile_bench_program(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE benchmark::benchmark_main benchmark::benchmark)
endfunction()
