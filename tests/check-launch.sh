#!/bin/sh
# SPDX-License-Identifier: MIT
# Starts ranks in all the ways that sluice_mpi(7) names: each learns from its
# environment alone which rank it is, and reaches the others. What is not installed
# is skipped. Slurm is one host of its own, in a folder that goes away again.
# shellcheck disable=SC2016 # it is the shells of the ranks that see these variables
. "${srcdir:-.}/tests/tap.sh"

ranks=tests/exchange/launch/ranks
[ -x $ranks ] || skip_all "no $ranks was built"

# Nothing of a launcher that started this script, and no sanitizer's word on what
# MPI and PMIx forget to free.
conf=${SLURM_CONF:-}
for name in $(env | sed -n 's/^\(\(SLUICE\|OMPI\|PMI\|PMIX\|SLURM\)_[A-Za-z0-9_]*\)=.*/\1/p'); do
  unset "$name"
done
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
[ -z "$conf" ] || export SLURM_CONF="$conf"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"

# A port below those of clients, another one for each use.
port=$((20000 + $$ % 10000))
next_port() {
  port=$((port + 1))
}

built_with() {
  grep -q "^#define $1 1" config.h
}

# ranks_of N WORDS COMMAND...: it succeeds, and each of N ranks says its line once.
ranks_of() {
  wanted=$1 words=$2
  shift 2
  timeout 120 "$@" >"$tmp/out" 2>"$tmp/err" || { echo "exit status $?"; cat "$tmp/out" "$tmp/err"; return 1; }
  sed 's/^\[[0-9]*\] //' "$tmp/out" | grep '^rank ' | sort >"$tmp/got"
  i=0
  while [ "$i" -lt "$wanted" ]; do
    echo "rank $i of $wanted $words"
    i=$((i + 1))
  done | sort | diff - "$tmp/got"
}

# ends_with STATUS WORDS COMMAND...: it fails so, and says this.
ends_with() {
  wanted=$1 words=$2
  shift 2
  timeout 60 "$@" >"$tmp/out" 2>&1
  status=$?
  cat "$tmp/out"
  [ "$status" = "$wanted" ] && grep -q -e "$words" "$tmp/out"
}

# Output that is lost is a failure, unless who reads it has had enough.
full_output() {
  status=0
  "$launch" -n 2 echo lost >/dev/full 2>"$tmp/err" || status=$?
  cat "$tmp/err"
  [ "$status" = 1 ] && grep -q 'output of the ranks is lost' "$tmp/err"
}
enough_output() {
  "$launch" -n 1 seq 100000 2>"$tmp/err" | head -n 1 | grep -q 1 && ! grep -q 'is lost' "$tmp/err"
}

# Without standard streams it can say nothing, but the ranks run.
all_closed() {
  status=0
  "$launch" -n 2 sh -c 'echo ran >>"$1"; exit 3' - "$tmp/ran" <&- >&- 2>&- || status=$?
  [ "$status" = 3 ] && [ -s "$tmp/ran" ]
}

# says_in_err COUNT: that nothing proves of what job a rank is, by the last ranks.
says_in_err() {
  cat "$tmp/err"
  [ "$(grep -c 'nothing proves' "$tmp/err")" = "$1" ]
}

if [ "${1:-}" = slurm ]; then
  check 'srun' ranks_of 4 'by SLURM_PROCID and SLURM_NTASKS over TCP' srun -n 4 $ranks
  check 'srun, without munge of its own, warns' says_in_err 1
  export SLUICE_MUNGE="${SLURM_CONF%/*}/munge.socket"
  check 'srun, with munge' ranks_of 4 'by SLURM_PROCID and SLURM_NTASKS over TCP' srun -n 4 $ranks
  check 'srun, with munge, does not warn' says_in_err 0
  check 'srun of examples/12-kmeans' ends_with 0 'inertia 1167946.2077' \
    srun -n 4 examples/12-kmeans "$srcdir/examples/data/digits.csv"
  check 'srun --mpi=pmi2' ranks_of 3 'by PMI_RANK and PMI_SIZE over TCP' srun --mpi=pmi2 -n 3 $ranks
  if ! built_with HAVE_PMIX; then
    skip 'srun --mpi=pmix' 'built without PMIx'
  elif srun --mpi=list 2>&1 | grep -q pmix; then
    check 'srun --mpi=pmix' ranks_of 3 'by PMIx over PMIx' srun --mpi=pmix -n 3 $ranks 2
  else
    skip 'srun --mpi=pmix' 'Slurm was built without PMIx'
  fi
  finish
