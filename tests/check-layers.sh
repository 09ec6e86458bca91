#!/bin/sh
# SPDX-License-Identifier: MIT
# Layers of lib/ call and include only what stands below them in lib/layers, and files of a layer
# call each other in no larger circles than it allows. The check is tried on a small tree first.
. "${srcdir:-.}/tests/tap.sh"

have python3 || skip_all 'no python3'
have nm || skip_all 'no nm'
layers="$srcdir/tests/check-layers.py"

# source FILE TEXT: a source of the small tree, and its object.
source_of() {
  mkdir -p "$tmp/tree/lib/${1%/*}" "$tmp/tree/lib/${1%/*}/.libs"
  printf '%s\n' "$2" >"$tmp/tree/lib/$1"
  case $1 in
    *.c)
      object=${1##*/}
      # shellcheck disable=SC2086 # a compiler may come with options
      ${CC:-cc} -w -I"$tmp/tree/lib" -c "$tmp/tree/lib/$1" \
        -o "$tmp/tree/lib/${1%/*}/.libs/libsluice_la-${object%.c}.o"
      ;;
  esac
}

# rules TEXT: the small tree's, two layers and what is given.
rules() {
  printf 'low\nhigh\n%s\n' "$1" >"$tmp/tree/lib/layers"
}

# says TEXT: the small tree breaks that rule; with no TEXT it breaks none.
says() {
  python3 "$layers" "$tmp/tree" "$tmp/tree" >"$tmp/out" && result=0 || result=$?
  cat "$tmp/out"
  if [ "$1" ]; then
    [ "$result" = 1 ] && grep -q -F -e "$1" "$tmp/out"
  else
    [ "$result" = 0 ] && ! [ -s "$tmp/out" ]
  fi
}

source_of low/first.c 'void slu_second(void); void slu_first(void) { slu_second(); }'
source_of low/second.c 'void slu_second(void) {}'
source_of high/third.c 'void slu_first(void); void slu_third(void) { slu_first(); }'
rules ''
check 'calls downwards and within a layer are allowed' says ''
source_of low/second.c 'void slu_third(void); void slu_second(void) { slu_third(); }'
check 'a call upwards is found' says 'lib/low/second.c calls slu_third of high/third.c, above it'
source_of low/seam.h 'void slu_third(void);'
rules 'seam low/seam.h'
check 'a seam allows it' says ''
source_of high/third.h 'struct slu_third;'
source_of low/fourth.h '#include "high/third.h"'
check 'an include upwards is found' says 'lib/low/fourth.h includes high/third.h'
rm "$tmp/tree/lib/low/fourth.h"
source_of low/second.c 'void slu_first(void); void slu_second(void) { slu_first(); }'
check 'a circle is found' says '2 files of low call each other in a circle, not 0'
rules 'circle low 2'
check 'a circle that is allowed is none' says ''
rules 'circle low 3'
check 'a rule that is too wide is found' says 'allows a circle of 3 files in low: there are 2'

if nm lib/base/.libs/*.o 2>/dev/null | grep -q ' T '; then
  check 'layers of lib/' python3 "$layers" "$srcdir" .
else
  skip 'layers of lib/' 'no objects with symbols here'
fi
finish
