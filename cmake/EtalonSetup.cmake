# Compiler settings common to every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

find_program(ETALON_CCACHE ccache)
if(ETALON_CCACHE)
  # Paths below the source tree are hashed relative to it, so that clones share their objects.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${ETALON_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

find_program(ETALON_LLD NAMES ld.lld ld.lld-14)
if(ETALON_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# Debug information costs most of the build's time and space; line tables are enough for a stack.
add_compile_options(-g1 -fno-omit-frame-pointer)
if(ETALON_SANITIZE)
  add_compile_options(-fsanitize=${ETALON_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ETALON_SANITIZE})
endif()

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_package(fmt REQUIRED)
find_package(Protobuf REQUIRED)
find_package(nlohmann_json REQUIRED)
include(GoogleTest)

# Warnings of our own code. Third-party and generated headers come in as SYSTEM.
set(ETALON_WARNINGS -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wconversion
    -Wno-sign-conversion -Wimplicit-fallthrough)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND ETALON_WARNINGS -Wthread-safety)
endif()
if(ETALON_WERROR)
  list(APPEND ETALON_WARNINGS -Werror)
endif()
