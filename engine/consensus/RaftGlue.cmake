# etalon_raft_glue: the `raft` crate behind a plain C border (raft_glue/), built by cargo.
#
# ETALON_CARGO        which cargo; otherwise the first new enough one of PATH, ~/.cargo/bin and /usr/bin
# ETALON_CARGO_TARGET where cargo works; shared by all build trees of one checkout, as the flags of the C++ side do not
#                     matter to it. Cargo locks it by itself.
# Without a network: a warm or vendored registry and CARGO_NET_OFFLINE=true in the environment.
set(ETALON_CARGO_OLDEST 1.85)

function(etalon_cargo_version path out)
  execute_process(COMMAND ${path} --version OUTPUT_VARIABLE text ERROR_QUIET)
  string(REGEX MATCH "[0-9]+\\.[0-9]+" version "${text}")
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

function(etalon_cargo_fits result path)
  etalon_cargo_version(${path} version)
  if(NOT version OR version VERSION_LESS ETALON_CARGO_OLDEST)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

find_program(ETALON_CARGO cargo HINTS ENV PATH PATHS $ENV{HOME}/.cargo/bin /usr/bin VALIDATOR etalon_cargo_fits
             DOC "cargo, at least ${ETALON_CARGO_OLDEST}")
set(how "On Debian 12: apt install cargo-web rustc-web. Elsewhere: https://rustup.rs. Or name one by -DETALON_CARGO=...")
if(NOT ETALON_CARGO)
  message(FATAL_ERROR "No cargo of version ${ETALON_CARGO_OLDEST} or newer was found. ${how}")
endif()
etalon_cargo_version(${ETALON_CARGO} cargo_version)
if(NOT cargo_version OR cargo_version VERSION_LESS ETALON_CARGO_OLDEST)
  message(FATAL_ERROR "${ETALON_CARGO} is version '${cargo_version}'; ${ETALON_CARGO_OLDEST} or newer is needed. ${how}")
endif()

set(ETALON_CARGO_TARGET ${PROJECT_SOURCE_DIR}/build/cargo-glue CACHE PATH "CARGO_TARGET_DIR of raft_glue")
set(glue ${CMAKE_CURRENT_SOURCE_DIR}/raft_glue)
set(glue_library ${ETALON_CARGO_TARGET}/release/libraft_glue.a)
set(cargo ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${ETALON_CARGO_TARGET} ${ETALON_CARGO})

# Cargo leaves an unchanged library untouched; the touch tells ninja that it is up to date.
add_custom_command(
  OUTPUT ${glue_library}
  COMMAND ${cargo} build --release --locked --manifest-path ${glue}/Cargo.toml
  COMMAND ${CMAKE_COMMAND} -E touch ${glue_library}
  DEPENDS ${glue}/lib.rs ${glue}/abi.rs ${glue}/Cargo.toml ${glue}/Cargo.lock
  COMMENT "cargo build raft_glue" VERBATIM USES_TERMINAL)
add_custom_target(etalon_raft_glue_build DEPENDS ${glue_library})
add_library(etalon_raft_glue STATIC IMPORTED GLOBAL)
set_target_properties(etalon_raft_glue PROPERTIES IMPORTED_LOCATION ${glue_library})
target_link_libraries(etalon_raft_glue INTERFACE gcc_s m Threads::Threads ${CMAKE_DL_LIBS})
add_dependencies(etalon_raft_glue etalon_raft_glue_build)

# What the crate does that the glue guards against.
if(NOT ETALON_SANITIZE)
  add_test(NAME raft_glue.traps COMMAND ${cargo} test --release --locked --manifest-path ${glue}/Cargo.toml)
  set_tests_properties(raft_glue.traps PROPERTIES LABELS unit TIMEOUT 900)
endif()
