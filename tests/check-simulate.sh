#!/bin/sh
# SPDX-License-Identifier: MIT
# The library in the simulator, see docs/simulation.md: the same programs in each run, from seeds
# that nobody has chosen; scripts/simulate runs new ones. A failure prints its seed.
# $SLUICE_TEST_SIMULATE is how many programs run on each module, 150.
. "${srcdir:-.}/tests/tap.sh"

programs=${SLUICE_TEST_SIMULATE:-150}
rank=tests/sim/.libs/rank.so

if [ ! -x tests/sim/simulate ]; then
  skip 'programs in the simulator' 'it runs on x86-64'
  finish
fi

# runs MODULE OPTION...: programs without a failure.
runs() {
  module=$1
  shift
  tests/sim/simulate --module "tests/sim/.libs/$module.so" --seed 1 --runs "$programs" "$@"
}

# The names of scenarios, each with its wires: "A1: shm tcp".
table() {
  sed -n 's/^    {"\([^"]*\)", [a-z0-9_]*, "\([^"]*\)"},$/\1: \2/p' \
    "$srcdir/tests/sim/programs/scenarios.c"
}

# Each scenario, once on each of its wires. Prints those that fail.
scenarios() {
  table | while IFS=': ' read -r name wires; do
    for wire in $wires; do
      [ -e tests/sim/.libs/fabric.so ] || [ "$wire" != fabric ] || continue
      tests/sim/simulate --module "$rank" --seed 1 --scenario "$name:$wire" >"$tmp/out" 2>&1 ||
        cat "$tmp/out"
    done
  done >"$tmp/failed"
  cat "$tmp/failed"
  [ ! -s "$tmp/failed" ]
}

# The page has each scenario with its wires.
page_has_scenarios() {
  table | sort >"$tmp/table"
  awk -F ' [|] ' '/^[|] [^ ]* [|] .* [|] (self|shm|tcp|fabric|many)/ { print substr($1, 3) ": " $3 }' \
    "$srcdir/docs/simulation.md" | sort | diff "$tmp/table" -
}

# The trace of a run without what the host's clock says.
trace() {
  tests/sim/simulate --module "$rank" --seed 1 --trace --log 2>&1 | grep -v '^simulate'
}

repeats() {
  trace >"$tmp/first"
  trace >"$tmp/second"
  [ -s "$tmp/first" ] && cmp "$tmp/first" "$tmp/second"
}

# The twentieth program of a run is the one of its seed.
repeats_alone() {
  tests/sim/simulate --module "$rank" --seed 1 --runs 20 --trace 2>&1 | grep -v '^simulate' |
    awk '/  network: / { text = "" } { text = text $0 "\n" } END { printf "%s", text }' >"$tmp/last"
  tests/sim/simulate --module "$rank" --seed 20 --trace 2>&1 | grep -v '^simulate' >"$tmp/alone"
  [ -s "$tmp/last" ] && cmp "$tmp/last" "$tmp/alone"
}

# A program that breaks a promise ends with the command that repeats it.
says_how_to_repeat() {
  ! tests/sim/simulate --module "$rank" --seed 4711 --no-faults wrong=1 \
    >"$tmp/out" 2>&1 &&
    grep -q '^simulate: seed 4711: .* is wrong' "$tmp/out" &&
    grep -q 'again: scripts/simulate --seed 4711 --no-faults wrong=1 --trace' "$tmp/out"
}

# Failures with the same words are one kind, which is printed once.
goes_on() {
  mkdir "$tmp/kinds"
  ! "$srcdir/tests/sim/night" 3 "$tmp/kinds" 4711 tests/sim/simulate --module "$rank" \
    --no-faults wrong=1 >"$tmp/out" 2>&1 &&
    [ "$(grep -c '^simulate: seed 4711: ' "$tmp/out")" = 1 ] &&
    [ "$(cat "$tmp"/kinds/kind.*/seeds | sort -u | wc -l)" -gt 1 ]
}

check 'a seed gives the same run each time' repeats
check 'a program is the same whatever ran before it' repeats_alone
check 'a broken promise is reported with its seed' says_how_to_repeat
check 'a night goes on after a failure' goes_on
check 'scenarios keep every promise' scenarios
check 'docs/simulation.md lists the scenarios' page_has_scenarios
check 'programs over shared memory and TCP keep every promise' runs rank
if [ -e tests/sim/.libs/fabric.so ]; then
  check 'programs over a fabric of devices keep every promise' runs fabric
else
  skip 'programs over a fabric of devices' 'a build without verbs'
fi
finish
