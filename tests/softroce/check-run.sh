#!/bin/sh
# SPDX-License-Identifier: MIT
# What tests/softroce/run promises of itself: what comes out of the guests, and
# that nothing stays behind. Boots ten guests.
# shellcheck disable=SC2016 # what is not expanded here is for the guest's shell
. "${srcdir:-.}/tests/tap.sh"

run=$(cd "$srcdir" && pwd)/tests/softroce/run
mkdir "$tmp/build" "$tmp/own"
cd "$tmp/build" || exit 99
# All that run leaves in its way is in here.
TMPDIR=$tmp/own
export TMPDIR

nothing_left() {
  silent ls -A "$tmp/own" && ! pgrep -f "chdir=$tmp/own"
}

# gives STATUS COMMAND...
gives() {
  wanted=$1
  shift
  status=0
  "$@" || status=$?
  echo "exit status $status, wanted $wanted"
  [ "$status" = "$wanted" ]
}

without_qemu() {
  mkdir "$tmp/bin"
  for tool in bash dirname sed rm ls uname; do
    ln -s "$(command -v "$tool")" "$tmp/bin/$tool"
  done
  gives 77 env PATH="$tmp/bin" "$run" true
}

# refuses TEXT ARGUMENT...: it is wrong usage, and the first line says what.
refuses() {
  text=$1
  shift
  gives 2 "$run" "$@" 2>"$tmp/err"
  result=$?
  head -n 1 "$tmp/err" | tee "$tmp/first"
  [ "$result" = 0 ] && grep -q -F -e "$text" "$tmp/first"
}

wrong_arguments() {
  refuses 'not 1 or 2 hosts: 3' --hosts 3 true &&
    refuses '--netem needs --hosts 2' --netem 'loss 1%' true &&
    refuses '--hosts 2 needs a command' --hosts 2 &&
    refuses '--hosts needs a value' --hosts &&
    refuses '--chosen is of the suite' --chosen true &&
    refuses 'not rxe0 or siw0: mlx5_0' --device mlx5_0 true &&
    refuses 'not for that of --backports' --device siw0 --backports true
}

# This folder is none that has a suite.
no_suite() {
  refuses "$tmp/build is no build folder" && touch config.status && mkdir tests &&
    refuses "no test programs in $tmp/build/tests"
}

# A build folder with two test programs, of which the suite passes one on with its
# failure; the examples it has not got.
suite() {
  printf '#!/bin/sh\nprintf "ok 1 - %%s\\n1..1\\n" "$SLUICE_TEST_DEVICE"\n' >tests/test_good
  printf '#!/bin/sh\nprintf "not ok 1 - moon\\n1..1\\n"\n' >tests/test_bad
  chmod +x tests/test_*
  gives 1 "$run" --timeout 120 >"$tmp/out" 2>&1
  result=$?
  cat "$tmp/out"
  [ "$result" = 0 ] && grep -q '^ok [0-9]* - test_good: rxe0$' "$tmp/out" &&
    grep -q '^not ok [0-9]* - test_bad: moon$' "$tmp/out" && grep -q '^1\.\.' "$tmp/out"
}

# Both hosts say who they are and what they have, and pass bytes over a network
# that is as it was asked for. The first that fails is host 1.
two_hosts() {
  gives 3 "$run" --hosts 2 --netem 'loss 1% delay 5ms' --timeout 120 bash -c '
    set -e
    echo "$SOFTROCE_HOST of $SOFTROCE_HOSTS"
    ip -o -4 address show sluice0 | grep -o "192[^ ]*"
    tc qdisc show dev sluice0 | grep -o "delay.*"
    if [ "$SOFTROCE_HOST" = 0 ]; then
      ibv_rc_pingpong -d rxe0 -g 1 -n 20 -c >/dev/null
    else
      until ibv_rc_pingpong -d rxe0 -g 1 -n 20 -c 192.0.2.1 >/dev/null; do sleep 0.2; done
    fi
    exit $((3 * SOFTROCE_HOST))' >"$tmp/out" 2>"$tmp/err"
}

