# The Debian packages, by CPack: turnstile-server, turnstile, turnstile-content and libturnstile-dev, one for each install
# component (./dev package). What is not a program or the library is installed here, too: units, settings, man pages.
# docs/decisions/0031 says why so.
# EXCLUDE_FROM_ALL: `cmake --install` puts nothing of this anywhere; a package is made of a component.
set(units /lib/systemd/system)  # where Debian 12 has them
set(packaging ${PROJECT_SOURCE_DIR}/packaging)

function(turnstile_documents package component)
  install(FILES ${packaging}/deb/copyright ${CMAKE_BINARY_DIR}/packages-made/changelog.Debian.gz
    DESTINATION share/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# Made once, so that two builds of one version are the same: no time in the gzip, that of the last commit in the change log.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/packages-made)
function(turnstile_gzip from to)
  add_custom_command(OUTPUT ${to} COMMAND gzip -9nc ${from} > ${to} DEPENDS ${from} VERBATIM)
endfunction()
configure_file(${packaging}/deb/changelog.in ${CMAKE_BINARY_DIR}/packages-made/changelog @ONLY)
set(made ${CMAKE_BINARY_DIR}/packages-made/changelog.Debian.gz)
turnstile_gzip(${CMAKE_BINARY_DIR}/packages-made/changelog ${CMAKE_BINARY_DIR}/packages-made/changelog.Debian.gz)
foreach(page turnstile.1 turnstile-content.8 turnstiled.8)
  configure_file(${packaging}/man/${page} ${CMAKE_BINARY_DIR}/packages-made/${page} @ONLY)
  turnstile_gzip(${CMAKE_BINARY_DIR}/packages-made/${page} ${CMAKE_BINARY_DIR}/packages-made/${page}.gz)
  list(APPEND made ${CMAKE_BINARY_DIR}/packages-made/${page}.gz)
endforeach()
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/packages-made/turnstile.bash
  COMMAND $<TARGET_FILE:turnstile> completion bash > ${CMAKE_BINARY_DIR}/packages-made/turnstile.bash
  DEPENDS turnstile VERBATIM)
list(APPEND made ${CMAKE_BINARY_DIR}/packages-made/turnstile.bash)
add_custom_target(package_files ALL DEPENDS ${made})
add_dependencies(package_files turnstiled turnstile turnstile-content turnstile_shared turnstile_testing)

# The command line for the tar file (packaging/make), which brings its libraries along: RPATH, not RUNPATH, so that they find each
# other, too. Not static: Debian's libcurl.a wants libraries that Debian has only as shared ones.
add_executable(turnstile_alone EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/src/cli/main.cc)
target_link_libraries(turnstile_alone PRIVATE ts_cli)
target_link_options(turnstile_alone PRIVATE LINKER:--disable-new-dtags LINKER:--as-needed)
set_target_properties(turnstile_alone PROPERTIES OUTPUT_NAME turnstile-alone RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/alone
  BUILD_RPATH \$ORIGIN/lib)

# systemd reads drop-ins in the order of their names: 10-package.conf before the override.conf of `systemctl edit`.
# turnstile-server
install(FILES ${packaging}/turnstiled.service ${packaging}/turnstiled.socket DESTINATION ${units} COMPONENT server EXCLUDE_FROM_ALL)
install(FILES ${packaging}/deb/turnstiled-package.conf DESTINATION ${units}/turnstiled.service.d RENAME 10-package.conf COMPONENT server EXCLUDE_FROM_ALL)
install(FILES ${packaging}/deb/turnstile-sysusers.conf DESTINATION lib/sysusers.d RENAME turnstile.conf COMPONENT server EXCLUDE_FROM_ALL)
install(FILES ${packaging}/deb/turnstiled.toml DESTINATION /etc/turnstile COMPONENT server EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_BINARY_DIR}/packages-made/turnstiled.8.gz DESTINATION share/man/man8 COMPONENT server EXCLUDE_FROM_ALL)
install(FILES ${packaging}/grafana/turnstile.json ${packaging}/prometheus/turnstile.rules.yml
  DESTINATION share/doc/turnstile-server COMPONENT server EXCLUDE_FROM_ALL)
