#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the examples, and test programs if there are any to run, on a device: soft,
# or another one, such as rxe0 in the guest of tests/softroce. In the top of the
# build tree:
#
#   check-examples.sh [DEVICE [TEST PROGRAM...]]
#
# With a colon and a word behind it, of a program only the group of tests of that name, and behind
# another colon the tests of it that are left out, with commas between.
# On soft, 03-scatter-gather is also run with all kinds of input, with wrong
# arguments, with ranks that come by TCP, and while its processes are killed; and
# the benchmarks are run.
. "${srcdir:-.}/tests/tap.sh"

device=${1:-soft}
[ $# = 0 ] || shift
export SLUICE_DEVICE="$device" SLUICE_TEST_DEVICE="$device"

# Open MPI does as it is told on any host, as any user; what it forgets to free
# is not ours.
with_mpi() {
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none \
    ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" \
    timeout 120 "${MPIEXEC:-mpiexec}" -n 4 "$@"
}

# The only rank of its job, which some are if nobody else is started.
alone() {
  env SLUICE_RANK=0 SLUICE_RANKS=1 "$@"
}

# example NAME [OPTION...]
example() {
  program=examples/$1
  case $1 in
    *-scatter-gather) timeout 120 "examples/$1" -n 4 "$tmp/input" ;;
    *-node | *-survivors | *-allreduce) alone timeout 120 "examples/$1" ;;
    # A value takes three reads, and most values are read several times: 2 ms on an emulated device.
    *-get) alone timeout 120 "examples/$1" -r 1000 ;;
    *-kmeans) alone timeout 120 "examples/$1" "$srcdir/examples/data/digits.csv" ;;
    *-mpi-*) with_mpi "examples/$1" ;;
    # A sequence is 1 MiB, for which an emulated device takes 0.1 s of all processors.
    *-kv-blocks) timeout 120 "$program" -r 20 ;;
    *) shift && timeout 120 "$program" "$@" ;;
  esac
}

# took NUMBER COMMAND...: what it prints, its exit status and its seconds are in files.
took() {
  number=$1 begun=$(date +%s)
  shift
  "$@" >"$tmp/$number.out" 2>"$tmp/$number.err" </dev/null
  echo $? $(($(date +%s) - begun)) >"$tmp/$number.status"
}

# With a colon and a word behind it, a program runs the tests of that group alone. A script is one
# that is for the guest.
test_program() {
  case $1 in
    *.sh) env -u SLUICE_DEVICE -u SLUICE_TEST_DEVICE timeout 1200 sh "$1" guest ;;
    *:*:*)
      without=$(echo "${1##*:}" | tr , ' ')
      SLUICE_TEST_WITHOUT=$without test_program "${1%:*}"
      ;;
    *:*) CK_RUN_CASE=${1#*:} timeout 300 "${1%%:*}" ;;
    *) env -u CK_RUN_CASE timeout 300 "$1" ;;
  esac
}

# read_status NUMBER: if the process that ran it died, there is no status and no output.
read_status() {
  touch "$tmp/$1.out" "$tmp/$1.err" "$tmp/$1.status"
  read -r status seconds <"$tmp/$1.status" || status=none seconds=0
}

came_to_its_end() {
  cat "$tmp/$1.out" "$tmp/$1.err"
  echo "exit status $status"
  [ "$status" = 0 ]
}

