# What `cmake --install` puts where: the programs, and the client library as two shared libraries with their headers,
# CMake package and pkg-config files.
#
# libturnstile is what programs link; libturnstile_testing is the fake server for their tests, on top of it, so that
# both use one and the same LockClient. Each shows only what its version script names; third-party code stays inside.
include(GNUInstallDirs)
# Where Debian has libraries, so that those of another architecture can stand beside them. CMake does so by itself for the prefix
# /usr only, and the packages are made of what is configured for another one.
option(TURNSTILE_MULTIARCH "on Debian: libraries below lib/ARCHITECTURE, not lib" ON)
if(TURNSTILE_MULTIARCH AND EXISTS /etc/debian_version AND CMAKE_LIBRARY_ARCHITECTURE AND CMAKE_INSTALL_LIBDIR STREQUAL lib)
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE})
  set(CMAKE_INSTALL_FULL_LIBDIR ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR})
endif()
include(CMakePackageConfigHelpers)

# Each component is a package (cmake/packages.cmake).
foreach(each turnstiled:server turnstile:cli turnstile-content:content)
  string(REPLACE ":" ";" each ${each})
  list(GET each 0 program)
  list(GET each 1 component)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
  endif()
endforeach()

if(NOT TARGET ts_client)
  return()
endif()

# turnstile_shared_library(TARGET OUTPUT EXPORTED_NAME SOURCES ... USES ... PUBLIC_USES ...)
function(turnstile_shared_library name)
  cmake_parse_arguments(ARG "" "OUTPUT;EXPORTED_NAME" "SOURCES;USES;PUBLIC_USES" ${ARGN})
  set(map ${PROJECT_SOURCE_DIR}/cmake/lib${ARG_OUTPUT}.map)
  add_library(${name} SHARED ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC_USES} PRIVATE ${ARG_USES})
  target_link_options(${name} PRIVATE LINKER:--version-script=${map} LINKER:--as-needed)
  if(NOT TURNSTILE_SANITIZE)
    target_link_options(${name} PRIVATE LINKER:--no-undefined)
  endif()
  target_include_directories(${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${name} INTERFACE cxx_std_23)  # std::expected
  # While the version is 0.x, each x has a binary interface of its own.
  set_target_properties(${name} PROPERTIES
    OUTPUT_NAME ${ARG_OUTPUT} EXPORT_NAME ${ARG_EXPORTED_NAME} LINKER_LANGUAGE CXX LINK_DEPENDS ${map}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH $ORIGIN)
  install(TARGETS ${name} EXPORT turnstile LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
endfunction()

# turnstile_pkg_config(NAME): from cmake/NAME.pc.in. Its prefix is relative to itself: a tree may be moved.
function(turnstile_pkg_config name)
  file(RELATIVE_PATH prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  set(PC_PREFIX "\${pcfiledir}/${prefix}")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endfunction()

find_package(CURL REQUIRED)
set(objects $<TARGET_OBJECTS:ts_client>)
set(libraries ts_base CURL::libcurl simdjson)
if(TARGET ts_refcount)
  find_package(SQLite3 REQUIRED)
  list(APPEND objects $<TARGET_OBJECTS:ts_refcount>)
  list(APPEND libraries SQLite::SQLite3)
endif()
turnstile_shared_library(turnstile_shared OUTPUT turnstile EXPORTED_NAME turnstile
  SOURCES ${objects} USES ${libraries} PUBLIC_USES Threads::Threads)
turnstile_pkg_config(turnstile)
if(TARGET ts_fake)
  turnstile_shared_library(turnstile_testing OUTPUT turnstile_testing EXPORTED_NAME testing
    SOURCES $<TARGET_OBJECTS:ts_fake> USES ts_carry_out ts_engine ts_api ts_events PUBLIC_USES turnstile_shared)
  turnstile_pkg_config(turnstile-testing)
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/turnstile DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
  FILES_MATCHING PATTERN "*.h")
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/turnstile)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/turnstileConfig.cmake.in
  ${CMAKE_BINARY_DIR}/turnstileConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/turnstileConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/turnstileConfig.cmake ${CMAKE_BINARY_DIR}/turnstileConfigVersion.cmake
  DESTINATION ${package} COMPONENT library)
install(EXPORT turnstile NAMESPACE turnstile:: FILE turnstileTargets.cmake DESTINATION ${package} COMPONENT library)

if(TURNSTILE_TESTS AND TARGET turnstiled AND TARGET ts_fake)
  add_subdirectory(${PROJECT_SOURCE_DIR}/test/install ${CMAKE_BINARY_DIR}/test/install)
endif()
