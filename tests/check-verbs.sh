#!/bin/sh
# SPDX-License-Identifier: MIT
# The test programs of one process, on a pretend RDMA device: the verbs transport
# with the whole suite on any host, and under whatever sanitizer there is. The
# device stands in a libibverbs of its own, which they find first.
. "${srcdir:-.}/tests/tap.sh"

fake=$PWD/tests/verbs/.libs
[ "${VERBS:-no}" != no ] || skip_all 'configured without verbs'
[ -x tests/test_objects ] || skip_all 'configure did not find Check'
[ -f "$fake/libibverbs.so.1" ] || skip_all 'no shared libraries are built'

with_fake() {
  LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}

# A libibverbs that is linked statically cannot be exchanged.
for file in tests/.libs/test_objects tests/test_objects; do
  [ ! -f "$file" ] || break
done
library=lib/.libs/libsluice.so
[ -f $library ] || library=$file
case $(with_fake ldd "$library") in
  *"$fake/libibverbs.so.1"*) ;;
  *libibverbs*) ;;
  *) skip_all 'libibverbs is linked statically' ;;
esac

# run NUMBER PROGRAM KIND WORD...: on a device of these words.
run() {
  number=$1 program=$2
  shift 3
  SLUICE_FAKE_VERBS="$*" SLUICE_TEST_DEVICE=fake0 SLUICE_TEST_SHORT=1 \
    with_fake "tests/test_$program" >"$tmp/$number.out" 2>&1
  echo $? >"$tmp/$number.status"
}

# All its tests passed, and it did not find a reason to skip them.
passed() {
  # This one asks the kernel whether there are RDMA devices.
  sed -i '/^not ok.*:few_file_descriptors:/d' "$tmp/$1.out"
  grep -v '^ok' "$tmp/$1.out"
  grep -q '^ok' "$tmp/$1.out" && ! grep -q -e '^not ok' -e '# SKIP' "$tmp/$1.out" &&
    [ "$(cat "$tmp/$1.status")" -le 1 ]
}

finish_all() {
  at_once 4 run
  at=0
  while [ $at -lt "$tap_later" ]; do
    at=$((at + 1))
    read -r program kind _ <"$tmp/$at.later"
    check "test_$program on a device like $kind" passed $at
  done
  finish
}

# As rxe does it. scripts/test runs under a sanitizer those that move data in each way, and without
# it others; with --full it runs all of them.
moving='agent_messages atomics buffer buffer_batch buffer_region connect data farewell gather
  list_change memory messages node pool scope_stale threads wrap'
others='agent agent_lease agent_owners agent_regions attributes barriers buffer_blocks buffer_owners
  devices misuse node_open objects'
case ${SLUICE_TEST_PRETEND:-} in
  some) on_rxe=$moving ;;
  adapter) on_rxe=$others ;;
  *)
    on_rxe="$moving $others access agent_hostile agent_keys agent_long agent_pool arguments barriers_blame
      barriers_broken barriers_mixed classes contention counters deadlines elements endpoints errors
      event_loop fault_close fault_depth fault_fork fault_signals forms histograms
      inline mappings members node_alone node_connect order partly path peers reset scope
      scope_block scope_posts semantics submit posted waiting words"
    ;;
esac
for program in $on_rxe; do
  later "$program" rxe tidy rxe eager hurry=8
done
# Peers of an agent have receives of their own where a device has none that they could share.
[ "${SLUICE_TEST_PRETEND:-}" ] || later agent_pool plain tidy rxe eager hurry=8 max_srq=0
one_rank() {
  SLUICE_FAKE_VERBS='tidy rxe eager hurry=8' SLUICE_DEVICE=fake0 SLUICE_RANK=0 SLUICE_RANKS=1 \
    with_fake examples/12-kmeans "$srcdir/examples/data/digits.csv" >"$tmp/out" 2>&1
  status=$?
  cat "$tmp/out"
  [ "$status" = 0 ] && grep -q 'inertia 1167946.2077' "$tmp/out"
}
check 'examples/12-kmeans, one rank, on a device like rxe' one_rank
if [ -n "${SANITIZE:-}" ]; then
  skip 'test_steady on a device like rxe' 'a sanitizer has an allocator of its own'
else
  later steady rxe tidy rxe eager hurry=8
fi
# As adapters for InfiniBand do it, in time of its own, and with small completion queues.
# Under a sanitizer one device will do, and the programs that have one of their own.
[ -z "${SANITIZE:-}" ] || finish_all
for program in arguments atomics counters data deadlines elements endpoints \
  errors event_loop fault_close fault_depth forms histograms inline members node order \
  messages partly pool scope \
  scope_block scope_posts semantics submit threads posted waiting words; do
  later "$program" InfiniBand tidy infiniband purge events hurry=8 max_cqe=202
done
finish_all
