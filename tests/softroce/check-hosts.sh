#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2317 # functions that check calls
# Tests across two hosts: boots two guests, in which this script runs again, each
# with its half of every test. In the top of the build tree:
#
#   check-hosts.sh [chosen]
#
# The chosen ones are without interfaces that go, which test_events has on one host.
. "${srcdir:-.}/tests/tap.sh"

# runs TEXT COMMAND...: it succeeds in time and prints TEXT.
runs() {
  text=$1
  shift
  timeout 200 "$@" >"$tmp/out" 2>&1
  status=$?
  cat "$tmp/out"
  echo "exit status $status"
  [ "$status" = 0 ] && grep -q -F -e "$text" "$tmp/out"
}

in_guests() {
  here=$(cd "$srcdir" && pwd)
  "$here/tests/softroce/run" --hosts 2 --timeout 900 --env "srcdir=$here" \
    --env SLUICE_DEVICE=rxe0 --env SLUICE_TEST_DEVICE=rxe0 --env TAP_EXIT=yes \
    sh "$here/tests/softroce/check-hosts.sh" "$@" >"$tmp/out" 2>"$tmp/err"
  status=$?
  if [ "$status" = 77 ]; then
    skip 'tests across hosts' "$(cat "$tmp/err")"
    finish
  fi
  sed 's/^/# /' "$tmp/err"
  for host in 0 1; do
    sed -n "s/^host $host: //p" "$tmp/out" >"$tmp/host"
    # A host that failed has said so itself.
    pass_on "host $host" 0 "$tmp/host"
  done
  [ "$status" = 0 ] || [ $tap_failed != 0 ] || check "the guests end well, not with $status" false
  finish
}

# scatter NUMBER BYTES TIMES: each run has a port of its own, as the hosts are not
# at the same place.
scatter() {
  port=$((18500 + $1))
  if [ "$SOFTROCE_HOST" = 0 ]; then
    head -c "$2" /dev/urandom >"$tmp/input"
    runs 'digests agree' examples/03-scatter-gather -l "$first:$port" -n 2 -r "$3" "$tmp/input"
  else
    timeout 200 examples/03-scatter-gather -c "$first:$port"
  fi
}

# behind WORDS COMMAND...: while the network does to packets what the words tell tc-netem(8).
behind() {
  # shellcheck disable=SC2086 # they are words
  tc qdisc replace dev sluice0 root netem $1 || return 1
  shift
  "$@"
  result=$?
  tc -s qdisc show dev sluice0 | tee "$tmp/queue"
  tc qdisc del dev sluice0 root
  return "$result"
}

# lossy COMMAND...: on a network that loses packets, some of which host 0 has lost;
# the other sends few.
lossy() {
  behind 'loss 2%' "$@" || return 1
  [ "$SOFTROCE_HOST" != 0 ] || grep -q 'dropped [1-9]' "$tmp/queue"
}

# of_four PORT TEXT COMMAND...: two ranks of four here, and two on the other host. Rank
# 0 says TEXT.
of_four() {
  text=$2
  export SLUICE_RANKS=4 SLUICE_ROOT="$first:$1" SLUICE_JOB="two-hosts-$1"
  shift 2
  SLUICE_RANK=$((2 * SOFTROCE_HOST + 1)) timeout 200 "$@" &
  second=$!
  export SLUICE_RANK=$((2 * SOFTROCE_HOST))
  if [ "$SOFTROCE_HOST" = 0 ]; then
    runs "$text" "$@"
  else
    timeout 200 "$@"
  fi
  status=$?
  wait "$second" || status=1
  unset SLUICE_RANK SLUICE_RANKS SLUICE_ROOT SLUICE_JOB
  return "$status"
}

# steps PORT NAME COMMAND...: a rank on each host. COMMAND is called with the program, whose
# figures are shown, and whose cases get the name.
steps() {
  export SLUICE_RANKS=2 SLUICE_RANK="$SOFTROCE_HOST" SLUICE_ROOT="$first:$1" SLUICE_JOB="steps-$1"
  name=$2
  shift 2
  "$@" tests/test_hosts_steps >"$tmp/out" 2>"$tmp/err"
  status=$?
  sed 's/^/# /' "$tmp/err"
  grep -v '^qdisc\|^ ' "$tmp/out" >"$tmp/steps"
  pass_on "$name" $status "$tmp/steps"
  unset SLUICE_RANKS SLUICE_RANK SLUICE_ROOT SLUICE_JOB
}

[ "${SOFTROCE_HOST:-}" ] || in_guests "$@"
# shellcheck disable=SC2153 # no misspelling
first=${SOFTROCE_HOSTS%% *}
if [ -x examples/03-scatter-gather ]; then
  check 'examples/03-scatter-gather on two hosts' scatter 1 4000000 1
  # Of a longer message rxe loses too much; see README.md.
  check 'examples/03-scatter-gather on two hosts while packets get lost' lossy scatter 2 32000 80
else
  skip 'examples/03-scatter-gather on two hosts' 'built without what it needs'
fi
if [ -x examples/10-node ]; then
  check 'examples/10-node as two ranks on each of two hosts' \
    of_four 18503 'add up to 799980000' examples/10-node
else
  skip 'examples/10-node on two hosts' 'built without what it needs'
fi
steps 18504 test_hosts_steps env
steps 18505 'test_hosts_steps, late and with losses' behind 'delay 5ms loss 1%'
[ "${1:-}" != chosen ] || export CK_RUN_CASE=losses
tests/test_hosts >"$tmp/out" 2>"$tmp/err"
status=$?
sed 's/^/# /' "$tmp/err"
pass_on test_hosts $status "$tmp/out"
finish