# How long each took tells what scripts/test can have in the guest, or what to shorten.
tell() {
  read -r kind name words <"$tmp/$1.later"
  read_status "$1"
  echo "# $name took $seconds s"
  if [ "$kind" = example ]; then
    check "examples/$name${words:+ $words} on $device" came_to_its_end "$1"
    return
  fi
  program=${name##*/}
  case $program in
    *:*:*)
      for left_out in $(echo "${program##*:}" | tr , ' '); do
        grep -q -E "^TEST(_WITH\\([a-z_]+, |\\()${left_out}[,)]" "$srcdir"/tests/*/"${program%%:*}.c" ||
          check "${program%%:*} has the test $left_out, which is left out" false
      done
      program=${program%:*}
      ;;
  esac
  sed 's/^/# /' "$tmp/$1.err"
  pass_on "${program%%:*}" "$status" "$tmp/$1.out"
  if [ "$program" != "${program#*:}" ] && ! grep -q -E '^(not )?ok ' "$tmp/$1.out"; then
    check "${program%%:*} has a group of tests that is called ${program#*:}" false
  fi
}

head -c 8000000 /dev/urandom >"$tmp/input"
# Three at a time: in a guest most of them wait, for its device takes seconds to find that a peer
# is dead. Whose interfaces go is alone.
lonely=
# On iWARP endpoints connect nothing, and the examples exchange them.
case $device in
  siw*) ;;
  *) later example 08-many-peers -k -n 2 ;;
esac
for source in "$srcdir"/examples/[0-9]*.c; do
  name=$(basename "$source" .c)
  title="examples/$name on $device"
  # MPI is of no use to a device, and slow to start in a guest.
  case $device:$name in soft:*) ;; siw*:* | *-mpi-*) continue ;; esac
  if [ ! -x "examples/$name" ]; then
    skip "$title" 'built without what it needs'
  elif [ "$name" != "${name#*-mpi-}" ] && ! have "${MPIEXEC:-mpiexec}"; then
    skip "$title" 'no mpiexec'
  else
    later example "$name"
  fi
done
for program; do
  case $program in
    */test_events*) lonely=$program ;;
    *) later test_program "$program" ;;
  esac
done
at_once 3 took
if [ "$lonely" ]; then
  later test_program "$lonely"
  took "$tap_later" test_program "$lonely"
fi
at=0
while [ $at -lt "$tap_later" ]; do
  at=$((at + 1))
  tell $at
done

# Seconds that a run may take: much more than it needs, for sanitizers are slow.
limit=120

# runs TEXT COMMAND...: it succeeds in time and prints TEXT.
runs() {
  text=$1
  shift
  timeout "$limit" "$@" >"$tmp/out" 2>&1
  status=$?
  cat "$tmp/out"
  echo "exit status $status"
  [ "$status" = 0 ] && grep -q -F -e "$text" "$tmp/out"
}

# alone_runs TEXT COMMAND...: the same, as the only rank.
alone_runs() {
  text=$1
  shift
  runs "$text" env SLUICE_RANK=0 SLUICE_RANKS=1 "$@"
}

# refuses STATUS TEXT COMMAND...: it fails with this status, TEXT on stderr, and
# nothing on stdout.
refuses() {
  expected=$1 text=$2
  shift 2
  timeout "$limit" "$@" >"$tmp/out" 2>"$tmp/err"
  status=$?
  cat "$tmp/out" "$tmp/err"
  echo "exit status $status"
  [ "$status" = "$expected" ] && grep -q -F -e "$text" "$tmp/err" && ! [ -s "$tmp/out" ]
}

# within SECONDS COMMAND...: tries until it succeeds.
within() {
  tries=$(($1 * 10))
  shift
  while ! "$@"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || return 1
    sleep 0.1
  done
}

# A process that nobody has collected yet is gone as well.
gone() {
  ! grep -q '^State:[[:blank:]]*[^ZX[:blank:]]' "/proc/$1/status" 2>/dev/null
}

all_gone() {
  for worker; do
    within 10 gone "$worker" || {
      echo "process $worker is left behind"
      kill -9 "$worker"
      return 1
    }
  done
}

# Starts four processes that run for long: rank 0 is $pid, the others are $workers.
# A shell starts what runs in the background deaf to SIGINT, hence env.
start_long_run() {
  : >"$tmp/out"
  env --default-signal=INT examples/03-scatter-gather -n 4 -r 1000000 >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  within "$limit" grep -q 'processes on device' "$tmp/out" || {
    cat "$tmp/err"
    give_up 'it does not start'
    return 1
  }
  workers=$(cat "/proc/$pid/task/$pid/children")
}

give_up() {
  echo "$1"
  kill -9 "$pid"
  wait "$pid"
  return 1
}

