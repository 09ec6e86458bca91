#!/bin/sh
# SPDX-License-Identifier: MIT
# The installed library serves a program that knows nothing but pkg-config: the
# first one of README.md is built and run, with the shared library and without.
. "${srcdir:-.}/tests/tap.sh"

unset MAKEFLAGS MFLAGS MAKELEVEL
root=$tmp/root
prefix=${prefix:-/usr/local}
libdir=${libdir:-$prefix/lib}

install_all() {
  "${MAKE:-make}" install DESTDIR="$root"
}

pc() {
  PKG_CONFIG_PATH=$root$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} \
    "${PKG_CONFIG:-pkg-config}" "$@"
}

# In a DESTDIR the prefix is elsewhere than the file says.
flags() {
  pc --define-variable=prefix="$root$prefix" --define-variable=libdir="$root$libdir" "$@" sluice
}

# The prefix may well be inside the build tree; nothing else may.
no_build_paths() {
  sed "s,$prefix,PREFIX,g" "$root$libdir/pkgconfig/sluice.pc" |
    { ! grep -n -F -e "$root" -e "$(pwd)" -e "$(cd "$srcdir" && pwd)"; }
}

right_version() {
  [ "$(pc --modversion sluice)" = "$VERSION" ]
}

headers_are_there() {
  for header in "$srcdir"/include/*.h "$srcdir"/include/sluice/*.h; do
    name=${header#"$srcdir"/include/}
    [ -f "$root$prefix/include/$name" ] || { echo "$name is not installed"; return 1; }
  done
}

# build PROGRAM [--static]
build() {
  program=$1
  shift
  # shellcheck disable=SC2046,SC2086 # flags are words
  ${CC:-cc} -Wall -Wextra -Werror $SANITIZE -o "$program" "$tmp/readme.c" $(flags --cflags --libs "$@")
}

run() {
  (cd "$tmp" && LD_LIBRARY_PATH=$root$libdir timeout 60 "$@")
}

check 'make install' install_all
check 'every header is installed' headers_are_there
check 'sluice.pc holds no path of the build' no_build_paths
check 'sluice.pc has the version of the package' right_version

awk '/^```c$/ && !seen { inside = seen = 1; next } /^```/ { inside = 0 } inside' \
  "$srcdir/README.md" >"$tmp/readme.c"
if [ -s "$tmp/readme.c" ]; then
  if [ -f "$root$libdir/libsluice.so" ]; then
    check 'the program of README.md is built' build "$tmp/shared"
    check 'the program of README.md runs' run "$tmp/shared"
  else
    check 'the program of README.md is built without a shared library' build "$tmp/alone"
    check 'the program of README.md runs without a shared library' run "$tmp/alone"
  fi
  if [ -f "$root$libdir/libsluice.a" ]; then
    rm -f "$root$libdir"/libsluice.so*
    check 'it is built with the static library' build "$tmp/static" --static
    check 'it runs with the static library' run "$tmp/static"
  else
    skip 'it runs with the static library' 'no static library was built'
  fi
else
  skip 'the program of README.md runs' 'README.md has none'
fi
finish