fi

# A rank without any launcher, and one that is alone.
check 'without a launcher the text says what was looked at' \
  ends_with 1 'nothing says which rank this is.*SLUICE_RANK' $ranks
next_port
check 'one rank of one' ranks_of 1 'by SLUICE_RANK and SLUICE_RANKS over TCP' \
  env SLUICE_RANK=0 SLUICE_RANKS=1 SLUICE_ROOT=127.0.0.1:$port $ranks

# Our own.
launch=tools/sluice-launch
[ -x $launch ] || skip_all "no $launch was built"
left_behind() {
  mkdir "$tmp/launch"
  TMPDIR=$tmp/launch timeout 60 env -u SLUICE_SECRET_FILE "$launch" -q -n 3 sh -c \
    'test -s "$SLUICE_SECRET_FILE" && stat -L -c %a "$SLUICE_SECRET_FILE"' >"$tmp/out" 2>&1
  cat "$tmp/out"
  [ "$(sort -u "$tmp/out")" = 600 ] && rmdir "$tmp/launch"
}
marked() {
  timeout 60 "$launch" -n 2 sh -c 'echo "out $SLUICE_RANK"; echo "error $SLUICE_RANK" >&2' \
    2>"$tmp/err" | sort >"$tmp/out"
  cat "$tmp/out" "$tmp/err"
  sort "$tmp/err" >>"$tmp/out"
  printf '[%s] %s %s\n' 0 out 0 1 out 1 0 error 0 1 error 1 | cmp - "$tmp/out"
}
numbered() {
  timeout 60 "$launch" -q -n 3 sh -c 'echo "$SLUICE_RANK $SLUICE_LOCAL_RANK"' | sort >"$tmp/out"
  cat "$tmp/out"
  printf '%s %s\n' 0 0 1 1 2 2 | cmp - "$tmp/out"
}
quickly_ends_with() {
  start=$(date +%s)
  ends_with "$@" && [ $(($(date +%s) - start)) -lt 30 ]
}
# Rank 5 is killed, all others fail as soon as it is dead: they have ended at the same time.
blames_the_killed() {
  rm -f "$tmp/victim"
  ends_with 137 'rank 5: killed by signal 9 (KILL)' "$launch" -n 8 sh -c '
    [ $SLUICE_RANK != 5 ] || { echo $$ >"$1.new" && mv "$1.new" "$1" && kill -KILL $$; }
    until [ -e "$1" ]; do sleep 0.05; done
    read -r id <"$1"
    while read -r line <"/proc/$id/stat"; do
      case $line in *") Z "*) break ;; esac
    done 2>/dev/null
    exit 1' - "$tmp/victim"
}
blames_the_lowest() {
  rm -f "$tmp/go"
  ends_with 13 'rank 2: exit status 13' "$launch" -n 8 sh -c '
    [ $SLUICE_RANK != 7 ] || : >"$1"
    until [ -e "$1" ]; do sleep 0.01; done
    [ $SLUICE_RANK -lt 2 ] || exit $((11 + $SLUICE_RANK))' - "$tmp/go"
}
# A dead process of which nobody takes notice is dead all the same.
lives() {
  kill -0 "$1" && ! grep -q '^[0-9]* (.*) Z' "/proc/$1/stat"
}
# When it is killed, its ranks end too, whatever signals they ignore, and its folder is removed.
killed_itself() {
  rm -rf "$tmp/launch"
  mkdir "$tmp/launch"
  # shellcheck disable=SC2016 # it is the shells of the ranks that see these variables
  TMPDIR=$tmp/launch "$launch" "$@" -n 2 sh -c \
    'trap "" HUP INT TERM; sleep 100 & echo $$ $! >"$1.$SLUICE_RANK.new" &&
     mv "$1.$SLUICE_RANK.new" "$1.$SLUICE_RANK"; wait' - "$tmp/launch/ids" >"$tmp/out" 2>&1 &
  id=$!
  until [ -s "$tmp/launch/ids.0" ] && [ -s "$tmp/launch/ids.1" ]; do
    kill -0 "$id" || { cat "$tmp/out"; return 1; }
    sleep 0.1
  done
  # shellcheck disable=SC2046 # they are words
  set -- $(cat "$tmp/launch/ids.0" "$tmp/launch/ids.1")
  [ $# = 4 ] || return 1
  kill -KILL "$id"
  i=0
  while lives "$1" || lives "$2" || lives "$3" || lives "$4" ||
    [ "$(find "$tmp/launch" -type d | wc -l)" != 1 ]; do
    i=$((i + 1))
    [ "$i" -lt 300 ] || { ps -fp "$1,$2,$3,$4"; find "$tmp/launch"; return 1; }
    sleep 0.1
  done 2>/dev/null
}
# Started from a terminal, ranks are in one session, which shares its part of the processors, each in
# a group of its own, and none of them has the terminal.
one_session() {
  cat >"$tmp/session" <<'END'
read -r _ _ _ _ group session terminal _ </proc/$$/stat
(exec </dev/tty) 2>/dev/null && terminal=opened
echo $((group - $$)) "$session" "$terminal"
END
  timeout 60 script -q -e -c "$launch -q -n 3 sh $tmp/session" /dev/null </dev/null |
    tr -d '\r' >"$tmp/out"
  cat "$tmp/out"
  [ "$(sort -u "$tmp/out" | wc -l)" = 1 ] && grep -q '^0 [1-9][0-9]* 0$' "$tmp/out"
}
# signalled SIGNAL STATUS PATTERN SCRIPT: once two ranks with this script have said that they are
# ready, their launcher is sent a signal, and ends so before they would by themselves.
signalled() {
  rm -f "$tmp"/ready.*
  # A shell has what it starts in the background ignore SIGINT.
  # shellcheck disable=SC2086 # they are words
  READY=$tmp/ready env --default-signal=INT "$launch" ${options:-} -n 2 sh -c "$4" >"$tmp/out" 2>&1 &
  id=$!
  while kill -0 "$id" && ! { [ -e "$tmp/ready.0" ] && [ -e "$tmp/ready.1" ]; }; do sleep 0.1; done
  start=$(date +%s)
  kill -s "$1" "$id"
  wait "$id"
  status=$?
  cat "$tmp/out"
  [ "$status" = "$2" ] && grep -q "$3" "$tmp/out" && [ $(($(date +%s) - start)) -lt 45 ]
}
# keeps_going STATUS LINES SCRIPT: three ranks with this script end so, and these are the lines of
# the launcher, in any order; "named" in the script waits until rank 1 has been named as dead.
keeps_going() {
  status=0
  : >"$tmp/err"
  # shellcheck disable=SC2094 # the ranks read what the launcher has said
  timeout 60 "$launch" --keep-going -q -n 3 sh -c '
    named() { until grep -q "rank 1: killed" "$0"; do sleep 0.05; done; }
    '"$3" "$tmp/err" >"$tmp/out" 2>>"$tmp/err" || status=$?
  cat "$tmp/out" "$tmp/err"
  echo "exit status $status"
  # Rank 0 may end before rank 2, or with it.
  [ "$status" = "$1" ] && [ "$(sed '/rank 2/s/[01] of 3/0 of 3/' "$tmp/err" | sort)" = "$2" ]
}
survivors='sluice-launch: 2 of 3 ranks succeeded
sluice-launch: rank 1: killed by signal 9 (KILL); 2 of 3 ranks still run'
failure='sluice-launch: 1 of 3 ranks succeeded
sluice-launch: rank 1: killed by signal 9 (KILL); 2 of 3 ranks still run
sluice-launch: rank 2: exit status 7; 0 of 3 ranks still run'
# A killed rank is reported before one that failed just before it, and after what that has written.
names_the_killed_first() {
  timeout 60 "$launch" --keep-going -n 2 sh -c '
    [ $SLUICE_RANK = 0 ] && { echo last words >&2; exit 1; }; kill -KILL $$' >"$tmp/out" 2>&1
  cat "$tmp/out"
  printf '%s\n' "$(grep -o 'last words\|rank 1: killed\|rank 0: exit status 1' "$tmp/out")" |
    tr '\n' ';' | grep -qx 'last words;rank 1: killed;rank 0: exit status 1;'
}
without_one() {
  ends_with 1 'rank 1 did not come' "$launch" --keep-going -n 3 sh -c \
    '[ $SLUICE_RANK = 1 ] && kill -KILL $$; exec "$1" late' - "$ranks" &&
    grep -q '0 of 3 ranks succeeded' "$tmp/out"
}
without_rank_0() {
  ends_with 1 '0 of 3 ranks succeeded' "$launch" --keep-going -n 3 sh -c \
    '[ $SLUICE_RANK = 0 ] && kill -KILL $$; exec "$1" late' - "$ranks" &&
    grep -q 'rank 0: killed by signal 9' "$tmp/out" && grep -q 'rank 1: exit status 1' "$tmp/out"
}
interrupted_twice() {
  start=$(date +%s)
  # A shell has what it starts in the background ignore SIGINT.
  env --default-signal=INT timeout --foreground 60 "$launch" -q -n 2 sh -c \
    'trap "" INT TERM; echo $PPID; sleep 50; sleep 50' >"$tmp/out" 2>&1 &
  id=$!
  while kill -0 "$id" && [ "$(grep -c . "$tmp/out")" != 2 ]; do sleep 0.1; done
  parent=$(head -n 1 "$tmp/out")
  kill -INT "$parent"
  sleep 1
  kill -INT "$parent"
  wait "$id"
  status=$?
  cat "$tmp/out"
  [ "$status" = 137 ] && [ $(($(date +%s) - start)) -lt 9 ]
}
# Prints the processor of each rank, and sorts by rank: processors in turn, of those that the
# launcher may use.
bound() {
  allowed=$(taskset -c -p $$ | sed 's/.*: //')
  timeout 60 taskset -c "$allowed" "$launch" -q "$1" -n 5 sh -c \
    'echo "$SLUICE_RANK $(taskset -c -p $$ | sed "s/.*: //")"' | sort >"$tmp/out"
  echo "$allowed" | tr , '\n' | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done \
    >"$tmp/processors"
  cat "$tmp/processors" "$tmp/processors" "$tmp/processors" "$tmp/processors" "$tmp/processors" |
    head -n 5 | awk '{ print NR - 1, $0 }' | diff - "$tmp/out"
}
# One processor is left to the launcher, so all ranks get that one.
bound_to_one() {
  one=$(taskset -c -p $$ | sed 's/.*[ ,-]//')
  timeout 60 taskset -c "$one" "$launch" -q --bind -n 2 sh -c 'taskset -c -p $$' |
    sed 's/.*: //' | sort >"$tmp/out"
  printf '%s\n%s\n' "$one" "$one" | diff - "$tmp/out"
}
check 'sluice-launch' ranks_of 4 'by SLUICE_RANK and SLUICE_RANKS over TCP' "$launch" -n 4 $ranks
check 'sluice-launch -q, several exchanges, one after the other' \
  ranks_of 3 'by SLUICE_RANK and SLUICE_RANKS over TCP' "$launch" -q -n 3 -- $ranks 3
check 'sluice-launch marks what each rank says' marked
check 'sluice-launch makes a secret that others cannot read, and leaves nothing' left_behind
if have taskset; then
  check 'sluice-launch -b binds ranks to processors in turn' bound -b
  check 'sluice-launch --bind binds to processors of its own only' bound_to_one
else
  skip 'sluice-launch --bind' 'no taskset'
fi
check 'sluice-launch numbers the ranks of the host' numbered
if have script; then
  check 'sluice-launch has all ranks in one session, without its terminal' one_session
else
  skip 'sluice-launch has all ranks in one session, without its terminal' 'no script(1)'
fi
check 'sluice-launch leaves a secret of ours as it is' ends_with 1 'cannot open the secret.*nowhere' \
  env SLUICE_SECRET_FILE=/nowhere "$launch" -n 1 $ranks
check 'sluice-launch ends all if one fails' quickly_ends_with 7 'rank 1: exit status 7' \
  "$launch" -n 3 sh -c '[ $SLUICE_RANK = 1 ] && exit 7; sleep 50'
check 'sluice-launch kills ranks that do not end' quickly_ends_with 137 'rank 0: killed by signal 9 (KILL)' \
  "$launch" -n 2 sh -c '[ $SLUICE_RANK = 0 ] && kill -KILL $$; trap "" TERM; sleep 50; sleep 50'
check 'sluice-launch passes on SIGTERM' signalled TERM 143 'rank . got it' \
  'trap "echo rank $SLUICE_RANK got it; exit 143" TERM; sleep 50 & touch "$READY.$SLUICE_RANK"; wait'
check 'sluice-launch passes on SIGINT' signalled INT 3 'rank . got it' \
  'trap "echo rank $SLUICE_RANK got it; exit 3" INT; sleep 50 & touch "$READY.$SLUICE_RANK"; wait'
check 'sluice-launch ends ranks that ignore SIGINT' signalled INT 143 'rank .: killed by signal 15' \
  'trap "" INT; touch "$READY.$SLUICE_RANK"; sleep 50; sleep 50'
check 'sluice-launch kills ranks that ignore SIGINT and SIGTERM' signalled INT 137 'killed by signal 9' \
  'trap "" INT TERM; touch "$READY.$SLUICE_RANK"; sleep 50; sleep 50'
check 'sluice-launch kills at the second SIGINT' interrupted_twice
check 'sluice-launch takes all with it if it is killed' killed_itself
check 'sluice-launch -q takes all with it if it is killed' killed_itself -q
check 'sluice-launch blames the rank that was killed' blames_the_killed
check 'sluice-launch blames the lowest of the ranks that failed' blames_the_lowest
check 'sluice-launch --keep-going: all others succeed' keeps_going 3 "$survivors" \
  '[ $SLUICE_RANK != 1 ] || kill -KILL $$; named'
check 'sluice-launch --keep-going: another one fails' keeps_going 7 "$failure" \
  '[ $SLUICE_RANK != 1 ] || kill -KILL $$; named; [ $SLUICE_RANK != 2 ] || exit 7'
check 'sluice-launch --keep-going: nothing fails' keeps_going 0 '' 'exit 0'
options=-k
check 'sluice-launch --keep-going names the rank that was killed first' names_the_killed_first
check 'sluice-launch -k passes on SIGTERM' signalled TERM 3 'rank . got it' \
  'trap "echo rank $SLUICE_RANK got it; exit 3" TERM; sleep 50 & touch "$READY.$SLUICE_RANK"; wait'
check 'sluice-launch -k: a signal that ends some is no success' signalled TERM 143 '1 of 2 ranks succeeded' \
  '[ $SLUICE_RANK = 0 ] || trap "exit 0" TERM; sleep 50 & touch "$READY.$SLUICE_RANK"; wait'
check 'sluice-launch -k kills ranks that ignore SIGTERM' signalled TERM 137 'killed by signal 9' \
  'trap "" TERM; touch "$READY.$SLUICE_RANK"; sleep 50; sleep 50'
check 'sluice-launch -k passes on SIGINT' signalled INT 3 'rank . got it' \
  'trap "echo rank $SLUICE_RANK got it; exit 3" INT; sleep 50 & touch "$READY.$SLUICE_RANK"; wait'
options=
check 'sluice-launch --keep-going: a rank dies before the exchange is complete' without_one
check 'sluice-launch --keep-going: rank 0 dies before the exchange is complete' without_rank_0
check 'sluice-launch says what it needs' ends_with 2 'with --hosts or --hostfile' "$launch" $ranks
for variable in 'A B=3' 'A B' ' =3' =3 ''; do
  check "no variable is '$variable'" ends_with 2 'needs a name without blanks' "$launch" -n 1 -x "$variable" $ranks
done
check 'sluice-launch names an option it does not know' ends_with 2 'unknown option -y; see --help' \
  "$launch" -y $ranks
check 'sluice-launch says what is not -np' ends_with 2 '-n N here, not -np' "$launch" -np 2 $ranks
check 'sluice-launch quotes a number that is none' ends_with 2 "not 'x'" "$launch" -n x $ranks
check 'sluice-launch quotes a number of ranks that cannot be' ends_with 2 "not '0'" "$launch" -n 0 $ranks
check 'sluice-launch names a program that is not there, once' ends_with 127 \
  '^sluice-launch: ./nothing: there is no such program' "$launch" -n 2 ./nothing
check 'sluice-launch -nN' ends_with 0 '1 of 2' "$launch" -n2 -q sh -c 'echo $SLUICE_RANK of $SLUICE_RANKS'
check 'sluice-launch --help tells all' ends_with 0 'empty for no secret\.$' "$launch" --help
check 'sluice-launch with all closed' all_closed
check 'output on a full file system' full_output
check 'output that somebody has had enough of' enough_output
check 'sluice-launch without a program' ends_with 2 'which program' "$launch" -n 2

# compiler_of SUFFIX MACRO: the C compiler of this MPI, by Debian's name or any other;
# the headers may be of a package that is not there.
compiler_of() {
  for compiler in "mpicc.$1" "${MPICC:-mpicc}"; do
    if have "$compiler" && printf '#include <mpi.h>\n#ifndef %s\n#error other\n#endif\n' "$2" |
      "$compiler" -E -x c - >"$tmp/headers" 2>&1; then
      echo "$compiler"
      return
    fi
  done
  return 1
}

# build_mpi COMPILER PROGRAM
build_mpi() {
  # shellcheck disable=SC2086 # flags are words
  ./libtool --quiet --tag=CC --mode=link "$1" -Wall -Wextra -Werror $SANITIZE \
    -I"$srcdir/include" -o "$2" "$srcdir/tests/exchange/launch/mpi.c" lib/libsluice.la
}

# Open MPI, which has a server of PMIx.
with_mpirun() {
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none \
    "$@"
}
pmix_ranks() {
  count=$1 words=$2
  shift 2
  with_mpirun ranks_of "$count" "$words" mpirun -n "$count" "$@"
}
if ! have mpirun || ! mpirun --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
  skip 'mpirun of Open MPI' 'no mpirun of Open MPI'
else
  if built_with HAVE_PMIX; then
    check 'mpirun of Open MPI, over PMIx' pmix_ranks 4 'by PMIx over PMIx' $ranks
    check 'several exchanges over PMIx, one after the other' pmix_ranks 3 'by PMIx over PMIx' $ranks 3
    check 'a child and a second exchange, over PMIx' pmix_ranks 2 'by PMIx over PMIx' $ranks child
    check 'one rank over PMIx' pmix_ranks 1 'by PMIx over PMIx' $ranks
    check 'a rank that does not come, over PMIx' with_mpirun quickly_ends_with 1 \
      'not all ranks came' mpirun -n 2 sh -c '[ $PMIX_RANK = 1 ] && exec sleep 25; exec "$1" late' - $ranks
  else
    skip 'mpirun of Open MPI, over PMIx' 'built without PMIx'
  fi
  next_port
  check 'mpirun of Open MPI, of examples/12-kmeans' with_mpirun ends_with 0 'inertia 1167946.2077' \
    mpirun -n 4 -x SLUICE_ROOT=127.0.0.1:$port \
    examples/12-kmeans "$srcdir/examples/data/digits.csv"
  next_port
  check 'mpirun of Open MPI, over TCP' pmix_ranks 4 \
    'by OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE over TCP' \
    -x SLUICE_EXCHANGE=tcp -x SLUICE_ROOT=127.0.0.1:$port $ranks
  if mpicc=$(compiler_of openmpi OPEN_MPI); then
    check 'sluice/mpi.h, built for Open MPI' build_mpi "$mpicc" "$tmp/openmpi"
    check 'sluice/mpi.h with Open MPI' pmix_ranks 4 'over MPI' "$tmp/openmpi"
    check 'sluice/mpi.h in another thread' pmix_ranks 2 'over MPI' "$tmp/openmpi" threads
  else
    skip 'sluice/mpi.h with Open MPI' 'no compiler of Open MPI'
  fi
fi

# MPICH and its kin, whose server of PMI-1 tells where rank 0 is. An exit without a
# word to the server it would call a bad termination.
mpich_ranks() {
  ranks_of "$@" >"$tmp/result" || {
    cat "$tmp/result"
    # Hydra has no handler of SIGPIPE: it may die as it writes to a rank that has just ended.
    grep -q '^exit status 141$' "$tmp/result" || return 1
    ranks_of "$@" || return 1
  }
  ! grep 'BAD TERMINATION' "$tmp/out"
}
if ! have mpiexec.hydra; then
  skip 'mpiexec of MPICH' 'no mpiexec.hydra'
else
  check 'mpiexec of MPICH' mpich_ranks 4 'by PMI_RANK and PMI_SIZE over TCP' \
    mpiexec.hydra -n 4 $ranks
  check 'several exchanges by PMI-1, one after the other' \
    mpich_ranks 3 'by PMI_RANK and PMI_SIZE over TCP' mpiexec.hydra -n 3 $ranks 3
  check 'by PMI-1 as if on several hosts' \
    mpich_ranks 3 'by PMI_RANK and PMI_SIZE over TCP' \
    mpiexec.hydra -n 3 env -u MPI_LOCALNRANKS $ranks
  check 'one rank of MPICH' mpich_ranks 1 'by PMI_RANK and PMI_SIZE over TCP' \
    mpiexec.hydra -n 1 $ranks
  check 'a rank that does not come, by PMI-1' quickly_ends_with 1 'not all ranks came' \
    mpiexec.hydra -n 2 sh -c '[ $PMI_RANK = 1 ] && exec sleep 8; exec "$1" late' - $ranks
  next_port
  check 'mpiexec of MPICH and a root of ours' \
    mpich_ranks 4 'by PMI_RANK and PMI_SIZE over TCP' \
    mpiexec.hydra -n 4 -genv SLUICE_ROOT 127.0.0.1:$port $ranks
  if mpicc=$(compiler_of mpich MPICH_VERSION); then
    check 'sluice/mpi.h, built for MPICH' build_mpi "$mpicc" "$tmp/mpich"
    check 'sluice/mpi.h with MPICH' mpich_ranks 4 'over MPI' mpiexec.hydra -n 4 "$tmp/mpich"
    check 'MPI_Init() of MPICH after exchanges' \
      mpich_ranks 3 'over MPI' mpiexec.hydra -n 3 "$tmp/mpich" beside
  else
    skip 'sluice/mpi.h with MPICH' 'no compiler of MPICH'
  fi
fi

# Beside the daemons of launch/slurm this script runs once more, for its steps only.
status=0
if ! have srun || ! PATH=$PATH:/usr/sbin have slurmd || ! PATH=$PATH:/usr/sbin have munged; then
  skip 'Slurm' 'no Slurm or no munge'
elif [ "$(id -u)" != 0 ]; then
  skip 'Slurm' 'slurmd needs root'
else
  timeout 300 "$srcdir/tests/exchange/launch/slurm" sh "$srcdir/tests/check-launch.sh" slurm \
    >"$tmp/slurm" 2>"$tmp/why" || status=$?
  if [ $status = 77 ]; then
    sed 's/^/# /' "$tmp/why"
    skip 'Slurm' "$(head -n 1 "$tmp/why")"
  else
    pass_on Slurm $status "$tmp/slurm"
  fi
fi
finish
