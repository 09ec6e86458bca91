#!/bin/sh
# SPDX-License-Identifier: MIT
# sluice-launch where little is to be had, and on several hosts. These are network namespaces that
# this script makes, if it may, and else addresses of the loopback interface. They are reached by a
# script in place of ssh, which can be cut; and by ssh, where sshd is installed.
# shellcheck disable=SC2016 # it is the shells of the ranks that see these variables
# shellcheck disable=SC2086 # hosts, holders and options are words
. "${srcdir:-.}/tests/tap.sh"

launch=$(pwd)/tools/sluice-launch
ranks=$(pwd)/tests/exchange/launch/ranks
[ -x "$launch" ] || skip_all "no $launch was built"
[ -x "$ranks" ] || skip_all "no $ranks was built"
for name in $(env | sed -n 's/^\(\(SLUICE\|OMPI\|PMI\|PMIX\|SLURM\)_[A-Za-z0-9_]*\)=.*/\1/p'); do
  unset "$name"
done
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"

# ranks_of N COMMAND...: it succeeds, and each of N ranks prints its line once.
ranks_of() {
  wanted=$1
  shift
  timeout 120 "$@" >"$tmp/out" 2>"$tmp/err" || {
    echo "exit status $?"
    cat "$tmp/out" "$tmp/err"
    return 1
  }
  sed 's/^\[[0-9]*\] //' "$tmp/out" | grep '^rank ' | sort >"$tmp/got"
  seq 0 $((wanted - 1)) |
    sed "s/.*/rank & of $wanted by SLUICE_RANK and SLUICE_RANKS over TCP/" | sort | diff - "$tmp/got"
}

# ends_with STATUS WORDS COMMAND...: it fails so, and prints this.
ends_with() {
  wanted=$1 words=$2
  shift 2
  timeout 60 "$@" >"$tmp/out" 2>&1
  status=$?
  cat "$tmp/out"
  echo "exit status $status"
  [ "$status" = "$wanted" ] && grep -q -e "$words" "$tmp/out"
}

# prints LINES COMMAND...: these, in any order.
prints() {
  echo "$1" | sort >"$tmp/wanted"
  shift
  timeout 60 "$@" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/out" "$tmp/err"; return 1; }
  cat "$tmp/err"
  sort "$tmp/out" | diff "$tmp/wanted" -
}

# A host with little: a command with a limit of descriptors.
cat >"$tmp/lacking" <<'END'
#!/bin/sh
ulimit -n "$1"
shift
exec "$@"
END
chmod +x "$tmp/lacking"
each_once() {
  timeout 100 "$@" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/err"; return 1; }
  sort -n "$tmp/out" >"$tmp/got"
  seq 0 999 | sed 's/.*/& of 1000, & here/' | sort -n | diff - "$tmp/got"
}
thousand() {
  each_once "$@" -q -n 1000 sh -c 'echo "$SLUICE_RANK of $SLUICE_RANKS, $SLUICE_LOCAL_RANK here"'
}
thousand_marked() {
  each_once "$tmp/lacking" "$1" sh -c '"$1" -n 1000 sh -c "echo \$SLUICE_RANK of \$SLUICE_RANKS, \
    \$SLUICE_LOCAL_RANK here" | sed "s/^\[\([0-9]*\)\] \(\1 of\)/\2/"' - "$launch"
}
check 'eight ranks where there are 32 descriptors' ranks_of 8 "$tmp/lacking" 32 "$launch" -n 8 "$ranks"
check 'a rank that fails far away ends all, with 32 descriptors' \
  ends_with 7 'rank 37: exit status 7' "$tmp/lacking" 32 "$launch" -n 40 sh -c \
  '[ $SLUICE_RANK != 37 ] || exit 7; sleep 50'
check 'a thousand ranks' thousand "$launch"
check 'a thousand ranks, marked, where there are 32 descriptors' thousand_marked 32
check 'a variable for all ranks' prints 'a b
a b' "$launch" -q -x 'V=a b' -n 2 sh -c 'echo $V'
check 'another folder' prints / "$launch" -q --directory / -n 1 pwd
long_line() {
  "$launch" -n 1 sh -c 'head -c 100000 /dev/zero | tr "\0" x; echo; printf end' >"$tmp/out"
  tr -d '\n' <"$tmp/out" | wc -c
  [ "$(tr -d 'x\n' <"$tmp/out")" = '[0] [0] [0] end' ] && [ "$(tr -dc x <"$tmp/out" | wc -c)" = 100000 ]
}
check 'a line that is too long is divided' long_line
lines_stay_whole() {
  "$launch" -n 8 sh -c 'for i in 1 2 3 4 5 6 7 8 9; do printf "a$i "; printf "b$i\n"; done' >"$tmp/out" || return 1
  grep -c '^\[[0-7]\] a\([1-9]\) b\1$' "$tmp/out" | grep -qx 72
}
check 'lines stay whole' lines_stay_whole

