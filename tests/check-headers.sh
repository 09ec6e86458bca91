#!/bin/sh
# SPDX-License-Identifier: MIT
# Every public header compiles alone, as C99 and as C++11, without a warning.
. "${srcdir:-.}/tests/tap.sh"

# compile LANGUAGE STANDARD COMPILER HEADER [FLAG]...
compile() {
  language=$1 standard=$2 compiler=$3 header=$4
  shift 4
  printf '#include <%s>\nextern int alone;\n' "$header" >"$tmp/alone.$language"
  # shellcheck disable=SC2086 # a compiler may come with options
  silent $compiler -std="$standard" -pedantic -Wall -Wextra -Werror "$@" \
    -I"$srcdir/include" -fsyntax-only "$tmp/alone.$language"
}

# durations LANGUAGE STANDARD COMPILER: they are right, and no warning is made of them.
durations() {
  # shellcheck disable=SC2086 # a compiler may come with options
  silent $3 -x "$1" -std="$2" -pedantic -Wall -Wextra -Wconversion -Werror -I"$srcdir/include" \
    -o "$tmp/durations" "$srcdir/tests/headers/durations.c" && "$tmp/durations"
}

c_compilers=
cxx_compilers=
for compiler in gcc clang; do have $compiler && c_compilers="$c_compilers $compiler"; done
for compiler in g++ clang++; do have $compiler && cxx_compilers="$cxx_compilers $compiler"; done

# shellcheck disable=SC2086 # flags are words
for path in "$srcdir"/include/*.h "$srcdir"/include/sluice/*.h; do
  header=${path#"$srcdir"/include/}
  if [ "$header" = sluice/verbs.h ] && [ "${VERBS:-yes}" = no ]; then
    skip "$header" 'built without verbs'
    continue
  fi
  flags=
  if [ "$header" = sluice/mpi.h ]; then
    # Its warnings are its own, not ours.
    flags=$(echo " ${MPI_CFLAGS:-}" | sed 's/ -I/ -isystem /g')
    if ! echo '#include <mpi.h>' | silent ${CC:-cc} $flags -E -o /dev/null -; then
      skip "$header" 'no headers of MPI'
      continue
    fi
  fi
  for compiler in ${c_compilers:-"${CC:-cc}"}; do
    check "$header is C99 ($compiler)" compile c c99 "$compiler" "$header" -Wpadded $flags
  done
  for compiler in $cxx_compilers; do
    check "$header is C++11 ($compiler)" compile cc c++11 "$compiler" "$header" $flags
  done
done
for compiler in ${c_compilers:-"${CC:-cc}"}; do
  check "durations in C99 ($compiler)" durations c c99 "$compiler"
done
for compiler in $cxx_compilers; do
  check "durations in C++11 ($compiler)" durations c++ c++11 "$compiler"
done
[ -n "$cxx_compilers" ] || skip 'headers are C++11' 'no C++ compiler'
finish
