#!/bin/sh
# SPDX-License-Identifier: MIT
# Every call that does something has a row in bench/ways, and no way of use falls off a cliff:
# by instructions on the wire "self", and by system calls a message, which do not depend on how
# busy the machine is.
. "${srcdir:-.}/tests/tap.sh"

ways=bench/ways/ways

# Calls that move no data, do not wait, and neither make nor end an object.
exempt() {
  cat <<'END'
# describe an object or give a part of it
_query$
_(address|counters|error|state|info|count|choice|gid|port|nearest|level|connection)$
_(rank|ranks|peers|missing|fd|histogram|histogram_reset)$
^sluice_buffer_(addr|export|remote)$
^sluice_allocator_mr$
^sluice_agent_(message_addr|message_length|message_peer|mr_peer)$
^sluice_node_(context|exchange|generation|members|multichannel|pd)$
^sluice_multichannel_peer_remote$
^sluice_multichannel_receive_any_room$
^sluice_verbs_(channel_qp|context|mr|multichannel_qp|pd)$
# name memory or endpoints, by arithmetic
^sluice_mr_(addr|length|lkey|page_size|remote|sge|sge_at)$
^sluice_remote_mr_(pack|slice|unpack)$
^sluice_prepared_(channel_endpoint|multichannel_endpoints|node_endpoints)$
# tell words and numbers of the library, or of the environment
^sluice_(version|version_number|last_error|log_set|interrupt_set|status_name|error_class_name|environment_variable)$
^sluice_histogram_
^sluice_launch_query$
# need what no machine of the tests has: memory of another device, objects that another made
^sluice_mr_register_dmabuf$
^sluice_verbs_(context|pd)_wrap$
END
}

# Cliffs that are known: the first word is what a check below is called by. A line goes when its
# cliff is gone, and must, for a check that passes in spite of its line fails.
known() {
  cat <<'END'
peers:solo_register looks for the region in the requests of all peers when it ends
END
}

if ! [ -x "$ways" ]; then
  skip_all "no $ways: run it in a build folder, after make"
fi
"$ways" --list >"$tmp/list"