if unshare -m -n true 2>/dev/null && have ip; then
  six_alone() {
    ranks_of 3 unshare -n sh -c 'ip link set lo up && ip addr del 127.0.0.1/8 dev lo && exec "$@"' - \
      "$launch" -n 3 "$ranks"
  }
  no_network() {
    ranks_of 4 unshare -n "$launch" -n 4 "$ranks"
  }
  nothing_writable() {
    TMPDIR=/nowhere ranks_of 3 unshare -m sh -c 'for folder in /tmp /dev/shm /run; do
        mount --bind $folder $folder && mount -o remount,bind,ro $folder || exit 1
      done; ! touch /tmp/it 2>/dev/null && exec "$@"' - "$launch" -n 3 "$ranks"
  }
  if unshare -n sh -c 'ip link set lo up && ip addr show dev lo | grep -q ::1/'; then
    check 'a loopback interface of ::1 alone' six_alone
  else
    skip 'a loopback interface of ::1 alone' 'no IPv6'
  fi
  check 'a network namespace without any address' no_network
  check 'neither /tmp nor another folder can be written' nothing_writable
else
  skip 'hosts that lack something' 'namespaces are not allowed, or there is no ip'
fi

# Hosts. A process stays in each namespace; a host is an address.
a=127.0.0.1 b=127.0.0.2 holders=
make_hosts() {
  unshare -n sleep 1000 &
  holders=$!
  unshare -n sleep 1000 &
  holders="$holders $!"
  set -- $holders
  for holder; do
    i=0
    until [ "$(readlink "/proc/$holder/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do
      i=$((i + 1))
      [ $i -lt 100 ] || return 1
      sleep 0.1
    done
  done
  ip link add va netns "$1" type veth peer name vb netns "$2" &&
    nsenter -t "$1" -n sh -c 'ip link set lo up; ip addr add 10.77.0.1/24 dev va; ip link set va up' &&
    nsenter -t "$2" -n sh -c 'ip link set lo up; ip addr add 10.77.0.2/24 dev vb; ip link set vb up' &&
    a=10.77.0.1 b=10.77.0.2
}
if unshare -n true 2>/dev/null && have ip && have nsenter; then
  trap 'kill $holders 2>/dev/null; rm -rf "$tmp"' EXIT
  make_hosts >"$tmp/made" 2>&1 || { echo '# no namespaces:'; sed 's/^/# /' "$tmp/made"; }
fi

# In place of ssh: goes to the host of the address, and passes bytes on by two processes, which can
# be killed or stopped. As some shells do, it prints something first.
cat >"$tmp/ssh" <<END
#!/bin/sh
host=\$1 enter=
set -- "\$2" $holders
case \$host in
  *0.1) [ -z "\${2:-}" ] || enter="nsenter -t \$2 -n" ;;
  *0.2) [ -z "\${3:-}" ] || enter="nsenter -t \$3 -n" ;;
  *) echo "no route to host \$host" >&2; exit 255 ;;
esac
rm -f "$tmp/in.\$host" "$tmp/out.\$host"
echo 'Welcome, sluice-launch: frames'
setsid -w sh -c 'echo \$\$ >"$tmp/in.'\$host'"; exec cat' |
  { env -i PATH="\$PATH" TEST_RUN=1 setsid -w \$enter sh -c "\$1" 2>>"$tmp/far"
    until [ -s "$tmp/in.\$host" ]; do sleep 0.1; done
    kill -KILL "\$(cat "$tmp/in.\$host")"; } |
  setsid -w sh -c 'echo \$\$ >"$tmp/out.'\$host'"; exec cat'
END
chmod +x "$tmp/ssh"

check 'two hosts' ranks_of 8 "$launch" --hosts $a:4,$b:4 --ssh "$tmp/ssh" "$ranks"
check 'numbers of ranks on two hosts' prints '0 0 of 3
1 1 of 3
2 0 of 3' "$launch" -q --hosts $a:2,$b:4 -n 3 --ssh "$tmp/ssh" sh -c \
  'echo $SLUICE_RANK $SLUICE_LOCAL_RANK of $SLUICE_RANKS'