turnstile_documents(turnstile-server server)
# turnstile
install(FILES ${CMAKE_BINARY_DIR}/packages-made/turnstile.bash DESTINATION share/bash-completion/completions RENAME turnstile COMPONENT cli EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_BINARY_DIR}/packages-made/turnstile.1.gz DESTINATION share/man/man1 COMPONENT cli EXCLUDE_FROM_ALL)
turnstile_documents(turnstile cli)
# turnstile-content
install(FILES ${packaging}/turnstile-content.service ${packaging}/turnstile-content.socket DESTINATION ${units} COMPONENT content EXCLUDE_FROM_ALL)
install(FILES ${packaging}/deb/turnstile-content-package.conf DESTINATION ${units}/turnstile-content.service.d RENAME 10-package.conf COMPONENT content EXCLUDE_FROM_ALL)
install(FILES ${packaging}/deb/turnstile-content.toml DESTINATION /etc/turnstile COMPONENT content EXCLUDE_FROM_ALL)
install(FILES ${packaging}/containerd-config-1.6.toml ${packaging}/containerd-config-2.x.toml
  DESTINATION share/doc/turnstile-content/examples COMPONENT content EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_BINARY_DIR}/packages-made/turnstile-content.8.gz DESTINATION share/man/man8 COMPONENT content EXCLUDE_FROM_ALL)
turnstile_documents(turnstile-content content)
turnstile_documents(libturnstile-dev library)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME turnstile)
set(CPACK_PACKAGE_VENDOR Turnstile)
set(CPACK_PACKAGE_CONTACT "The Turnstile project <maintainers@turnstile.example>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL server cli content library)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# A directory that dpkg makes is everybody's to enter, whatever umask the builder has.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})

set(about "Turnstile is a lock server for work that has to be done once in a whole
cluster: fetch this image layer, build this artefact, migrate this table.
It knows how the work ended: when it succeeded everybody else skips it, when
it failed or its holder died the next one takes over.\n\n")
set(CPACK_DEBIAN_SERVER_PACKAGE_NAME turnstile-server)
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "adduser, init-system-helpers (>= 1.54~)")
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS "turnstile (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
  "${packaging}/deb/server/conffiles;${packaging}/deb/server/postinst;${packaging}/deb/server/prerm;${packaging}/deb/server/postrm")
set(CPACK_COMPONENT_SERVER_DESCRIPTION "lock server for work that is done once in a cluster\n${about}This package has the server, turnstiled, with its unit for systemd.")
set(CPACK_DEBIAN_CLI_PACKAGE_NAME turnstile)
set(CPACK_DEBIAN_CLI_PACKAGE_SECTION admin)
set(CPACK_COMPONENT_CLI_DESCRIPTION "command line of the lock server Turnstile\n${about}This package has the program turnstile: locks for scripts, and tools\nfor operators.")
set(CPACK_DEBIAN_CONTENT_PACKAGE_NAME turnstile-content)
set(CPACK_DEBIAN_CONTENT_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_CONTENT_PACKAGE_DEPENDS "init-system-helpers (>= 1.54~)")
set(CPACK_DEBIAN_CONTENT_PACKAGE_SUGGESTS "containerd, turnstile")
set(CPACK_DEBIAN_CONTENT_PACKAGE_CONTROL_EXTRA
  "${packaging}/deb/content/conffiles;${packaging}/deb/content/postinst;${packaging}/deb/content/prerm;${packaging}/deb/content/postrm")
set(CPACK_COMPONENT_CONTENT_DESCRIPTION "containerd content store that many nodes share\n${about}This package has the plugin turnstile-content: every layer is downloaded once.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libturnstile-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${packaging}/deb/library/triggers")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "client of the lock server Turnstile for C++ programs\n${about}This package has the library, its headers, and a server inside your\ntests.")
include(CPack)