# The second worker is killed: rank 0 says which, fails, and takes the others along.
killed_worker() {
  start_long_run || return 1
  # shellcheck disable=SC2086 # they are words
  set -- $workers
  kill -9 "$2"
  within 15 gone "$pid" || give_up 'rank 0 still runs' || return 1
  wait "$pid"
  status=$?
  cat "$tmp/err"
  echo "exit status $status"
  [ "$status" = 1 ] && grep -q 'rank 2' "$tmp/err" && all_gone "$@"
}

# signalled SIGNAL: rank 0 ends by it, and nobody stays behind.
signalled() {
  start_long_run || return 1
  kill -s "$1" "$pid"
  within 10 gone "$pid" || give_up 'rank 0 still runs' || return 1
  wait "$pid"
  status=$?
  echo "exit status $status"
  # shellcheck disable=SC2086 # they are words
  [ "$status" -gt 128 ] && all_gone $workers
}

check_scatter_gather() {
  program=examples/03-scatter-gather
  for processes in 1 2 4 8; do
    check "$program with $processes processes" runs 'digests agree' $program -n $processes
  done
  for size in 0 1 4097 1048576 5000003; do
    head -c $size "$tmp/input" >"$tmp/file"
    for processes in 1 3 8; do
      check "$program with $processes processes and $size bytes, twice" \
        runs 'digests agree' $program -n $processes -r 2 "$tmp/file"
    done
  done
  for wrong in '-n 0' '-n 65' '-n -1' '-n two' '-n' '-r 0' '-r 2x' '-x' 'one two' '-l' '-c' \
    '-c localhost:1 -n 2' '-l localhost:0 -c localhost:1' '-c localhost:1 one'; do
    # shellcheck disable=SC2086 # they are words
    check "$program $wrong" refuses 2 usage $program $wrong
  done
  check "$program with no such file" refuses 1 nosuchfile $program "$tmp/nosuchfile"
  check "$program with a folder" refuses 1 'not a regular file' $program "$tmp"
  check "$program at no port" refuses 1 'localhost: not ADDRESS:PORT' $program -l localhost
  check "$program at no address" refuses 1 'no.such.host.invalid:7' $program -c no.such.host.invalid:7
}

# start_rank0 ARGUMENT...: it is $pid, and waits at $address.
start_rank0() {
  : >"$tmp/out"
  $program -l 127.0.0.1:0 "$@" >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  within "$limit" grep -q 'waiting at' "$tmp/out" || give_up 'it does not wait' || return 1
  address=$(sed -n 's/waiting at //p' "$tmp/out")
}

# ends STATUS TEXT: rank 0 does, and has said so.
ends() {
  within "$limit" gone "$pid" || give_up 'rank 0 still runs' || return 1
  wait "$pid"
  status=$?
  cat "$tmp/out" "$tmp/err"
  echo "exit status $status"
  [ "$status" = "$1" ] && cat "$tmp/out" "$tmp/err" | grep -q -F -e "$2"
}

# Two ranks are started elsewhere, one of them before there is a rank 0: on a port
# that was free a moment ago.
by_tcp() {
  start_rank0 -n 2 "$tmp/input" || return 1
  $program -c "$address" || return 1
  ends 0 'digests agree' || return 1
  $program -c "$address" &
  early=$!
  $program -l "$address" -n 3 "$tmp/input" >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  $program -c "$address" || return 1
  wait "$early" || return 1
  ends 0 'digests agree'
}

# Somebody comes and goes without a word.
says_nothing() {
  start_rank0 -n 2 "$tmp/input" || return 1
  bash -c ': >"/dev/tcp/${1%:*}/${1##*:}"' bash "$address" || return 1
  ends 1 'rank 1 gave no endpoint'
}

# A rank that came by TCP is killed at work.
killed_elsewhere() {
  start_rank0 -n 2 -r 1000000 || return 1
  $program -c "$address" &
  worker=$!
  within "$limit" grep -q 'processes on device' "$tmp/out" || give_up 'it does not start' || return 1
  kill -9 "$worker"
  ends 1 'rank 1'
}