told_by_two() {
  for host in 0 1; do
    address=192.0.2.$((host + 1))
    printf "host $host: %s\n" "$host of 192.0.2.1 192.0.2.2" "$address/24" 'delay 5ms loss 1%'
  done >"$tmp/wanted"
  grep '^host' "$tmp/out" | sort -s -k 2,2 | diff "$tmp/wanted" -
}

# Everything about one command at once: a guest takes its seconds.
say_it_all() {
  echo here >file
  "$run" --timeout 120 --env 'WORD=a "b" $c' sh -c '
    ls /sys/class/infiniband; pwd; cat file; echo lost >file; cat file
    ulimit -l; printf "%s\n" "$WORD" "$@"
    echo error >&2; sleep 1000 & exit 7' name "it's" '' 'x  y' >"$tmp/out" 2>"$tmp/err"
}

told() {
  printf '%s\n' rxe0 "$tmp/build" here lost unlimited 'a "b" $c' "it's" '' 'x  y' |
    diff - "$tmp/out"
}

told_errors() {
  echo error | diff - "$tmp/err"
}

pingpong() {
  "$run" --timeout 120 sh -ec '
    ibv_rc_pingpong -d rxe0 -g 1 -n 100 -c & server=$!
    # The server has no other way to say that it listens.
    until ibv_rc_pingpong -d rxe0 -g 1 -n 100 -c 127.0.0.1; do sleep 0.2; done
    wait $server'
}

# ended_by SIGNAL OPTION...: sent when the command runs. A shell starts background
# jobs with INT ignored, which env undoes.
ended_by() {
  signal=$1
  shift
  rm -f "$tmp/started"
  mkfifo "$tmp/started"
  env --default-signal=INT "$run" --timeout 120 "$@" sh -c 'echo started; sleep 1000' \
    >"$tmp/started" &
  read -r line <"$tmp/started"
  kill -s "$signal" $!
  wait $!
  status=$?
  echo "$line; exit status $status"
  [ "${line##*: }" = started ] && [ "$(kill -l "$status")" = "$signal" ]
}

# Nobody waits for those that a killed run leaves to their end.
soon_nothing_left() {
  tries=100
  until nothing_left >"$tmp/left" 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { cat "$tmp/left" && return 1; }
    sleep 0.1
  done
}

check 'wrong arguments are refused' wrong_arguments
check 'there is no suite but in a build folder' no_suite
if [ -e /sys/class/infiniband ]; then
  check 'this machine has a device' gives 0 "$run" ibv_devinfo
else
  status=0
  say_it_all || status=$?
  [ $status != 77 ] || skip_all "$(cat "$tmp/err")"
  check 'the exit status comes back' test $status = 7
  check 'output, folder, arguments and environment are right' told
  check 'errors come out on their own' told_errors
  check 'the host keeps its files' grep -qx here file
  check 'a missing tool is a skip' without_qemu
  check 'the suite is the default, and its failure is one' suite
  check 'data crosses the device' pingpong
  check 'nothing is left behind' nothing_left
  check 'the timeout holds' gives 124 "$run" --timeout 10 sleep 1000
  check 'INT ends it' ended_by INT
  check 'TERM ends it' ended_by TERM
  check 'nothing is left behind by any of these' nothing_left
fi
case $(qemu-system-x86_64 -netdev help 2>/dev/null) in
  *stream*)
    check 'data crosses the network of two hosts; a failure of one comes back' two_hosts
    check 'each host has said who it is' told_by_two
    check 'KILL ends two hosts' ended_by KILL --hosts 2
    check 'nothing is left behind, soon' soon_nothing_left
    ;;
  *) skip 'two hosts' 'QEMU is older than 7.2' ;;
esac
finish
