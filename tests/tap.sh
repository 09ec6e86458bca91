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

# One line of the result; what the command printed is shown if it failed.
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

finish() {
  echo "1..$tap_count"
  [ "${TAP_EXIT:-no}" = no ] || exit $tap_failed
  exit 0
}
