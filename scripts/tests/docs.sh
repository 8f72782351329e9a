#!/usr/bin/env bash
# Runs the examples of README.md on a real collection, and checks that every link of the documentation leads somewhere.
#   docs.sh BIN_DIR
set -u
bin=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
operator=
trap '[ -z "$operator" ] || { kill -TERM "$operator"; wait "$operator"; } 2>/dev/null; rm -rf "$work"' EXIT
failed=0
fail() { echo "FAILED $*"; failed=1; }

# Links of the form [text](path) between our own pages.
while IFS=: read -r page link; do
  target=$(dirname "$page")/${link%%#*}
  [ -e "$root/$target" ] || fail "$page links to $link, which is not there"
done < <(cd "$root" && grep -oE '\]\([^)]+\)' --with-filename README.md $(git ls-files 'docs/*.md') | sed -E 's/\]\((.*)\)/\1/' | grep -vE ':(https?|#)')

# The manifest of the README starts a collection, and its commands work on it.
sed -n '/<!-- test: manifest -->/,/^```$/p' "$root/README.md" | sed '1,2d;$d' >"$work/orders.yaml"
grep -q 'kind: ShardedCollection' "$work/orders.yaml" || fail "README.md has no manifest"
"$bin/etalon-operator" --platform local --manifest "$work/orders.yaml" --data "$work/orders" --bin-dir "$bin" --stop-children-on-exit \
  2>"$work/operator.log" &
operator=$!
ctl() { "$bin/etalonctl" --data "$work/orders" "$@"; }
end=$(($(date +%s) + 90))
until ctl put orders alice order-1 '{"amount": 10}' 2>/dev/null; do
  [ "$(date +%s)" -lt $end ] || { fail "the collection of the README does not start"; tail -n 5 "$work/operator.log"; break; }
  sleep 0.2
done
[ "$(ctl get orders alice order-1)" = '{"amount": 10}' ] || fail "etalonctl get"
ctl status | grep -q shard-2 || fail "etalonctl status"
ctl shards -o json | grep -q '"shard": "shard-0"' || fail "etalonctl shards -o json"
ctl route alice | grep -q shard- || fail "etalonctl route"
ctl scan orders alice | grep -q order-1 || fail "etalonctl scan"
ctl insert orders alice order-1 x 2>/dev/null && fail "insert of an existing record must be refused"
ctl delete orders alice order-1 || fail "etalonctl delete"
ctl get orders alice order-1 2>/dev/null && fail "a deleted record is still there"
printf '%s\n' '{"shardKey": "bob", "space": "orders", "key": "1", "value": {"a": 1}}' '{"shardKey": "bob", "space": "orders", "key": "2", "value": "two"}' >"$work/rows"
ctl import "$work/rows" | grep -q '2 records' || fail "etalonctl import"
[ "$(ctl get orders bob 2)" = two ] || fail "an imported record"
ctl plan --shard-num 4 | grep -q 'buckets move' || fail "etalonctl plan"
bucket=$(ctl route alice | awk 'NR == 2 {print $2}')
ctl pin "$bucket" && ctl bucket "$bucket" | grep -q PINNED || fail "etalonctl pin"
ctl unpin "$bucket" || fail "etalonctl unpin"
ctl switchover shard-0 || fail "etalonctl switchover"
ctl rebalancer | grep -q shard-1 || fail "etalonctl rebalancer"
ctl status --verify | grep -q 'replicas equal' || fail "etalonctl status --verify"
ctl scale 4 && grep -q 'shardNum: 4' "$work/orders.yaml" || fail "etalonctl scale"
[ $failed -eq 0 ] && echo "docs: examples and links are good"
exit $failed
