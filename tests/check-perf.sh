#!/bin/sh
# SPDX-License-Identifier: MIT
# sluice-perf does each work at each level, looks at what comes, says what it measured in
# each of its forms, answers wrong arguments, and leaves no process behind however it or
# one of its peers ends. What it measures is not looked at.
. "${srcdir:-.}/tests/tap.sh"

perf=tools/sluice-perf
[ -x "$perf" ] || skip_all "no $perf was built"
have perl || skip_all 'no perl'
perl -MJSON::PP -e 1 2>/dev/null || skip_all 'perl has no JSON::PP'

# Nothing of a launcher that started this script.
for name in $(env | sed -n 's/^\(\(SLUICE\|OMPI\|PMI\|PMIX\|SLURM\)_[A-Za-z0-9_]*\)=.*/\1/p'); do
  [ "$name" = SLUICE_TEST_DEVICE ] || unset "$name"
done
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
export SLUICE_DEVICE="${SLUICE_TEST_DEVICE:-soft}" SLUICE_MUNGE=no
launch=tools/sluice-launch
all='send_lat send_bw write_lat write_bw read_lat read_bw cas_lat scatter gather scatter_gather
  gather_read multicast msg_rate'

# json-is FILE ITERATIONS BYTES WORK...: the results are of these works, each in these sizes
# (those that have any), and their numbers can be.
cat >"$tmp/json-is" <<'PERL'
use strict;
use warnings;
use JSON::PP;
my ($file, $iterations, $bytes, @works) = @ARGV;
open my $in, '<', $file or die "$file: $!";
my $report = JSON::PP->new->decode(join '', <$in>);
my %sizeless = (cas_lat => 8, barrier => 0, connect => 0);
my @wanted;
for my $work (@works) {
    push @wanted, "$work $_" for exists $sizeless{$work} ? $sizeless{$work} : split /,/, $bytes;
}
my @got = map { "$_->{work} $_->{bytes}" } @{ $report->{results} };
"@got" eq "@wanted" or die "results of @got\n, not of @wanted\n";
for my $result (@{ $report->{results} }) {
    my @times = map { $result->{$_} } qw(min_us p50_us p99_us p99.9_us max_us);
    my $name = "$result->{work} of $result->{bytes} bytes";
    $iterations eq 'any' || $result->{iterations} == $iterations or die "$name: $result->{iterations}\n";
    $result->{iterations} > 0 && $result->{seconds} > 0 && $times[0] > 0 or die "$name: took no time\n";
    for my $i (1 .. $#times) { $times[$i - 1] <= $times[$i] or die "$name: @times\n" }
    $result->{mean_us} >= $times[0] && $result->{mean_us} <= $times[-1] or die "$name: mean\n";
    my $moves = $result->{work} !~ /^(barrier|connect)$/;
    ($result->{messages_per_s} > 0) == $moves or die "$name: $result->{messages_per_s} messages\n";
}
PERL

run() {
  timeout 300 "$perf" "$@" >"$tmp/out" 2>"$tmp/err" || { echo "exit status $?"; cat "$tmp/out" "$tmp/err"; return 1; }
  cat "$tmp/err"
}

# measures ITERATIONS BYTES 'WORK...' OPTION..., on $host, if any.
host=
measures() {
  iterations=$1 bytes=$2 works=$3
  shift 3
  # shellcheck disable=SC2086 # works are words
  run --json --size "$bytes" "$@" $works $host && perl "$tmp/json-is" "$tmp/out" "$iterations" "$bytes" $works
}

ends_with() {
  wanted=$1 words=$2
  shift 2
  timeout 120 "$@" >"$tmp/out" 2>&1
  status=$?
  cat "$tmp/out"
  [ "$status" = "$wanted" ] && grep -q -e "$words" "$tmp/out"
}

for wire in auto tcp; do
  for level in blocking scoped posted; do
    check "each work, $level, wire $wire" \
      measures 24 8,13,70000 "$all" --iters 24 --peers 2 --level $level --wire $wire --validate
  done
done
check 'barrier and connect' measures 12 8 'barrier connect' --iters 12 --peers 3
check 'with one peer, written each time' measures 24 8,4096 "$all" --iters 24 --dirty
check 'written each time, and looked at' \
  measures 24 64,70000 'send_lat write_lat send_bw scatter_gather' --iters 24 --dirty --validate
check 'inline' measures 24 8,64,65 'send_lat write_lat msg_rate' --iters 24 --inline 64 --validate --level posted
check 'striped' measures 24 64,300000 'write_bw read_bw write_lat' --iters 24 --validate --queue-pairs 3 --wire tcp
check 'a completion before the answer' measures 24 8 send_lat --iters 24 --level posted --waited
check 'waits that only spin, on processors of their own' \
  measures 24 8 'send_lat scatter_gather' --iters 24 --wait spin --pin
check 'waits that only sleep' measures 24 8 'send_lat scatter_gather' --iters 24 --wait event
check 'more messages than the window has' measures 100 8 'send_bw write_bw read_bw gather' \
  --iters 100 --window 3 --level posted --validate --peers 2
check 'by time' measures any 8 send_lat --duration 0.05 --warmup 3
check 'beside idle connections' measures 24 8 'send_lat gather_read' --iters 24 --idle-peers 70 --peers 2

sweep() {
  run --csv --iters 10 --size 8:64,100 send_lat
  [ "$(cut -d, -f2 "$tmp/out" | tr '\n' ' ')" = 'bytes 8 16 32 64 100 ' ] &&
    awk -F, 'NF != 14 || (NR > 1 && $6 + 0 <= 0) { print; wrong = 1 } END { exit wrong }' "$tmp/out"
}
check 'a sweep, as CSV' sweep
table() {
  run --iters 10 --size 1K send_lat
  cat "$tmp/out"
  grep -q '^send_lat  *1024  *10  *[0-9.]*  ' "$tmp/out"
}
check 'a table' table
check 'no progress but on a terminal' silent cat "$tmp/err"

check 'no work' ends_with 2 'which work?' "$perf"
check 'a work that is none' ends_with 2 'juggle: no such work' "$perf" juggle
check 'a work that is none, where a host may stand' \
  ends_with 2 'raed_lat: no such work, and no such host' "$perf" send_lat raed_lat
check 'an option that is none' ends_with 2 'bogus: no such option' "$perf" --bogus send_lat
check 'an option without its value' ends_with 2 'size: it needs a value' "$perf" send_lat --size
for size in 0 8:4 '8,' 2G x 8-9; do
  check "a size that is none, $size" ends_with 2 'size .*: must be a list of' "$perf" --size $size send_lat
done
check 'a number that is none' ends_with 2 'iters 1x: must be a number of 1 to' "$perf" --iters 1x send_lat
check 'a time that is none' ends_with 2 'duration -1: must be seconds' "$perf" --duration -1 send_lat
check 'a level that is none' ends_with 2 'must be blocking, scoped or posted' "$perf" --level fast send_lat
check 'a level that a work has not' ends_with 2 'barrier has no level' "$perf" --level posted barrier
check 'a wire that is none' ends_with 2 'wire pigeon: must be auto, tcp or shm' "$perf" --wire pigeon send_lat
check 'a size that is too small for a work' ends_with 2 'write_lat needs at least 8 bytes' "$perf" --size 4 write_lat
check 'a server with a work' ends_with 2 'takes none itself' "$perf" --server send_lat
check 'a client with peers' ends_with 2 'no --peers' "$perf" --peers 2 send_lat localhost
check 'a device that is none' ends_with 1 "no device 'nope'" "$perf" --device nope send_lat
check 'help' ends_with 0 'scatter_gather ' "$perf" --help
check 'version' ends_with 0 "^sluice-perf ${VERSION:-}" "$perf" --version

if [ -x $launch ]; then
  under_launcher() {
    timeout 120 "$launch" -q -n 3 "$perf" --iters 12 --json scatter barrier >"$tmp/out" 2>"$tmp/err"
    cat "$tmp/out" "$tmp/err"
    perl "$tmp/json-is" "$tmp/out" 12 8 scatter barrier && grep -q '"peers": 2,' "$tmp/out"
  }
  check 'the ranks of a launcher' under_launcher
  check 'a launcher that has started others' \
    ends_with 1 'has started 3 processes, --peers 3 needs 4' "$launch" -q -n 3 "$perf" --peers 3 send_lat
  own_peers() {
    timeout 120 "$launch" -q -n 1 "$perf" --iters 12 --local --peers 2 --json scatter >"$tmp/out" 2>"$tmp/err"
    cat "$tmp/out" "$tmp/err"
    perl "$tmp/json-is" "$tmp/out" 12 8 scatter
  }
  check 'own peers under a launcher' own_peers
else
  skip 'the ranks of a launcher' "no $launch was built"
fi

# A port below those of clients, which may be taken all the same: then another one.
client_and_server() {
  host=127.0.0.1
  for try in 1 2 3; do
    port=$((20000 + ($$ + try * 1009) % 10000))
    timeout 120 "$perf" --server --address 127.0.0.1 --port "$port" >"$tmp/server" 2>&1 &
    server=$!
    if measures 12 8,4096 'send_lat read_bw' --iters 12 --port "$port" &&
      wait "$server"; then
      return 0
    fi
    kill "$server" 2>/dev/null
    wait "$server"
    cat "$tmp/server"
    grep -q -i 'in use' "$tmp/server" || return 1
  done
  return 1
}
check 'a client and its server' client_and_server

# Connects to a port without a listener: one that was just free, in a namespace if possible.
refused() {
  alone=
  unshare -rn true 2>/dev/null && alone='unshare -rn sh -c'
  begun=$(date +%s)
  if [ "$alone" ]; then
    $alone 'ip link set lo up 2>/dev/null; exec "$@"' sh \
      timeout 60 "$perf" --deadline 2 --port 20999 send_lat 127.0.0.1 >"$tmp/out" 2>"$tmp/err"
  else
    timeout 60 "$perf" --deadline 2 --port 20999 send_lat 127.0.0.1 >"$tmp/out" 2>"$tmp/err"
  fi
  status=$?
  cat "$tmp/err"
  [ "$status" = 1 ] && [ $(($(date +%s) - begun)) -lt 30 ] && head -n 1 "$tmp/err" |
    grep -q "127.0.0.1 refused the connection at port 20999: is 'sluice-perf --server' running" &&
    tail -n 1 "$tmp/err" | grep -q 'has refused the connection at port 20999 for [2-9]' &&
    ! grep -q attr "$tmp/err"
}
check 'a client without a server' refused

# Runs that end badly. begin WORK: starts a long run, and waits until its peers are known.
begin() {
  : >"$tmp/out"
  env --default-signal=INT,TERM "$perf" --duration 600 --peers 3 --csv "$1" >"$tmp/out" 2>"$tmp/err" &
  leader=$!
  tries=0
  # The first line comes when all are connected.
  until [ -s "$tmp/out" ]; do
    tries=$((tries + 1))
    if [ "$tries" -ge 600 ] || ! kill -0 "$leader" 2>/dev/null; then
      cat "$tmp/err"
      return 1
    fi
    sleep 0.1
  done
  peers=$(pgrep -P "$leader")
  [ "$(echo "$peers" | wc -l)" = 3 ] || { echo "peers: $peers"; return 1; }
}

# Ends within a minute, which is long for a machine that stands still at times.
all_gone() {
  tries=0
  for pid in "$@"; do
    while kill -0 "$pid" 2>/dev/null && ! grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null; do
      tries=$((tries + 1))
      [ "$tries" -lt 600 ] || { echo "$pid is still there"; return 1; }
      sleep 0.1
    done
  done
}

# shellcheck disable=SC2086 # peers are words
interrupted() {
  begin "$2" || return 1
  kill -s "$1" "$leader"
  all_gone "$leader" $peers || return 1
  wait "$leader"
}
# shellcheck disable=SC2086
peer_killed() {
  begin "$1" || return 1
  kill -9 "$(echo "$peers" | head -n 1)"
  all_gone "$leader" $peers || return 1
  wait "$leader"
  status=$?
  cat "$tmp/err"
  [ "$status" = 1 ] && grep -q 'rank 1 was killed by signal 9' "$tmp/err"
}
ends_by() {
  interrupted "$2" "$3"
  status=$?
  echo "exit status $status"
  [ "$status" = "$1" ]
}
if have pgrep && env --default-signal=INT true 2>/dev/null; then
  check 'interrupted, it leaves no process behind' ends_by 130 INT scatter
  check 'killed, it leaves no process behind' ends_by 137 KILL barrier
  for work in send_lat write_lat send_bw gather gather_read scatter_gather barrier connect; do
    check "a peer that is killed ends $work" peer_killed $work
  done
else
  skip 'interrupted, it leaves no process behind' 'no pgrep, or an env without --default-signal'
fi
finish
