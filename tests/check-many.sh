#!/bin/sh
# SPDX-License-Identifier: MIT
# A job of many processes on this host has the right results, also if some of them are killed, and
# ranks need little memory: bench/many, with 24 ranks or as many as SLUICE_TEST_RANKS says, of which
# a tenth is killed. scripts/test --full runs it with 1,000.
. "${srcdir:-.}/tests/tap.sh"

ranks=${SLUICE_TEST_RANKS:-24}
killed=$(((ranks + 6) / 10))
launch=tools/sluice-launch
export SLUICE_DEVICE=soft

# job STATUS RANKS OPTION...: runs a job, whose table has a line for so many ranks.
job() {
  expected=$1 left=$2
  shift 2
  timeout 180 "$launch" "$@" >"$tmp/table" 2>"$tmp/err"
  status=$?
  cat "$tmp/table"
  grep -v ' still run$' "$tmp/err" | head -n 40
  echo "exit status $status"
  [ "$status" = "$expected" ] && grep -q "^$left of $ranks ranks, sluice " "$tmp/table"
}

# needs_at_most MB: the memory of a rank at the end, in which a page of n processes counts as an n-th.
needs_at_most() {
  cat "$tmp/table"
  awk -v most="$1" '/^after the alltoalls, median / { share = $6 }
    END { exit !(share > 0 && share <= most) }' "$tmp/table"
}

# wrong STATUS TEXT COMMAND...
wrong() {
  expected=$1 text=$2
  shift 2
  timeout 60 "$@" >"$tmp/out" 2>"$tmp/err"
  status=$?
  cat "$tmp/out" "$tmp/err"
  [ "$status" = "$expected" ] && grep -q -F -e "$text" "$tmp/err" && ! [ -s "$tmp/out" ]
}

check "$ranks ranks open, meet, exchange values and shut down" job 0 "$ranks" -q -n "$ranks" bench/many
if [ -n "${SANITIZE:-}" ]; then
  skip 'a rank needs at most 3 MB' 'a sanitizer needs memory of its own'
elif ! [ -r /proc/self/smaps_rollup ]; then
  skip 'a rank needs at most 3 MB' 'no /proc/self/smaps_rollup'
else
  check 'a rank needs at most 3 MB' needs_at_most 3
fi
check "$killed of $ranks ranks are killed: sends to them fail, and the others meet" \
  job 3 $((ranks - killed)) -q -k -n "$ranks" bench/many --kill "$killed"
check 'bench/many with nobody to kill' wrong 2 usage bench/many --kill 0
check 'bench/many with more to kill than ranks' wrong 1 'two ranks must be left' \
  "$launch" -q -n 2 bench/many --kill 1
finish
