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
# what configure found come from tests/local.mk.
set -u
export LC_ALL=C

srcdir=${srcdir:-.}
tap_count=0
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
    echo "not ok $tap_count - $tap_name"
    sed 's/^/# /' "$tmp/tap.out"
  fi
}

skip() {
  tap_count=$((tap_count + 1))
  echo "ok $tap_count - $1 # SKIP $2"
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
  exit 0
}