check_elsewhere() {
  program=examples/03-scatter-gather
  check "$program with ranks that come by TCP" by_tcp
  check "$program is left alone by a rank" says_nothing
  check "$program names a rank elsewhere that is killed" killed_elsewhere
}

check_killed() {
  if ! [ -r "/proc/$$/task/$$/children" ]; then
    skip 'processes that are killed' 'no list of children in /proc'
  elif ! env --default-signal=INT true 2>/dev/null; then
    skip 'processes that are killed' 'env cannot restore SIGINT'
  else
    check 'examples/03-scatter-gather names a worker that is killed' killed_worker
    for signal in INT TERM KILL; do
      check "examples/03-scatter-gather leaves nobody behind at SIG$signal" signalled $signal
    done
  fi
}

# Rank 1 is killed at work: the others notice it by themselves, for they do not hear
# when sluice-launch asks them to end.
killed_rank() {
  rm -f "$tmp"/rank.*
  : >"$tmp/out"
  # shellcheck disable=SC2016 # it is the shells of the ranks that see these
  tools/sluice-launch -q -n 3 sh -c \
    'trap "" TERM; echo $$ >"$1.$SLUICE_RANK"; exec examples/12-kmeans --repeat 100000 "$2"' \
    - "$tmp/rank" "$digits" >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  if within "$limit" grep -q '3 ranks' "$tmp/out"; then
    kill -9 "$(cat "$tmp/rank.1")"
    within 30 gone "$pid" || echo 'it still runs'
  fi
  # shellcheck disable=SC2046 # they are words
  gone "$pid" || kill -9 $(cat "$tmp"/rank.*)
  wait "$pid"
  status=$?
  cat "$tmp/out" "$tmp/err"
  echo "exit status $status"
  [ "$status" != 0 ] && grep -q '^12-kmeans: rank 0: w.* the sums' "$tmp/err" &&
    grep -q '^12-kmeans: rank 2: w.* the sums' "$tmp/err"
}

# The measured values do not matter: status 1 is a ratio below the budget.
blocks_move() {
  timeout 120 bench/blocks -b 131072 -r 1 >"$tmp/out" 2>&1
  status=$?
  cat "$tmp/out"
  [ "$status" -le 1 ] && [ "$(grep -c -E '(\]  |not )met$' "$tmp/out")" = 24 ]
}

# The expected clusters were computed by another program, in another language.
check_kmeans() {
  program=examples/12-kmeans digits=$srcdir/examples/data/digits.csv
  clusters='21 iterations, inertia 1167946.2077, purity 78.85 %, centres 22c7cb8fec892bfd'
  check "$program by itself" alone_runs "$clusters" $program "$digits"
  for ranks in 1 2 3 7; do
    check "$program with $ranks ranks" \
      runs "$clusters" tools/sluice-launch -q -n $ranks $program "$digits"
  done
  check "$program with few clusters, for few iterations" \
    runs '4 iterations, inertia 1825019.4583, purity 28.83 %, centres e6f4242358499b4c' \
    tools/sluice-launch -q -n 2 $program --clusters 3 --iterations 4 "$digits"
  check "$program without a file" refuses 2 'FILE is missing' $program
  check "$program with a number that is none" refuses 2 'from 1 to 1000000' $program --repeat 0 "$digits"
  head -n 5 "$digits" >"$tmp/five.csv"
  check "$program with more ranks than rows" runs '2 iterations, inertia 0.0000, purity 100.00 %' \
    tools/sluice-launch -q -n 7 $program --clusters 5 "$tmp/five.csv"
  check "$program with more clusters than rows" refuses 1 'five.csv: 5 rows are too few for 6' \
    tools/sluice-launch -q -n 2 $program --clusters 6 "$tmp/five.csv"
  sed '17s/,/,17,/' "$digits" >"$tmp/wrong.csv"
  check "$program with a pixel that is too bright" refuses 1 'wrong.csv:17: pixel 2 is not' \
    tools/sluice-launch -q -n 3 $program "$tmp/wrong.csv"
  sed '3s/$/,1/' "$digits" >"$tmp/wrong.csv"
  check "$program with a line that is too long" refuses 1 'wrong.csv:3: the 64 pixels are not' \
    env SLUICE_RANK=0 SLUICE_RANKS=1 $program "$tmp/wrong.csv"
  check "$program with no such file" refuses 1 "$tmp/nosuchfile: No such" \
    env SLUICE_RANK=0 SLUICE_RANKS=1 $program "$tmp/nosuchfile"
  for wrong in '' '--clusters 0 x' '--clusters 2x x' '--iterations -1 x' '--repeat' 'one two'; do
    # shellcheck disable=SC2086 # they are words
    check "$program $wrong" refuses 2 usage $program $wrong
  done
  check "$program ends when a rank is killed" killed_rank
}

