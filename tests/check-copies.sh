#!/bin/sh
# SPDX-License-Identifier: MIT
# Two versions of the library in one process, as where a program and a plugin bring one each: they
# have channels with each other, by shared memory and TCP, and their signals, handlers of fork(2)
# and descriptors do not collide. The second version is the same build under another version and
# soname, or the file SLUICE_TEST_OTHER_LIBRARY.
. "${srcdir:-.}/tests/tap.sh"

cc=${CC:-cc}
library=$(pwd)/lib/.libs/libsluice.so.1
[ -f "$library" ] || skip_all 'no shared library was built'
[ -z "${SANITIZE:-}" ] || skip_all 'a sanitizer has one copy of its own, and symbols of both'
command -v perl >/dev/null 2>&1 || skip_all 'no perl'
SLUICE_MUNGE=no
export SLUICE_MUNGE

other=${SLUICE_TEST_OTHER_LIBRARY:-$tmp/other.so}
[ -f "$other" ] ||
  perl -pe 's/\b\d\.\d\.\d( \()/9.8.7$1/g; s/libsluice\.so\.\d/libsluice.so.9/g' "$library" >"$other"

build() {
  # shellcheck disable=SC2086 # $cc may be several words
  $cc -w -I"$srcdir/include" -Iinclude -o "$tmp/loaded" "$srcdir/tests/base/copies.c" -ldl -lpthread &&
    $cc -w -DLINKED -I"$srcdir/include" -Iinclude -o "$tmp/linked" "$srcdir/tests/base/copies.c" \
      lib/.libs/libsluice.so -ldl -lpthread
}
check 'the programs are built' build

# talk PROGRAM WIRE LEVEL
talk() {
  LD_LIBRARY_PATH=$(pwd)/lib/.libs SLUICE_WIRE=$2 "$tmp/$1" "$library" "$other" >"$tmp/talk.out" ||
    { cat "$tmp/talk.out"; return 1; }
  cat "$tmp/talk.out"
  [ "$(grep -c "level $3" "$tmp/talk.out")" = 5 ] || return 1
  [ "${SLUICE_TEST_OTHER_LIBRARY:-}" ] || grep -q 'and 9.8.7 ' "$tmp/talk.out"
}
check 'two that are loaded share memory' talk loaded shm 48
check 'two that are loaded choose a wire' talk loaded '' 48
check 'two that are loaded use TCP' talk loaded tcp 16
check 'one that is linked and one that is loaded share memory' talk linked shm 48
check 'one that is linked and one that is loaded use TCP' talk linked tcp 16
finish