host_file() {
  printf '# hosts\n%s slots=1\n\n%s:2 # two\n' $a $b >"$tmp/hosts"
  prints '0 0
1 0
2 1' "$launch" -q --hostfile "$tmp/hosts" --ssh "$tmp/ssh" sh -c 'echo $SLUICE_RANK $SLUICE_LOCAL_RANK'
}
check 'a file of hosts' host_file
check 'an equal share' prints '0 0
1 1
2 0' "$launch" -q --hosts $a,$b -n 3 --ssh "$tmp/ssh" sh -c 'echo $SLUICE_RANK $SLUICE_LOCAL_RANK'
check 'variables by name, and those of sluice' prints '1 two words set
1 two words set' env WORDS='two words' HIDDEN=1 SLUICE_TEST_SHORT=set "$launch" -q --hosts $a,$b --ssh "$tmp/ssh" \
  -x WORDS sh -c 'echo $TEST_RUN $WORDS$HIDDEN $SLUICE_TEST_SHORT'
marked() {
  prints "[0] one
[0] two
[1] one
[1] two" "$launch" --hosts $a,$b --ssh "$tmp/ssh" sh -c 'echo one; sleep 0.1; echo two'
}
check 'lines are marked' marked
check 'the current folder' prints "$(pwd)
$(pwd)" "$launch" -q --hosts $a,$b --ssh "$tmp/ssh" pwd

# The output has no reader any more, from the second line on: ranks of all hosts are told so.
enough_output() {
  { timeout 30 "$launch" --hosts $a,$b --ssh "$tmp/ssh" yes 2>"$tmp/err"; echo "exit status $?" >"$tmp/status"; } |
    head -n 1
  cat "$tmp/err" "$tmp/status"
  grep -q '^exit status 141$' "$tmp/status"
}
check 'output that has no reader any more' enough_output

