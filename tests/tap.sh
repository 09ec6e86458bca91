# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# TAP for shell tests, which read this file first:
#
#   . "${srcdir:-.}/tests/tap.sh"
#   check 'the sky is blue' test "$sky" = blue    # ok if the command succeeds
#   skip 'the moon is full' 'no moon'
#   finish
#
# Tests run in the top of the build tree; $srcdir is the top of the sources and
# $tmp a folder of the test's own, which goes away with it. $CC and the rest of
# what configure found come from tests/local.mk. The exit status says nothing of
# failures, for a harness counts them; with TAP_EXIT=yes it does.
set -u
export LC_ALL=C

srcdir=${srcdir:-.}
tap_count=0
tap_failed=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/sluice-check.XXXXXX") || exit 99
trap 'rm -rf "$tmp"' EXIT
trap 'exit 99' HUP INT TERM

# Prints one line of the result, and the output of the command if it failed.
check() {
  tap_name=$1
  shift
  tap_count=$((tap_count + 1))
  if "$@" >"$tmp/tap.out" 2>&1 </dev/null; then
    echo "ok $tap_count - $tap_name"
  else
    tap_failed=1
    echo "not ok $tap_count - $tap_name"
    sed 's/^/# /' "$tmp/tap.out"
  fi
}

skip() {
  tap_count=$((tap_count + 1))
  echo "ok $tap_count - $1 # SKIP $2"
}

# pass_on NAME STATUS FILE: the TAP of a program of this name and exit status, under
# numbers of this script's own.
pass_on() {
  awk -v count="$tap_count" -v program="$1" '
    /^(not )?ok / {
      text = $0
      sub(/^(not )?ok [0-9]* *-? */, "", text)
      print ($1 == "not" ? "not ok " : "ok ") ++count " - " program ": " text
      next
    }
    /^1\.\.0/ { print "ok " ++count " - " program " # SKIP " $0; next }
    /^1\.\./ { next }
    { print "# " $0 }' "$3"
  tap_count=$((tap_count + $(grep -c -E '^(not )?ok |^1\.\.0' "$3")))
  if grep -q '^not ok ' "$3"; then
    tap_failed=1
  elif [ "$2" != 0 ] || ! grep -q '^1\.\.' "$3"; then
    check "$1 comes to its end, not to exit status $2" false
  fi
}

skip_all() {
  echo "1..0 # SKIP $1"
  exit 0
}

# Succeeds if the command printed nothing.
silent() {
  "$@" >"$tmp/silent.out" 2>&1 || { cat "$tmp/silent.out"; return 1; }
  cat "$tmp/silent.out"
  ! test -s "$tmp/silent.out"
}

have() {
  command -v "$1" >/dev/null 2>&1
}

# lint NAME TITLE: what scripts/lint says of it, where the program is there that it needs.
lint() {
  tap_status=0
  # shellcheck disable=SC2086 # they are words
  "$srcdir/scripts/lint" $1 >"$tmp/lint" 2>&1 </dev/null || tap_status=$?
  if [ "$tap_status" = 77 ]; then
    skip "$2" "$(sed -n 's/^scripts\/lint: \(no [^(]*[^ (]\).*/\1/p' "$tmp/lint")"
  else
    check "$2" tap_linted
  fi
}

tap_linted() {
  cat "$tmp/lint"
  [ "$tap_status" = 0 ]
}

# later WORD...: for at_once.
tap_later=0
later() {
  tap_later=$((tap_later + 1))
  echo "$*" >"$tmp/$tap_later.later"
}

# A worker of at_once: takes checks that no other worker has taken.
tap_work_off() {
  tap_at=0
  while [ "$tap_at" -lt "$tap_later" ]; do
    tap_at=$((tap_at + 1))
    mkdir "$tmp/$tap_at.taken" 2>/dev/null || continue
    # shellcheck disable=SC2046 # they are words
    "$1" "$tap_at" $(cat "$tmp/$tap_at.later")
  done
}

# at_once COUNT FUNCTION: calls FUNCTION NUMBER WORD... for each of what was to come later, so
# many at a time, for programs that wait for most of their time. What it prints is lost.
at_once() {
  tap_workers=
  tap_worker=1
  while [ "$tap_worker" -lt "$1" ]; do
    tap_work_off "$2" >/dev/null 2>&1 </dev/null &
    tap_workers="$tap_workers $!"
    tap_worker=$((tap_worker + 1))
  done
  trap 'kill $tap_workers 2>/dev/null; rm -rf "$tmp"' EXIT
  tap_work_off "$2" >/dev/null 2>&1 </dev/null
  for tap_worker in $tap_workers; do
    wait "$tap_worker"
  done
  trap 'rm -rf "$tmp"' EXIT
}

finish() {
  echo "1..$tap_count"
  [ "${TAP_EXIT:-no}" = no ] || exit $tap_failed
  exit 0
}
