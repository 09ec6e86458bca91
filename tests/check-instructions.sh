#!/bin/sh
# SPDX-License-Identifier: MIT
# The library executes no more instructions for a call than it may.
. "${srcdir:-.}/tests/tap.sh"

# counted CASE: bench/instructions can count it, and finds nothing above a budget.
counted() {
  "$srcdir/bench/instructions" --short "$1" || {
    echo "exit status $?"
    return 1
  }
}

"$srcdir/bench/instructions" --can >"$tmp/out" 2>"$tmp/err" ||
  skip_all "$(sed -n 's/^instructions: skipped: //p' "$tmp/err")"
for name in run_send run_send_late run_write run_read run_receive run_post_poll run_post_wait \
  run_scatter_send run_list_send run_post_late run_list_poll run_scatter_gather run_multicast \
  run_scope run_prepared run_prepared_results run_cached run_arrivals run_timed_send \
  run_timed_scatter; do
  check "instructions of $name" counted $name
done
finish