# The secret is the same on both, nobody else can read it, and no command line or variable has it.
secret() {
  timeout 60 "$launch" -q --hosts $a,$b --ssh "$tmp/ssh" sh -c '
    stat -L -c %a "$SLUICE_SECRET_FILE"; od -An -tx1 "$SLUICE_SECRET_FILE" | tr -d " \n"; echo
    cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | od -An -tx1 -v | tr -d " \n" >"$1.$SLUICE_RANK"
    ' - "$tmp/seen" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/out" "$tmp/err"; return 1; }
  sort -u "$tmp/out"
  [ "$(sort -u "$tmp/out" | wc -l)" = 2 ] && grep -qx 600 "$tmp/out" || return 1
  secret=$(grep -v '^600$' "$tmp/out" | head -n 1)
  text=$(printf %s "$secret" | od -An -tx1 -v | tr -d ' \n')
  [ ${#secret} = 64 ] && [ -s "$tmp/seen.0" ] && [ -s "$tmp/seen.1" ] &&
    ! grep -q -e "$secret" -e "$text" "$tmp/seen.0" "$tmp/seen.1"
}
check 'the secret is seen by the ranks alone' secret

check 'the exit status of a rank' ends_with 7 'rank 2: exit status 7' \
  "$launch" --hosts $a:2,$b:2 --ssh "$tmp/ssh" sh -c '[ $SLUICE_RANK != 2 ] || exit 7; sleep 50'
check 'a rank that is killed' ends_with 137 'rank 3: killed by signal 9 (KILL)' \
  "$launch" --hosts $a:2,$b:2 --ssh "$tmp/ssh" sh -c '[ $SLUICE_RANK != 3 ] || kill -KILL $$; sleep 50'
check '--keep-going' ends_with 3 '3 of 4 ranks succeeded' \
  "$launch" --hosts $a:2,$b:2 --ssh "$tmp/ssh" --keep-going sh -c '[ $SLUICE_RANK != 3 ] || kill -KILL $$'
check 'a program that a host does not have' ends_with 127 "host $a: ./nothing: there is no such program" \
  "$launch" --hosts $a --ssh "$tmp/ssh" ./nothing
check 'a folder that a host does not have' ends_with 2 'folder /nowhere: No such file' \
  "$launch" --hosts $a --ssh "$tmp/ssh" --directory /nowhere true
check 'a host that is not reached' \
  ends_with 2 'host 10.0.0.9: it cannot be reached: its ssh ended with exit status 255' \
  "$launch" --hosts $a:1,10.0.0.9:1 --ssh "$tmp/ssh" sleep 50
check 'a command for hosts that is not there' \
  ends_with 2 'it cannot be reached: its ssh ended with exit status 127' \
  "$launch" --hosts $a:1 --ssh "$tmp/nothing" true
check 'what answers is another program' ends_with 2 'it cannot be reached' \
  "$launch" --hosts $a --ssh echo true
check 'a launcher that is not there' ends_with 2 'it cannot be reached' \
  "$launch" --hosts $a --ssh "$tmp/ssh" --path /nowhere/sluice-launch true

# begin ARGUMENT...: starts ranks on both hosts, until all of them run. They ignore SIGTERM, and
# have a child.
begin() {
  rm -f "$tmp"/run.* "$tmp/far"
  env --default-signal=INT "$launch" --hosts $a:2,$b:2 --ssh "$tmp/ssh" "$@" sh -c '
    trap "" TERM
    sleep 100 &
    echo $$ $! >"$1.$SLUICE_RANK.new" && mv "$1.$SLUICE_RANK.new" "$1.$SLUICE_RANK"
    wait; exit 0' - "$tmp/run" >"$tmp/out" 2>&1 &
  id=$!
  until [ -e "$tmp/run.0" ] && [ -e "$tmp/run.1" ] && [ -e "$tmp/run.2" ] && [ -e "$tmp/run.3" ]; do
    kill -0 $id || { cat "$tmp/out"; return 1; }
    sleep 0.1
  done
  begun=$(date +%s)
}
lives() {
  kill -0 "$1" 2>/dev/null && ! grep -q '^[0-9]* (.*) Z' "/proc/$1/stat" 2>/dev/null
}
# all_end SECONDS RANK...: these and their children.
all_end() {
  limit=$1
  shift
  for rank; do
    # shellcheck disable=SC2013 # they are words
    for process in $(cat "$tmp/run.$rank"); do
      while lives "$process"; do
        [ $(($(date +%s) - begun)) -le "$limit" ] || { echo "rank $rank, process $process lives"; return 1; }
        sleep 0.1
      done
    done
  done
}
break_line() {
  kill -s "$1" "$(cat "$tmp/in.$b")" "$(cat "$tmp/out.$b")" 2>/dev/null
}
# is_lost STATUS: what the launcher and the lost host print.
is_lost() {
  wait $id
  status=$?
  break_line KILL
  cat "$tmp/out" "$tmp/far"
  echo "exit status $status after $(($(date +%s) - begun)) s"
  [ $status = "$1" ] && grep -q "^sluice-launch: host $b: .*; 2 of ranks 2 to 3 lost" "$tmp/out" &&
    grep -q '^sluice-launch: host .*: its ranks are ended$' "$tmp/far"
}
cut_off() {
  begin && break_line "$1" && all_end 10 0 1 2 3 && is_lost 137 &&
    grep -q "$2" "$tmp/out" && grep -q "$3" "$tmp/far"
}
check 'a connection that breaks' cut_off KILL 'connection lost' 'the connection to the launcher is closed'
check 'a connection that falls silent' cut_off STOP 'nothing was received for 6 s' \
  'nothing was received from the launcher for 6 s'
goes_on() {
  begin --keep-going && break_line KILL && all_end 10 2 3 || return 1
  # shellcheck disable=SC2046 # they are words
  kill -0 $(cat "$tmp/run.0" "$tmp/run.1") || return 1
  for rank in 0 1; do
    read -r _ child <"$tmp/run.$rank"
    kill -KILL "$child"
  done
  is_lost 3 && grep -q '2 of 4 ranks succeeded' "$tmp/out"
}
check 'a connection that breaks, with --keep-going' goes_on
killed_itself() {
  begin && kill -KILL $id && all_end 10 0 1 2 3
}
check 'a launcher that is killed takes the ranks of all hosts along' killed_itself
interrupted_twice() {
  begin && kill -INT $id && sleep 1 && kill -INT $id
  wait $id
  status=$?
  cat "$tmp/out"
  [ $status = 130 ] && all_end 8 0 1 2 3
}
check 'SIGINT ends the ranks of all hosts' interrupted_twice

# sshd in both namespaces, and the launcher in the first. No folder can be written there, and nothing
# of MPI is found. The connection is cut by taking the network away.
with_sshd() {
  mkdir "$tmp/sshd" && ssh-keygen -q -t ed25519 -N '' -f "$tmp/sshd/key" && ssh-keygen -q -t ed25519 -N '' -f "$tmp/sshd/host" &&
    cp "$tmp/sshd/key.pub" "$tmp/sshd/keys" && chmod 700 "$tmp/sshd" || return 1
  cat >"$tmp/sshd/config" <<END
Port 22
HostKey $tmp/sshd/host
AuthorizedKeysFile $tmp/sshd/keys
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
END
  # sshd wants an empty folder at a fixed place.
  for holder in $holders; do
    nsenter -t "$holder" -n unshare -m sh -c '
      mount -t tmpfs none /run && mkdir /run/sshd && for folder in /tmp /dev/shm /run; do
        mount --bind $folder $folder && mount -o remount,bind,ro $folder || exit 1
      done
      exec "$@"' - "$(command -v sshd)" -D -e -f "$tmp/sshd/config" 2>"$tmp/sshd.$holder" &
    daemons="$daemons $!"
  done
  i=0
  until by_ssh "$b" true; do
    i=$((i + 1))
    [ $i -lt 50 ] || { cat "$tmp"/sshd.*; return 1; }
    sleep 0.2
  done
}
options="-T -F none -i $tmp/sshd/key -o BatchMode=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR"
options="$options -o UserKnownHostsFile=/dev/null"
in_a() {
  set -- ${holders%% *} "$@"
  first=$1
  shift
  nsenter -t "$first" -n "$@"
}
by_ssh() {
  in_a ssh $options "$@"
}
ssh_ranks() {
  ranks_of 16 nsenter -t "${holders%% *}" -n "$launch" --hosts $a:8,$b:8 --ssh "ssh $options" "$ranks"
}
ssh_cut() {
  rm -f "$tmp"/run.*
  : >"$tmp/out"
  nsenter -t "${holders%% *}" -n "$launch" --hosts $a:8,$b:8 --ssh "ssh $options" sh -c '
    trap "" TERM
    sleep 100 &
    echo $$ $!
    wait' >"$tmp/out" 2>&1 &
  id=$!
  until [ "$(grep -c '^\[' "$tmp/out")" = 16 ]; do
    kill -0 $id || { cat "$tmp/out"; return 1; }
    sleep 0.1
  done
  sed -n 's/^\[\([0-9]*\)\] \(.*\)/\1 \2/p' "$tmp/out" | while read -r rank words; do
    echo "$words" >"$tmp/run.$rank"
  done
  in_a ip link set va down
  begun=$(date +%s)
  # shellcheck disable=SC2046 # they are words
  all_end 10 $(seq 0 15)
  result=$?
  wait $id
  status=$?
  in_a ip link set va up
  cat "$tmp/out"
  echo "exit status $status after $(($(date +%s) - begun)) s"
  [ $result = 0 ] && [ $status = 137 ] &&
    grep -q "^sluice-launch: host $b: nothing was received for 6 s; 8 of ranks 8 to 15 lost" "$tmp/out"
}
daemons=
if [ -z "$holders" ]; then
  skip 'sixteen ranks on two hosts by ssh' 'no namespaces'
elif ! PATH=$PATH:/usr/sbin have sshd || ! have ssh; then
  skip 'sixteen ranks on two hosts by ssh' 'no sshd'
else
  PATH=$PATH:/usr/sbin
  trap 'kill $daemons $holders 2>/dev/null; rm -rf "$tmp"' EXIT
  with_sshd >"$tmp/sshd.log" 2>&1 || sed 's/^/# /' "$tmp/sshd.log"
  check 'sixteen ranks on two hosts by ssh' ssh_ranks
  check 'a network that breaks' ssh_cut
fi

unanswered() {
  printf '#!/bin/sh\necho $$ >>"$0.ids"\nexec sleep 50\n' >"$tmp/slow"
  chmod +x "$tmp/slow"
  : >"$tmp/slow.ids"
  env --default-signal=INT "$launch" --hosts a,b --ssh "$tmp/slow" true >"$tmp/out" 2>&1 &
  id=$!
  until [ "$(grep -c . "$tmp/slow.ids")" = 2 ]; do sleep 0.1; done
  begun=$(date +%s)
  kill -INT $id
  wait $id
  status=$?
  cat "$tmp/out"
  echo "exit status $status"
  mv "$tmp/slow.ids" "$tmp/run.0"
  [ $status = 130 ] && all_end 5 0
}
check 'SIGINT while hosts are reached' unanswered

# Five hosts by a tree of two each: they are addresses of the first one.
five=127.0.0.1:2,127.0.1.1:1,127.1.0.1:3,127.2.0.1:1,127.3.0.1:1
cat >"$tmp/near" <<'END'
#!/bin/sh
echo "$PPID $$ $1" >>"$0.started"
exec sh -c "$2"
END
chmod +x "$tmp/near"
tree() {
  rm -f "$tmp/near.started"
  ranks_of 8 "$launch" --hosts $five --tree=2 --ssh "$tmp/near" "$ranks" || return 1
  cat "$tmp/near.started"
  [ "$(wc -l <"$tmp/near.started")" = 5 ] && [ "$(cut -d ' ' -f 1 "$tmp/near.started" | sort -u | wc -l)" -gt 1 ]
}
check 'five hosts by a tree' tree
check 'the exit status of a rank behind another host' ends_with 9 'rank 5: exit status 9' \
  "$launch" --hosts $five --tree=2 --ssh "$tmp/near" sh -c '[ $SLUICE_RANK != 5 ] || exit 9; sleep 50'
check 'a host behind another one that is not reached' ends_with 2 'host 10.0.0.9: it cannot be reached' \
  "$launch" --hosts $a,$b,10.0.0.9 --tree=2 --ssh "$tmp/ssh" sleep 50

# The command line.
printf '#!/bin/sh\necho "$1" >>"$0.names"\nuntil [ "$(grep -c . "$0.names")" = 5 ]; do sleep 0.1; done\nexit 1\n' >"$tmp/name"
chmod +x "$tmp/name"
names() {
  timeout 60 "$launch" --hosts 'a:2,u@b:1,[::1]:3,[fe80::2]:1,v@[::3]:1' --ssh "$tmp/name" true
  sort "$tmp/name.names" | tr '\n' ' ' >"$tmp/got"
  cat "$tmp/got"
  [ "$(cat "$tmp/got")" = '::1 a fe80::2 u@b v@::3 ' ]
}
check 'names of hosts' names
roots() {
  for root in h:1 '[::1]:2' h '[::1]' ::1; do
    "$launch" --hosts $a --root $root -q --ssh "$tmp/ssh" sh -c 'echo $SLUICE_ROOT' 2>/dev/null |
      sed 's/:[23][0-9]\{4\}$/:port/'
  done >"$tmp/got"
  cat "$tmp/got"
  printf '%s\n' h:1 '[::1]:2' h:port '[::1]:port' '[::1]:port' | diff - "$tmp/got"
}
check 'the address of rank 0' roots
check 'a wrong address of rank 0' ends_with 2 "root must be a host, or host:port, not 'h:0'" \
  "$launch" --hosts a --root h:0 true
check 'more ranks than the hosts have' ends_with 2 'is 9, but the hosts have 4 ranks' \
  "$launch" --hosts a:2,b:2 -n 9 true
check 'a host that is named twice' ends_with 2 'a is named twice' "$launch" --hosts a:2,a:2 true
check 'a host that is an option' ends_with 2 "'-oProxyCommand=x' is not a host" \
  "$launch" --hosts -oProxyCommand=x true
for list in 'a:2,' ',a:2' 'a:2,,b:2' ''; do
  check "a host is missing in '$list'" ends_with 2 'a host is missing' "$launch" --hosts "$list" true
done
check 'a number that is none' ends_with 2 "must be 1 to 65536, not 'x'" "$launch" --hosts a:x true
check 'some hosts with a number' ends_with 2 'a number of ranks, or none' "$launch" --hosts a:1,b true
check 'a file of hosts that is not there' ends_with 2 '/nowhere: No such file' \
  "$launch" --hostfile /nowhere true
check 'a wrong line names itself' ends_with 2 'hosts:1: a line must be' sh -c \
  'echo a slot=4 >"$2" && exec "$1" --hostfile "$2" true' - "$launch" "$tmp/hosts"
check 'an option that needs hosts' ends_with 2 'tree needs --hosts' "$launch" -n 1 --tree true
check 'a variable that is not set' ends_with 2 'NOWHERE: this variable is not set' \
  "$launch" -x NOWHERE -n 1 true
finish
