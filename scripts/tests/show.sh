#!/usr/bin/env bash
# The whole show on the package index of this machine, as ./run --once plays it.   show.sh BIN_DIR
set -u
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
"$1/etalon-show" --data "$data/show" --bin-dir "$1" --once --calls-per-second 1500
code=$?
if [ $code -ne 0 ]; then tail -n 5 "$data"/show/operator.log "$data"/show/logs/*.log; fi
exit $code
