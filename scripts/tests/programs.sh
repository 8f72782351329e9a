#!/usr/bin/env bash
# Bad input to the real programs: a clear sentence, the right exit code, nothing lost.
#   programs.sh BIN_DIR
set -u
bin=$1
work=$(mktemp -d)
pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null; done; wait 2>/dev/null; rm -rf "$work"' EXIT
passed=0
failed=0

# expect NAME CODE TEXT COMMAND...: the exit code, and TEXT somewhere in what it says.
expect() {
  local name=$1 code=$2 text=$3 out got
  shift 3
  out=$(timeout 30 bash -c '"$@"' run "$@" 2>&1)
  got=$?
  if [ "$got" = "$code" ] && grep -qF -- "$text" <<<"$out"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED %s: exit %s (wanted %s), wanted "%s" in:\n%s\n' "$name" "$got" "$code" "$text" "$out"
  fi
}
# until_true SECONDS COMMAND...: waits for a condition.
until_true() {
  local end=$(($(date +%s) + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt "$end" ] || return 1
    sleep 0.1
  done
}
check() {
  local name=$1
  shift
  if "$@" >/dev/null 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $name"; fi
}

storage() { exec "$bin/etalon-storage" --name s-0 --shard-uid "$1" --collection "$2" --data "$3" --listen "$4" --store memory; }
export bin
export -f storage
port=$((20000 + RANDOM % 20000))
at=127.0.0.1:$port

expect "no flags" 2 "--name" "$bin/etalon-storage"
expect "unknown flag" 2 "--nonsense" "$bin/etalon-router" --name r --nonsense 1
expect "bad collection" 2 "hexadecimal" "$bin/etalon-storage" --name s --shard-uid 1 --collection xyz --data "$work/a"
expect "bad level" 2 "--log-level" "$bin/etalon-router" --name r --log-level loud
echo '{"version": "1", "colection": "5"}' >"$work/bad.json"
expect "unknown field in a topology" 2 "bad.json" "$bin/etalon-router" --name r --topology "$work/bad.json"
expect "missing topology" 2 "cannot be read" "$bin/etalon-router" --name r --topology "$work/none.json"
expect "a file in place of the data directory" 3 "$work/bad.json" "$bin/etalon-storage" --name s --shard-uid 1 --collection 2 --data "$work/bad.json"

storage a1 c1 "$work/disk" "$at" 2>"$work/log" & pids+=($!)
until_true 20 test -s "$work/disk/IDENTITY" || echo "the storage did not start: $(cat "$work/log")"
until_true 20 grep -q started "$work/log"
expect "two processes on one directory" 3 "is in use by process" storage a1 c1 "$work/disk" "127.0.0.1:$((port + 1))"
expect "a port in use" 2 "$at" storage a2 c1 "$work/disk2" "$at"
kill -TERM "${pids[0]}"
check "SIGTERM ends a storage" until_true 20 bash -c "! kill -0 ${pids[0]}"
identity=$(sha256sum "$work/disk/IDENTITY")
expect "a disk of another shard" 3 "nothing was touched" storage bb c1 "$work/disk" "$at"
expect "a disk of another collection" 3 "nothing was touched" storage a1 cc "$work/disk" "$at"
[ "$identity" = "$(sha256sum "$work/disk/IDENTITY")" ] && passed=$((passed + 1)) || failed=$((failed + 1))
cp -r "$work/disk" "$work/newer"
printf '\x09' | dd of="$work/newer/IDENTITY" bs=1 seek=4 conv=notrunc 2>/dev/null
expect "a newer format" 3 "newer version" storage a1 c1 "$work/newer" "$at"
cp -r "$work/disk" "$work/damaged"
printf 'x' | dd of="$work/damaged/IDENTITY" bs=1 seek=20 conv=notrunc 2>/dev/null
expect "a damaged identity" 5 "counts as lost" storage a1 c1 "$work/damaged" "$at"
cp -r "$work/disk" "$work/half"
rm "$work/half/IDENTITY"
mkdir -p "$work/half/log"
expect "a disk that lost its identity" 5 "no identity" storage a1 c1 "$work/half" "$at"

expect "ctl without a collection" 3 "endpoints.json" "$bin/etalonctl" --data "$work" status
expect "ctl with a wrong command" 2 "" "$bin/etalonctl" frobnicate
cat >"$work/bad.yaml" <<'YAML'
apiVersion: sharding.etalon.dev/v1alpha1
kind: ShardedCollection
metadata: {name: orders}
spec: {version: 0.1.0, shardNum: 0, bucketCount: many, shardBy: {field: id, type: String, hash: Crc32}, colour: red}
YAML
# The operator says every fault, and waits for the manifest to be put right.
"$bin/etalon-operator" --platform local --manifest "$work/bad.yaml" --data "$work/op" --bin-dir "$bin" 2>"$work/oplog" & pids+=($!)
for fault in shardNum bucketCount colour; do
  check "a bad manifest names $fault" until_true 20 grep -q "$fault" "$work/oplog"
done
expect "two operators on one directory" 3 "is in use by process" "$bin/etalon-operator" --platform local --manifest "$work/bad.yaml" --data "$work/op"
check "nothing was started" bash -c "! test -e '$work/op/endpoints.json' || ! grep -q address '$work/op/endpoints.json'"
kill -TERM "${pids[-1]}"
check "SIGTERM ends an operator" until_true 20 bash -c "! kill -0 ${pids[-1]}"

echo "programs: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
