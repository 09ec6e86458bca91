#!/bin/sh
# SPDX-License-Identifier: MIT
# Whole projects of users, tests/consumers/, build against what is installed, run and say what
# they should: with make, autotools, CMake and Meson, in C, C++ and Fortran, with the shared
# library and with the archive. "make check" installs into a folder that the files know nothing of,
# as packagers do, and moves it; "make installcheck" takes what is installed at its place.
#
#   check-consumers.sh            install and move it, then as below
#   check-consumers.sh --there    what is in $prefix and $libdir
#   check-consumers.sh --there NAME...    only these projects
. "${srcdir:-.}/tests/tap.sh"

prefix=${prefix:-/usr/local}
libdir=${libdir:-$prefix/lib}
export SLUICE_DEVICE="${SLUICE_DEVICE:-soft}"
export CC="${CC:-cc}" CXX="${CXX:-c++}" FC="${FC:-gfortran}"
# The command that configure found may have options.
pkg_config=${PKG_CONFIG:-pkg-config}

root=${DESTDIR:-}
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
if [ "${1:-}" = --there ]; then
  shift
else
  # shellcheck disable=SC2154 # tap.sh sets it
  root=$tmp/root
  check 'make install DESTDIR=' "${MAKE:-make}" install DESTDIR="$tmp/first"
  mv "$tmp/first" "$root"
fi
# The paths in sluice.pc are of another root then: pkg-config puts it in front.
[ -z "$root" ] || export PKG_CONFIG_SYSROOT_DIR="$root"
projects=${*:-make autotools cmake meson cxx fortran}
export PKG_CONFIG="$pkg_config"
export PKG_CONFIG_PATH="$root$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
export LD_LIBRARY_PATH="$root$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

kinds=
[ ! -f "$root$libdir/libsluice.so" ] || kinds=shared
[ ! -f "$root$libdir/libsluice.a" ] || kinds="$kinds static"

# For each project: what it needs besides a compiler, and its last words.
needs() {
  case $1 in
    make) echo "${MAKE:-make}" ;;
    autotools) echo autoreconf ;;
    cmake) echo cmake ;;
    meson) echo meson ninja ;;
    cxx) echo "${MAKE:-make} $CXX" ;;
    fortran) echo "${MAKE:-make} $FC" ;;
  esac
}

says() {
  case $1 in
    make) echo '16 bytes: hello from make' ;;
    autotools) echo 'written and read by autotools' ;;
    cmake) echo 'cmake counts: 42' ;;
    meson) echo 'meson adds up: 100 of 1 ranks' ;;
    cxx) echo 'c++ adds up: 8002000' && echo 'as it should: 1' ;;
    fortran) echo 'fortran adds up: 385.0' ;;
  esac
}

# build_PROJECT static|shared: in its folder; prints nothing that matters. $program is the result.
build_make() {
  # shellcheck disable=SC2046 # a word or none
  "${MAKE:-make}" PKG_CONFIG="$PKG_CONFIG" $(only static "$1" STATIC=yes) hello && program=./hello
}

build_cxx() {
  # shellcheck disable=SC2046 # a word or none
  "${MAKE:-make}" PKG_CONFIG="$PKG_CONFIG" $(only static "$1" STATIC=yes) blocks && program=./blocks
}

build_fortran() {
  # shellcheck disable=SC2046 # a word or none
  "${MAKE:-make}" PKG_CONFIG="$PKG_CONFIG" FC="$FC" $(only static "$1" STATIC=yes) squares &&
    program=./squares
}

build_autotools() {
  [ -f configure ] || autoreconf -fi || return 1
  # shellcheck disable=SC2046 # a word or none
  ./configure --quiet $(only static "$1" --enable-static-sluice) &&
    "${MAKE:-make}" && program=./onesided
}

build_cmake() {
  cmake -S . -B build -DCMAKE_PREFIX_PATH="$root$prefix" \
    -DCOUNTER_STATIC="$(only static "$1" ON)" && cmake --build build && program=build/count
}

build_meson() {
  meson setup build -Dstatic_sluice="$([ "$1" = static ] && echo true || echo false)" &&
    meson compile -C build && meson test -C build && program=build/sums
}

# only WANTED KIND WORD
only() {
  [ "$1" != "$2" ] || echo "$3"
}