# survive RANKS VICTIM...: ranks kill themselves, and all others finish.
survive() {
  ranks=$1 status=0
  shift
  timeout "$limit" tools/sluice-launch --keep-going -q -n "$ranks" examples/17-survivors "$@" \
    >"$tmp/out" 2>&1 || status=$?
  cat "$tmp/out"
  echo "exit status $status"
  survivors=$((ranks - $#))
  [ "$status" = 3 ] &&
    [ "$(grep -c " did 6 rounds, at the end with $survivors of $ranks ranks" "$tmp/out")" = "$survivors" ]
}

# Sums of so many ranks by both algorithms: of less numbers than ranks, of odd ones, and of more
# than a piece. Each rank looks at its own sums.
# shellcheck disable=SC2016 # it is a shell of its own that sees these variables
reductions='for algorithm in ring tree; do
  for numbers in 1 2 3 1001 100003; do
    timeout 120 "$1" -q -n "$2" examples/19-allreduce -a $algorithm -n $numbers -r 2 || exit 1
  done
done'

# get RANKS GETS: while the owner changes what they read, no reader takes a value that is torn.
get() {
  if [ "$1" = 1 ]; then
    alone timeout "$limit" examples/18-get -r "$2" >"$tmp/out" 2>&1
  else
    timeout "$limit" tools/sluice-launch -q -n "$1" examples/18-get -r "$2" >"$tmp/out" 2>&1
  fi
  status=$?
  cat "$tmp/out"
  echo "exit status $status"
  readers=$(($1 > 1 ? $1 - 1 : 1))
  [ "$status" = 0 ] && [ "$(grep -c " got $2 values .*, torn 0\$" "$tmp/out")" = "$readers" ]
}

if [ "$device" = soft ]; then
  check 'examples/01-loopback on an unknown device' \
    refuses 1 nosuch0 env SLUICE_DEVICE=nosuch0 examples/01-loopback
  if [ -x examples/03-scatter-gather ]; then
    check_scatter_gather
    check_elsewhere
    check_killed
  fi
  for wire in shm tcp; do
    export SLUICE_WIRE=$wire
    check "examples/17-survivors over $wire: one rank dies" survive 4 2
    check "examples/17-survivors over $wire: rank 0 dies, and another one" survive 3 0 2
    check "examples/18-get over $wire: values are whole" get 3 5000
    unset SLUICE_WIRE
  done
  for wire in shm tcp; do
    for ranks in 1 2 3 4; do
      check "examples/19-allreduce of $ranks ranks over $wire" env SLUICE_WIRE=$wire \
        sh -c "$reductions" - tools/sluice-launch "$ranks"
    done
  done
  check 'examples/19-allreduce of no numbers' refuses 2 usage examples/19-allreduce -n 0
  check 'examples/19-allreduce by no such algorithm' refuses 2 usage examples/19-allreduce -a star
  check 'examples/18-get within a process: values are whole' get 1 20000
  check 'examples/18-get with a number that is none' refuses 2 usage examples/18-get -r 0
  check 'examples/07-event-loop hears all' runs 'all: 20 20 20 readings' examples/07-event-loop
  check 'examples/13-remote-alloc hands memory over' \
    runs 'received 17 bytes: written from afar' examples/13-remote-alloc
  check 'examples/13-remote-alloc where nobody listens' \
    refuses 1 '127.0.0.1:1' examples/13-remote-alloc -c 127.0.0.1:1 text
  check 'examples/13-remote-alloc with no text' \
    refuses 2 usage examples/13-remote-alloc -c 127.0.0.1:1
  for workers in 1 5; do
    check "examples/14-parameter-server with $workers of them finds the same" \
      runs "$workers workers, 20 steps: digest 1168abeb9bd115e9" \
      examples/14-parameter-server -n "$workers" -s 20
  done
  check 'examples/14-parameter-server with no workers' \
    refuses 2 usage examples/14-parameter-server -n 0
  check 'examples/15-kv-blocks with blocks of no round size' \
    runs '20 sequences of 64 blocks of 1001 bytes, 5 owners' \
    examples/15-kv-blocks -b 1001 -n 5 -r 20
  check 'examples/16-server outlives its clients' \
    runs '6 clients have left, 2 were lost' examples/16-server
  check 'examples/16-server where nobody listens' \
    refuses 1 '127.0.0.1:1' examples/16-server -c 127.0.0.1:1 text
  check 'examples/16-server with no text' refuses 2 usage examples/16-server -c 127.0.0.1:1
  check 'examples/09-reconnect takes back who was killed' \
    runs 'client 1: 100 reports, died 2 times, was taken back 2 times' examples/09-reconnect
  check 'examples/08-many-peers with no workers' refuses 2 usage examples/08-many-peers -n 0
  check 'examples/10-node is a rank by itself' alone_runs 'add up to 49995000' examples/10-node
  check 'examples/10-node without a launcher says what to do' refuses 1 \
    'or alone with SLUICE_RANK=0 SLUICE_RANKS=1' examples/10-node
  check 'examples/10-node as four ranks' \
    runs 'add up to 799980000' tools/sluice-launch -n 4 examples/10-node
  if grep -q '^#define HAVE_JANSSON 1' config.h; then
    echo '{"hosts": [{"hostname": "a", "port": 1, "rankid": 0, "ibdev": "soft"}]}' >"$tmp/hosts"
    sed 's/"soft"/"nosuch0:1"/' "$tmp/hosts" >"$tmp/other-hosts"
    check 'examples/10-node on the device of a host file' runs 'add up to 49995000' \
      env -u SLUICE_DEVICE SLUICE_RANK=0 SLUICE_HOST_FILE="$tmp/hosts" examples/10-node
    check 'examples/10-node on a device of a host file that is not there' refuses 1 nosuch0:1 \
      env -u SLUICE_DEVICE SLUICE_RANK=0 SLUICE_HOST_FILE="$tmp/other-hosts" examples/10-node
  else
    skip 'examples/10-node on the device of a host file' 'built without jansson'
  fi
  for ranks in 1 2 3 8; do
    check "examples/11-barriers with $ranks ranks" runs dissemination examples/11-barriers -n $ranks
  done
  check 'examples/11-barriers resets its barriers' runs 'work again' examples/11-barriers
  check 'examples/11-barriers with no ranks' refuses 2 usage examples/11-barriers -n 0
  check_kmeans
  check 'bench/blocks moves each block to its place' blocks_move
  check 'bench/messages sends pages' runs quartiles bench/messages shm
  check 'bench/blocks with a wire that is none' refuses 2 usage bench/blocks pigeon
  check 'bench/agents with 1 and 10 peers' runs ' 10 ' bench/agents 1 10
  check 'bench/agents with a pool' runs ' 20 ' bench/agents --pool 16 20
  check 'bench/agents with too small a pool' refuses 2 usage bench/agents --pool 15 10
  check 'bench/scale with 1 and 100 peers' runs ' 100 ' bench/scale 1 100
  check 'bench/scale with a depth' runs ' 10 ' bench/scale --depth 4 10
  check 'bench/scale with no peers' refuses 2 usage bench/scale 0
  check 'bench/scale with no depth' refuses 2 usage bench/scale --depth
  check 'bench/scale with a wrong depth' refuses 2 usage bench/scale --depth 0 10
fi
finish
