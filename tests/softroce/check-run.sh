#!/bin/sh
# SPDX-License-Identifier: MIT
# What tests/softroce/run promises of itself: what comes out of the guest, and
# that nothing stays behind. Boots six guests.
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

# ended_by SIGNAL: sent when the command runs. A shell starts background jobs
# with INT ignored, which env undoes.
ended_by() {
  rm -f "$tmp/started"
  mkfifo "$tmp/started"
  env --default-signal=INT "$run" --timeout 120 sh -c 'echo started; sleep 1000' \
    >"$tmp/started" &
  read -r line <"$tmp/started"
  kill -s "$1" $!
  wait $!
  status=$?
  [ "$line" = started ] && [ "$(kill -l "$status")" = "$1" ]
}

status=0
"$run" --timeout 120 >"$tmp/devinfo" 2>"$tmp/why" || status=$?
[ $status != 77 ] || skip_all "$(cat "$tmp/why")"
check 'ibv_devinfo is the default' grep -q 'hca_id:.*rxe0' "$tmp/devinfo"
if [ -e /sys/class/infiniband ]; then
  finish
fi
check 'a missing tool is a skip' without_qemu
check 'the exit status comes back' gives 7 say_it_all
check 'output, folder, arguments and environment are right' told
check 'errors come out on their own' told_errors
check 'the host keeps its files' grep -qx here file
check 'data crosses the device' pingpong
check 'nothing is left behind' nothing_left
check 'the timeout holds' gives 124 "$run" --timeout 10 sleep 1000
check 'INT ends it' ended_by INT
check 'TERM ends it' ended_by TERM
check 'nothing is left behind by any of these' nothing_left
finish
