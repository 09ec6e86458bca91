#!/bin/sh
# SPDX-License-Identifier: MIT
# The compiler catches misuse: each part of a tests/typestate/wrong-*.c, which #ifdef
# begins, is a program, and names the warning that gcc must give, and no other; each
# right-*.c compiles in silence.
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

# warnings_of FILE FLAG: the names of the warnings that gcc gives, one a line.
warnings_of() {
  # shellcheck disable=SC2086 # as above
  $gcc -std=gnu99 -O2 -Wall -Wextra $2 -I"$srcdir/include" -isystem "$programs" -c -o "$tmp/program.o" "$1" \
    >"$tmp/gcc.out" 2>&1
  cat "$tmp/gcc.out" >&2
  sed -n 's/.*warning: .*\[\(-W[a-z-]*\).*\]$/\1/p' "$tmp/gcc.out" | sort -u
}

programs_of() {
  sed -n 's,^#ifdef \([A-Z0-9_]*\) /\* expect: .*,\1,p' "$1"
}

# expected_of FILE PROGRAM
expected_of() {
  sed -n "s,^#ifdef $2 /\\* expect: \\(.*\\) \\*/,\\1,p" "$1" | tr ' ' '\n' | sort -u
}

gives_what_it_should() {
  expected=$(expected_of "$1" "$2")
  case $expected in -Wanalyzer-*) analyzer=-fanalyzer ;; *) analyzer= ;; esac
  given=$(warnings_of "$1" "-D$2 $analyzer")
  echo "expected: ${expected:-none}, given: ${given:-none}"
  [ -n "$expected" ] && [ "$given" = "$expected" ]
}

known() {
  for warning in $(expected_of "$1" "$2"); do
    # shellcheck disable=SC2086 # as above
    $gcc -Werror "$warning" -E -x c /dev/null >/dev/null 2>&1 || return 1
  done
}

for file in "$programs"/wrong-*.c; do
  for program in $(programs_of "$file"); do
    name=$(basename "$file" .c)-$(echo "$program" | tr _A-Z -a-z)
    if known "$file" "$program"; then
      check "$name: $(expected_of "$file" "$program" | tr '\n' ' ')" \
        gives_what_it_should "$file" "$program"
    else
      skip "$name" "this gcc has no $(expected_of "$file" "$program")"
    fi
  done
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
