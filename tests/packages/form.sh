# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the tests of the package forms share: each of them takes an archive of the release, makes an
# installation of it in an empty root, and compiles and runs the program of README.md there. A test
# sets $needed to the programs that it needs, and reads this file from the top of the sources.
#
# Sets $archive, $version, $so (the number of the soname) and $jobs; $tmp/readme.c is the program.
srcdir=$PWD
. tests/tap.sh
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
export CC="${CC:-cc}" SLUICE_DEVICE=soft

# A test that cannot run is no success.
cannot() {
  echo "1..0 # SKIP $1"
  exit 77
}

archive=${1:-}
case $archive in
  *.tar.xz) [ -f "$archive" ] ;;
  *) false ;;
esac || {
  echo "$0: needs an archive of make dist-xz" >&2
  exit 2
}
for tool in ${CC%% *} pkg-config timeout ${needed:-}; do
  have "$tool" || cannot "no $tool: scripts/deps full"
done
version=$(awk '/define SLUICE_VERSION_(MAJOR|MINOR|PATCH) / { v = v s $3; s = "." } END { print v }' \
  include/sluice/version.h)
# shellcheck disable=SC2034 # of the tests
so=$(sed -n 's/.*-version-info \([0-9]*\):[0-9]*:\([0-9]*\).*/\1 \2/p' lib/local.mk |
  awk '{ print $1 - $2 }')
# shellcheck disable=SC2034
jobs=$(nproc)
awk '/^```c$/ { inside = !seen++; next } /^```/ { inside = 0 } inside' README.md >"$tmp/readme.c"

# briefly COMMAND...: shows the end of its output if it fails.
briefly() {
  "$@" >"$tmp/brief" 2>&1 || { tail -n 40 "$tmp/brief" && return 1; }
}

# compiles ROOT LIBDIR: with what is installed in ROOT, where its files belong to ROOT or to /. The
# program is ROOT/readme.
compiles() (
  export PKG_CONFIG_LIBDIR=$1$2/pkgconfig
  unset PKG_CONFIG_SYSROOT_DIR
  case $(pkg-config --variable=prefix sluice) in
    "$1"*) ;;
    *) export PKG_CONFIG_SYSROOT_DIR=$1 ;;
  esac
  [ "$(pkg-config --modversion sluice)" = "$version" ] || { echo 'another version' && return 1; }
  flags=$(pkg-config --cflags --libs sluice) || return 1
  echo "$flags"
  # shellcheck disable=SC2086 # they are words
  $CC -Wall -Wextra -Werror -o "$1/readme" "$tmp/readme.c" $flags
)

# runs PROGRAM LAUNCH FOLDER [itself]: as three ranks, with the library of this folder and no other
# one, which the program finds by itself or by the environment.
runs() (
  unset LD_LIBRARY_PATH
  [ "${4:-}" = itself ] || export LD_LIBRARY_PATH=$3
  loaded=$(ldd "$1" | awk '/libsluice/ { print $3 }')
  [ "$loaded" = "$3/libsluice.so.$so" ] || { echo "it has loaded $loaded" && return 1; }
  timeout 100 "$2" -q -n 3 "$1" | sort >"$tmp/out"
  cat "$tmp/out"
  printf '0 to %d, 1 to %d, 2 to %d\n' 0 0 0 1 1 1 2 2 2 | cmp - "$tmp/out"
)