# builds PROJECT KIND: what was built links what it should.
builds() {
  rm -rf "$tmp/$1-$2" && cp -R "$consumers/$1" "$tmp/$1-$2" && chmod -R u+w "$tmp/$1-$2" &&
    cd "$tmp/$1-$2" && "build_$1" "$2" || return 1
  echo "$program" >"$tmp/$1-$2.program"
  linked=$(readelf -d "$program") || return 1
  echo "$linked"
  case $2-$linked in
    static-*libsluice* | shared-*/lib/libsluice*) return 1 ;;
    static-* | shared-*'[libsluice.so.1]'*) return 0 ;;
  esac
  return 1
}

runs() {
  (cd "$tmp/$1-$2" && SLUICE_RANK=0 SLUICE_RANKS=1 timeout 100 "$(cat "$tmp/$1-$2.program")") \
    >"$tmp/said" || return 1
  says "$1" | diff - "$tmp/said"
}

consumers=$(cd "$srcdir/tests/consumers" && pwd)
[ -n "$kinds" ] || check 'there is a library' false
for project in $projects; do
  missing=
  for tool in $(needs "$project"); do
    have "$tool" || missing=$tool
  done
  for kind in $kinds; do
    if [ -n "$missing" ]; then
      skip "$project, $kind" "no $missing"
      continue
    fi
    check "$project, $kind: builds" builds "$project" "$kind"
    [ ! -f "$tmp/$project-$kind.program" ] || check "$project, $kind: runs" runs "$project" "$kind"
  done
done

# Runs find_package() with these arguments, in a project of C.
finds() {
  rm -rf "$tmp/finds" && mkdir "$tmp/finds" || return 1
  printf 'cmake_minimum_required(VERSION 3.13)\nproject(finds LANGUAGES C)\nfind_package(sluice %s)\n' \
    "$*" >"$tmp/finds/CMakeLists.txt"
  cmake -S "$tmp/finds" -B "$tmp/finds/build" -DCMAKE_PREFIX_PATH="$root$prefix" &&
    grep -q "^sluice_DIR:PATH=$root$libdir/cmake/sluice\$" "$tmp/finds/build/CMakeCache.txt"
}

# It has looked at our file, and found that unsuitable.
refuses() {
  ! finds "$@" >"$tmp/refused" 2>&1 || return 1
  cat "$tmp/refused"
  grep -q -e 'sluiceConfig.cmake, version:' -e 'there is no [a-z]* library of sluice' "$tmp/refused"
}

no_build_paths() {
  sed "s,$prefix,PREFIX,g" "$root$libdir"/cmake/sluice/*.cmake |
    { ! grep -n -F -e "$tmp" -e "$(pwd)" -e "$(cd "$srcdir" && pwd)"; }
}

# Before 1.0 another minor version is another library; ranges are those that users name.
versions() {
  major=${VERSION%%.*} minor=${VERSION#*.} patch=${VERSION##*.}
  minor=${minor%%.*}
  for wanted in "$VERSION" "$major.$minor" "$VERSION EXACT" "$major.$minor...$((major + 1))" \
    "$major.$minor...<$major.$((minor + 1))" "0.0...$VERSION" ''; do
    finds "$wanted REQUIRED" || { echo "but $wanted is as good" && return 1; }
  done
  for wanted in "$major.$minor.$((patch + 1))" "$major.$((minor + 1))" "$((major + 1))" \
    "$major.$minor.$((patch + 1)) EXACT" "0.0...<$VERSION" "$major.$((minor + 1))...9"; do
    refuses "$wanted REQUIRED" || { echo "but $wanted is another" && return 1; }
  done
  [ "$major" != 0 ] || [ "$minor" = 0 ] || refuses "0.$((minor - 1)) REQUIRED"
}

components() {
  for kind in static shared; do
    case " $kinds " in
      *" $kind "*) finds "REQUIRED COMPONENTS $kind" || return 1 ;;
      *) refuses "REQUIRED COMPONENTS $kind" || return 1 ;;
    esac
  done
  refuses 'REQUIRED COMPONENTS striped'
}

case " $projects " in
  *' cmake '*)
    if have cmake; then
      check 'sluiceConfig.cmake holds no path of the build' no_build_paths
      check 'CMake is told which versions will do' versions
      check 'CMake is told which kinds of library there are' components
    else
      skip 'what find_package() makes of versions' 'no cmake'
    fi
    ;;
esac
finish
