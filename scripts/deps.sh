#!/usr/bin/env bash
# Installs what the build needs on Debian 12, saying so. Sourced by ./run and ./test, or run by itself.
# Nothing is installed when everything is there. Root or sudo is needed only when something is missing.

etalon_packages=(
  cmake ninja-build g++ ccache lld git ca-certificates python3 procps
  protobuf-compiler libprotobuf-dev protobuf-compiler-grpc libgrpc++-dev
  librocksdb-dev nlohmann-json3-dev libyaml-cpp-dev libcli11-dev libfmt-dev
  libgtest-dev libgmock-dev libbenchmark-dev
)
etalon_clang_packages=(clang-14 libclang-rt-14-dev clang-format-14)

etalon_install() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "etalon: these Debian packages are missing and neither root nor sudo is at hand: ${missing[*]}" >&2
      return 1
    }
    sudo=(sudo)
  fi
  echo "etalon: installing Debian packages: ${missing[*]}"
  "${sudo[@]}" apt-get update -q >/dev/null || return 1
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" \
    >/dev/null || return 1
}

# The consensus library is Rust: any cargo from 1.85 on will do; Debian 12 has one beside its old default.
etalon_cargo() {
  local candidate version
  for candidate in "${CARGO:-}" "$(command -v cargo 2>/dev/null)" "$HOME/.cargo/bin/cargo"; do
    [ -n "$candidate" ] && [ -x "$candidate" ] || continue
    version=$("$candidate" --version 2>/dev/null | awk '{print $2}')
    if [ "$(printf '%s\n' 1.85.0 "${version:-0}" | sort -V | head -n 1)" = 1.85.0 ]; then return 0; fi
  done
  etalon_install cargo-web rustc-web
}

etalon_install_all() {
  [ -r /etc/debian_version ] || {
    echo "etalon: this is not Debian; install what scripts/deps.sh lists by hand" >&2
    return 0
  }
  etalon_install "${etalon_packages[@]}" && etalon_cargo
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  etalon_install_all && etalon_install "${etalon_clang_packages[@]}"
fi
