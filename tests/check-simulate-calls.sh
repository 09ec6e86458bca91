#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs of the simulator make each public call, or tests/sim/weights gives the reason why not.
. "${srcdir:-.}/tests/tap.sh"

nm=${NM:-nm}
weights=$srcdir/tests/sim/weights
programs=$srcdir/tests/sim/programs

calls() {
  sed -n 's/^ *\(sluice_[a-z0-9_]*\);$/\1/p' "$srcdir/lib/sluice.map" | sort
}

rows() {
  grep -o '^sluice_[a-z0-9_]*' "$weights" | sort
}

each_call_has_a_row() {
  calls >"$tmp/calls"
  rows >"$tmp/rows"
  diff "$tmp/calls" "$tmp/rows"
}

# A call and a file in each line, as the list has them.
listed() {
  awk '/^sluice_/ && $2 != "-" { for (i = 2; i <= NF; i++) print $1, $i }' "$weights" | sort
}

# The same, as the objects have them.
called() {
  for source in "$programs"/*.c; do
    name=$(basename "$source" .c)
    for object in "tests/sim/programs/.libs/rank_la-$name.o" "tests/sim/programs/rank_la-$name.o"; do
      [ ! -e "$object" ] || $nm -u "$object"
    done | awk -v name="$name" '$NF ~ /^sluice_/ { print $NF, name }'
  done | sort -u
}

each_row_is_true() {
  listed >"$tmp/listed"
  called >"$tmp/called"
  [ -s "$tmp/called" ] && diff "$tmp/listed" "$tmp/called"
}

each_reason_is_given() {
  awk '/^sluice_/ && (NF < 2 || ($2 == "-" && NF < 4)) { print; bad = 1 } END { exit bad }' "$weights"
}

each_program_has_its_weight() {
  sed -n 's/^= //p' "$weights" >"$tmp/listed"
  sed -n 's/.*= run_\([a-z]*\),.*\.weight = \([0-9]*\)}.*/\1 \2/p' "$programs/programs.c" \
    >"$tmp/programs"
  [ -s "$tmp/programs" ] && diff "$tmp/listed" "$tmp/programs"
}

all_weights_are_drawn() {
  sum=$(sed -n 's/^= .* //p' "$weights" | awk '{ sum += $1 } END { print sum }')
  grep -q "drawn = agreed($sum)" "$programs/programs.c"
}

check 'each public call has a row' each_call_has_a_row
check 'a call that no program makes has a reason' each_reason_is_given
check 'the list has the weights of all programs' each_program_has_its_weight
check 'the seed chooses each program' all_weights_are_drawn
if [ -d tests/sim/programs ] && [ -x tests/sim/simulate ]; then
  check 'each row names the sources that make the call' each_row_is_true
else
  skip 'each row names the sources that make the call' 'it runs on x86-64'
fi
finish
