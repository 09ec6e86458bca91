#!/bin/sh
# SPDX-License-Identifier: MIT
# The trace of a simulation as a sequence diagram, tests/sim/diagram: text and SVG.
. "${srcdir:-.}/tests/tap.sh"

have python3 || skip_all 'no python3'

diagram=$srcdir/tests/sim/diagram

# Two ranks: a connection, calls that come again, a quiet time, a fault, and a failure.
cat >"$tmp/trace" <<'END'
 100000000.000 us  network: delay 10 ns
 100000010.000 us  rank 0: calls sluice_listen() for 5 us: done
 100000020.000 us  rank 1: calls sluice_pd_alloc() for 0 us: done
 100000021.000 us  rank 1: calls sluice_mr_alloc() for 1 us: done
 100000030.000 us  a call of rank 1 reaches port 7500 of host 0: taken
 100000040.000 us  rank 0 sluice-soft: accepts a connection of rank 1
 100000050.000 us  rank 0 sluice-soft: accepts a connection of rank 1
 100000060.000 us  rank 1: calls sluice_connect() for 2500 us: NULL: host0 refused us
 102000060.000 us  fault 0: rank 1 is killed
 102000070.000 us  rank 0: calls sluice_accept() for 2 us: NULL: nobody is there
END
cat >"$tmp/failure" <<'END'

simulate: seed 7: a promise is broken
    after 102000080.000 us and 12 turns, in rank 0
    again: scripts/simulate --seed 7 --trace
END

# has TEXT...: each is in the diagram.
has() {
  cat "$tmp/trace" "$tmp/failure" | "$diagram" >"$tmp/out" || return 1
  for text in "$@"; do
    grep -qF -- "$text" "$tmp/out" || {
      echo "no '$text' in:"
      cat "$tmp/out"
      return 1
    }
  done
}

# The columns of rank 1 begin where its name does.
stands_in_column() {
  has 'rank 1' && awk '
    /rank 0 +rank 1/ { column = index($0, "rank 1") }
    /connect: NULL/ { found = column > 0 && index($0, "connect: NULL") - column < 4 }
    END { exit !found }' "$tmp/out"
}

# What rank 1 had done before it was killed is not drawn after that.
ends_with_its_rank() {
  has 'killed' && ! sed '1,/killed/d' "$tmp/out" | grep -q '|.*|'
}

keeps_few_rows() {
  "$diagram" --rows 2 <"$tmp/trace" >"$tmp/out" &&
    grep -q 'earlier rows' "$tmp/out" && grep -q 'is killed' "$tmp/out" &&
    ! grep -q 'connects' "$tmp/out"
}

is_svg() {
  cat "$tmp/trace" "$tmp/failure" | "$diagram" --svg "$tmp/out.svg" &&
    python3 -c 'import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])' "$tmp/out.svg" &&
    grep -q 'rank 1 is killed' "$tmp/out.svg" && grep -q 'marker-end' "$tmp/out.svg"
}

# A run of the simulator itself.
draws_a_run() {
  tests/sim/simulate --seed 4711 --ranks 2 --no-faults program=0 wrong=1 --trace 2>&1 | "$diagram" >"$tmp/out"
  grep -q 'multichannel_scatter_g' "$tmp/out" && grep -q '\*\*.* is wrong' "$tmp/out" &&
    grep -q 'again: scripts/simulate --seed 4711' "$tmp/out"
}

check 'calls, connections, faults and the failure are drawn' has 'listen' 'pd_alloc, mr_alloc' \
  '- connects (x 2) -' 'connect: NULL: host0' 'after 2.5 ms' '2.000 s' '!!fault 0: rank 1' \
  '**a promise is broken' 'again: scripts/simulate --seed 7'
check 'a call stands in the column of its rank' stands_in_column
check 'the line of a rank ends with it' ends_with_its_rank
check 'a long trace is cut, and its faults stay' keeps_few_rows
check 'a drawing is valid' is_svg
if [ -x tests/sim/simulate ]; then
  check 'a run of the simulator is drawn' draws_a_run
else
  skip 'a run of the simulator is drawn' 'it runs on x86-64'
fi
finish
