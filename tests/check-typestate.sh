#!/bin/sh
# SPDX-License-Identifier: MIT
# The compiler catches misuse: each WRONG() of a tests/typestate/wrong-*.c is a program, and names
# the warnings that gcc must give for it, and no other; each right-*.c compiles in silence.
. "${srcdir:-.}/tests/tap.sh"

programs=$srcdir/tests/typestate
gcc=
for candidate in "${CC:-cc}" gcc; do
  # shellcheck disable=SC2086 # a compiler may come with options
  macros=$($candidate -dM -E -x c /dev/null 2>/dev/null)
  case $macros in *__clang__*) continue ;; esac
  major=$(printf '%s\n' "$macros" | awk '$2 == "__GNUC__" { print $3 }')
  [ "${major:-0}" -ge 11 ] && gcc=$candidate && break
done
[ -n "$gcc" ] || skip_all 'no gcc of version 11 or later'

# warnings_of FILE FLAGS: the program and the name of each warning that gcc gives, one a line. One
# that is not in a program, but in what programs call, is of program "any".
warnings_of() {
  # shellcheck disable=SC2086 # as above
  LC_ALL=C $gcc -std=gnu99 -O2 -Wall -Wextra -Wno-return-type $2 -ftrack-macro-expansion=0 \
    -fno-diagnostics-show-caret -I"$srcdir/include" -isystem "$programs" -c -o "$tmp/program.o" "$1" 2>&1 |
    tee "$tmp/gcc.out" | awk '
      / In function / { program = "any" }
      match($0, /wrong_[a-z0-9_]+/) && /In function|inlined from/ {
        program = substr($0, RSTART + 6, RLENGTH - 6)
      }
      / warning: / && match($0, /\[-W[a-z-]*\]$/) { print program, substr($0, RSTART + 1, RLENGTH - 2) }
      / error: / { print program, "error" }' | sort -u
  cat "$tmp/gcc.out" >&2
}

# The programs of a file, each with the warnings that are expected, one a line.
programs_of() {
  tr '\n' ' ' <"$1" | grep -o 'WRONG( *[a-z0-9_]*, *"[^"]*"' | sed 's/WRONG( *//; s/, *"/ /; s/"//'
}

# gives_what_it_should PROGRAM EXPECTED...
gives_what_it_should() {
  program=$1
  shift
  expected=$(printf '%s\n' "$@" | sort -u)
  case $expected in *-Wanalyzer-*) given=$analyzed ;; *) given=$compiled ;; esac
  given=$(printf '%s\n' "$given" | sed -n "s/^$program //p; s/^any //p" | sort -u)
  echo "expected: ${expected:-none}, given: ${given:-none}"
  [ -n "$expected" ] && [ "$given" = "$expected" ]
}

known() {
  for warning; do
    # shellcheck disable=SC2086 # as above
    $gcc -Werror "$warning" -E -x c /dev/null >/dev/null 2>&1 || return 1
  done
}

for file in "$programs"/wrong-*.c; do
  compiled=$(warnings_of "$file" '')
  analyzed=$(warnings_of "$file" -fanalyzer)
  programs_of "$file" >"$tmp/programs"
  while read -r program expected; do
    name=$(basename "$file" .c)-$(echo "$program" | tr _ -)
    # shellcheck disable=SC2086 # names of warnings are words
    if known $expected; then
      check "$name: $expected" gives_what_it_should "$program" $expected
    else
      skip "$name" "this gcc has no $expected"
    fi
  done <"$tmp/programs"
done

for file in "$programs"/right-*.c; do
  name=$(basename "$file" .c)
  flags="-Wall -Wextra -O2 -I$srcdir/include -c -o $tmp/program.o"
  # shellcheck disable=SC2086 # flags are words
  check "$name is silent ($gcc)" silent $gcc -std=gnu99 $flags -fanalyzer "$file"
  for compiler in clang 'g++ -x c++ -std=c++11'; do
    # shellcheck disable=SC2086
    if have ${compiler%% *}; then
      check "$name is silent ($compiler)" silent $compiler $flags "$file"
    else
      skip "$name is silent ($compiler)" "no ${compiler%% *}"
    fi
  done
done
finish