complete() {
  awk -F '\t' '{ n = split($9, calls, " "); for (i = 1; i <= n; i++) print "sluice_" calls[i] }' \
    "$tmp/list" | grep -v -e '-$' | sort -u >"$tmp/rows"
  "$srcdir/scripts/update-map" --list | sort -u >"$tmp/exported"
  exempt | grep -v '^#' >"$tmp/exempt"
  comm -13 "$tmp/exported" "$tmp/rows" | sed 's/$/ is not exported/' >"$tmp/wrong"
  comm -23 "$tmp/exported" "$tmp/rows" | grep -v -E -f "$tmp/exempt" |
    sed 's/$/ has no row in bench\/ways/' >>"$tmp/wrong"
  while read -r call; do
    [ "$call" = sluice_scope_attach ] || # SLUICE_SCOPE() calls it
      grep -q "\\b$call(" "$srcdir"/bench/ways/*.c || echo "$call is named, and not called"
  done <"$tmp/rows" >>"$tmp/wrong"
  silent cat "$tmp/wrong"
}
check 'each call that does something has a row' complete

references() {
  cut -f 1 "$tmp/list" | sort >"$tmp/names"
  cut -f 3-4 "$tmp/list" | tr '\t' '\n' | grep -v -x -e - | sort -u | comm -13 "$tmp/names" - |
    sed 's/$/ is no way/' >"$tmp/wrong"
  uniq -d "$tmp/names" | sed 's/$/ is there twice/' >>"$tmp/wrong"
  silent cat "$tmp/wrong"
}
check 'each way is compared with one that exists' references

# bounded NAME TITLE COMMAND...: as check, but a known cliff has to be there.
bounded() {
  bounded_name=$1 bounded_title=$2
  shift 2
  if known | grep -q "^$bounded_name "; then
    check "$bounded_title (known cliff)" not "$@"
  else
    check "$bounded_title" "$@"
  fi
}

not() {
  if "$@"; then
    echo 'this cliff is gone: take its line out of the known ones'
    return 1
  fi
}

# instructions WAY BEFORE WARM: of one iteration, in thousandths. The second rank of a way that is
# not alone only sleeps.
instructions() {
  case $1 in solo_*) ranks=1 ;; *) ranks=2 ;; esac
  valgrind --quiet --tool=callgrind --callgrind-out-file="$tmp/callgrind" \
    --toggle-collect=measured "$ways" "$1" self "$ranks" 8 --before "$2" --warm "$3" --count 256 \
    >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; return 1; }
  awk '/^(summary|totals):/ { printf "%d\n", $2 * 1000 / 256; exit }' "$tmp/callgrind"
}

# at_most MOST A B: the ratio of A to B, in hundredths, is no more than that.
at_most() {
  echo "$2 to $3, $(($2 * 100 / $3)) hundredths of it, at most $1"
  [ $(($2 * 100)) -le $(($1 * $3)) ]
}

# After a few calls the rings are full, and results that nobody takes begin to go elsewhere.
after_calls() {
  few=$(instructions "$1" 0 1000) && many=$(instructions "$1" 0 10000) && at_most 110 "$many" "$few"
}

after_results() {
  few=$(instructions "$1" 10 10) && many=$(instructions "$1" 10000 10) &&
    at_most 110 "$many" "$few"
}

beside_peers() {
  few=$(instructions "$1" 1 10) && many=$(instructions "$1" 63 10) && at_most 110 "$many" "$few"
}

# like MOST WAY REFERENCE
like() {
  one=$(instructions "$2" 0 300) && two=$(instructions "$3" 0 300) && at_most "$1" "$one" "$two"
}

# Some versions of valgrind end where they meet what other compilers tell debuggers.
can_count() {
  have valgrind && "$srcdir/bench/instructions" --can 2>/dev/null || return 1
  instructions solo_write 0 1 >"$tmp/counted" 2>&1
  ! grep -q 'unhandled dwarf2' "$tmp/log"
}

if can_count; then
  for name in solo_write_untaken solo_write_backwards solo_send_untaken write_wait_last \
    many_write_flush; do
    bounded "calls:$name" "10,000 calls before: $name" after_calls $name
  done
  for name in solo_write_after solo_wait_after; do
    bounded "results:$name" "10,000 results not taken: $name" after_results $name
  done
  for name in solo_write solo_write_untaken solo_send solo_send_any solo_register; do
    bounded "peers:$name" "64 peers: $name" beside_peers $name
  done
  bounded like:solo_write_untaken 'results not taken cost no more than taken ones' \
    like 110 solo_write_untaken solo_write_poll
  bounded like:many_write_flush 'results not taken cost no more in a node' \
    like 115 many_write_flush many_write_poll
  bounded like:solo_send_untaken 'sends not taken cost no more than taken ones' \
    like 110 solo_send_untaken solo_send
  # What is passed over is kept, and found again: a sixth of the work in order.
  bounded like:solo_write_backwards 'waits in reverse order cost little more than in order' \
    like 125 solo_write_backwards solo_wait
  bounded like:solo_send_any 'a receive of a pool costs little more than one of a peer' \
    like 125 solo_send_any solo_send
  bounded like:solo_register 'registering costs as much as ten writes' \
    like 1000 solo_register solo_write
else
  skip 'instructions of ways' 'no valgrind for this build, or it is not for counting'
fi

# Calls that move data or make something. What sleeps and wakes depends on the machine, and is
# not counted: on shm, messages on the socket beside the memory are that. Nor is what failed.
count_calls() {
  moving='send|recv|mmap|munmap|mprotect|open|close|ioctl|process_vm|clone|socket|pread'
  [ "$2" = tcp ] || moving=${moving#send|recv|}
  strace -f -c -o "$tmp/strace" "$ways" "$1" "$2" 2 8 --count "$3" >"$tmp/log" 2>&1 || {
    cat "$tmp/log" >&2
    return 1
  }
  awk -v moving="^($moving)" '$NF ~ moving {
    calls += $4 - (NF == 6 ? $5 : 0)
  } END { print calls }' "$tmp/strace"
}

# system_calls MOST WAY WIRE: an iteration makes at most so many hundredths.
system_calls() {
  few=$(count_calls "$2" "$3" 10) && many=$(count_calls "$2" "$3" 510) || return 1
  echo "$(((many - few) / 5)) hundredths of a system call an iteration, at most $1"
  [ $(((many - few) / 5)) -le "$1" ]
}

if have strace && strace -o /dev/null true 2>/dev/null; then
  for name in write_flush write_wait_backwards echo_untaken echo_blocking; do
    bounded "shm:$name" "shm moves a message without system calls: $name" system_calls 10 $name shm
  done
  # A frame is sent and received by one call each, and so is its acknowledgement, where it has
  # one. An echo is two messages, each with a receive that the other side is told of: on a busy
  # machine none of these six frames travels with another.
  for name in write_poll write_flush write_blocking; do
    bounded "tcp:$name" "tcp moves each frame by one call a side: $name" system_calls 500 $name tcp
  done
  bounded tcp:echo_posted 'tcp moves each frame by one call a side: echo_posted' \
    system_calls 1250 echo_posted tcp
else
  skip 'system calls of ways' 'no strace, or it may not trace'
fi
finish
