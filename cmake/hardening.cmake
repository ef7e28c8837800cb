# Release builds are hardened, as those of distributions are: what a stranger's file makes go wrong ends the process
# and runs nothing. tests/packages/hardened.py reads all of it from the finished files.
#
#   stack protector, FORTIFY_SOURCE   overruns of buffers end the process
#   PIE, relro, immediate binding     addresses are random; tables of functions can't be written
#   CET (x86-64)                      returns and indirect calls reach only what they should
#
# What is linked is marked for shadow stacks by hand: the C library's crt1.o of Debian 12 has no mark, and
# touches no return address. -DSTEPSIM_HARDEN=OFF leaves all out, to measure what it costs.
option(STEPSIM_HARDEN "Harden release builds" ON)
if(NOT STEPSIM_HARDEN OR NOT CMAKE_BUILD_TYPE STREQUAL Release)
  return()
endif()
add_compile_options(-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
add_link_options(LINKER:-z,relro LINKER:-z,now $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  add_compile_options(-fcf-protection=full)
  add_link_options(LINKER:-z,shstk)
endif()
