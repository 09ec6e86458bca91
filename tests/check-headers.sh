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

c_compilers=
cxx_compilers=
for compiler in gcc clang; do have $compiler && c_compilers="$c_compilers $compiler"; done
for compiler in g++ clang++; do have $compiler && cxx_compilers="$cxx_compilers $compiler"; done

for path in "$srcdir"/include/*.h "$srcdir"/include/sluice/*.h; do
  header=${path#"$srcdir"/include/}
  if [ "$header" = sluice/verbs.h ] && [ "${VERBS:-yes}" = no ]; then
    skip "$header" 'built without verbs'
    continue
  fi
  for compiler in ${c_compilers:-"${CC:-cc}"}; do
    check "$header is C99 ($compiler)" compile c c99 "$compiler" "$header" -Wpadded
  done
  for compiler in $cxx_compilers; do
    check "$header is C++11 ($compiler)" compile cc c++11 "$compiler" "$header"
  done
done
[ -n "$cxx_compilers" ] || skip 'headers are C++11' 'no C++ compiler'
finish
