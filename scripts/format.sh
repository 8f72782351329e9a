#!/usr/bin/env bash
# Formats all own C++ sources, or with --check says which are not formatted.
set -u
cd "$(dirname "$0")/.." || exit 1
mapfile -t files < <(git ls-files '*.h' '*.cc')
if [ "${1:-}" = --check ]; then
  printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 40 clang-format-14 --dry-run -Werror
else
  printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 40 clang-format-14 -i
fi
