# What `cmake --install` installs, in components, and the packages that CPack makes of them:
#
#   program      stepsim, its man pages, its completions
#   mpi          what runs under mpirun, if MPI is there
#   python       the Python package, if it is built
#   development  libstepsim.a with all rooms below cli/, headers, and find_package(stepsim)
#
# scripts/make_packages.sh makes all packages, scripts/make_wheel.sh the wheel.
include(GNUInstallDirs)

# ---- the program ----

install(TARGETS stepsim RUNTIME COMPONENT program)
if(TARGET stepsim_mpi)
  install(TARGETS stepsim_mpi LIBRARY DESTINATION lib/stepsim COMPONENT mpi)
endif()

set(manual ${PROJECT_BINARY_DIR}/manual)
add_custom_command(OUTPUT ${manual}/stamp
  COMMAND ${PROJECT_SOURCE_DIR}/scripts/write_pages.sh $<TARGET_FILE:stepsim> ${manual}
  COMMAND ${CMAKE_COMMAND} -E touch ${manual}/stamp
  DEPENDS stepsim ${PROJECT_SOURCE_DIR}/scripts/write_pages.sh)
add_custom_target(stepsim_manual ALL DEPENDS ${manual}/stamp)
install(DIRECTORY ${manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
install(FILES ${manual}/stepsim.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME stepsim COMPONENT program)
install(FILES ${manual}/stepsim.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
  RENAME _stepsim COMPONENT program)
function(stepsim_install_licence component package)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
    RENAME copyright COMPONENT ${component})
endfunction()
stepsim_install_licence(program stepsim)
stepsim_install_licence(development stepsim-dev)
if(TARGET stepsim_mpi)
  stepsim_install_licence(mpi stepsim-mpi)
endif()
if(TARGET stepsim_python)
  stepsim_install_licence(python python3-stepsim)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/stepsim COMPONENT program)

# Apache ECharts is in the program (pages/), and its licence beside it.
if(STEPSIM_ECHARTS)
  foreach(file LICENSE NOTICE)
    install(FILES ${STEPSIM_ECHARTS}/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/stepsim
      RENAME echarts-${file} COMPONENT program)
  endforeach()
endif()

# Of libraries that are headers, code is in the program too: their licences, as Debian installs them.
foreach(headers nlohmann-json3-dev libtomlplusplus-dev libboost-graph-dev)
  set(licence /usr/share/doc/${headers}/copyright)
  if(EXISTS ${licence})
    install(FILES ${licence} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/stepsim RENAME ${headers}-copyright
      COMPONENT program)
  endif()
endforeach()

# ---- the library ----

# One archive of all rooms, so that a user links one thing whatever rooms there are.
get_property(rooms GLOBAL PROPERTY STEPSIM_ROOMS)
set(members "create $<TARGET_FILE_DIR:stepsim>/libstepsim.a\n")
foreach(room ${rooms})
  string(APPEND members "addlib $<TARGET_FILE:${room}>\n")
endforeach()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/library.mri CONTENT "${members}save\nend\n")
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/libstepsim.a
  COMMAND ${CMAKE_COMMAND} -E rm -f libstepsim.a
  COMMAND ${CMAKE_AR} -M < library.mri
  DEPENDS ${rooms} WORKING_DIRECTORY ${PROJECT_BINARY_DIR} VERBATIM)
add_custom_target(stepsim_library ALL DEPENDS ${PROJECT_BINARY_DIR}/libstepsim.a)
install(FILES ${PROJECT_BINARY_DIR}/libstepsim.a DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT development)
install(DIRECTORY analysis experiment import pages proto schedules serving sim store topology traces workload
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepsim COMPONENT development FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/generated/proto
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepsim COMPONENT development FILES_MATCHING PATTERN "*.h")
include(CMakePackageConfigHelpers)
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/stepsim)
configure_package_config_file(cmake/stepsim-config.cmake.in ${PROJECT_BINARY_DIR}/stepsim-config.cmake
  INSTALL_DESTINATION ${config} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stepsim-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stepsim-config.cmake
  ${PROJECT_BINARY_DIR}/stepsim-config-version.cmake DESTINATION ${config} COMPONENT development)

# ---- Python ----

if(TARGET stepsim_python)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/python/stepsim DESTINATION lib/python3/dist-packages
    COMPONENT python PATTERN __pycache__ EXCLUDE)
endif()

# ---- packages ----

set(CPACK_PACKAGE_NAME stepsim)
set(CPACK_PACKAGE_VENDOR stepsim)
set(CPACK_PACKAGE_CONTACT "the maintainers of stepsim <stepsim@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "simulate training and serving of language models on clusters")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME stepsim)
set(CPACK_DEBIAN_MPI_PACKAGE_NAME stepsim-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "stepsim (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-stepsim)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.11), python3 (<< 3.12)")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME stepsim-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libfmt-dev, libprotobuf-dev, libnlopt-cxx-dev, \
libsqlite3-dev, libsimdjson-dev, libyaml-cpp-dev, libpugixml-dev, libboost-graph-dev, nlohmann-json3-dev, zlib1g-dev")
include(CPack)
