#!/bin/sh
# SPDX-License-Identifier: MIT
# Odd places to run in, as sluice_transports(7) lists them under Host: two processes connect there
# over shared memory and over TCP, and sluice-launch starts the program of README.md. They work, or
# the text names the cause. Comments in the source of that page name the tests of each row.
. "${srcdir:-.}/tests/tap.sh"

cc=${CC:-cc}
[ -f lib/.libs/libsluice.so ] || skip_all 'no shared library was built'
[ -x tools/sluice-launch ] || skip_all 'no tools/sluice-launch was built'
libs=$(pwd)/lib/.libs
launch=$(pwd)/tools/sluice-launch
pair=$tmp/pair
chmod 755 "$tmp"

for name in $(env | sed -n 's/^\(SLUICE_[A-Za-z0-9_]*\)=.*/\1/p'); do
  unset "$name"
done
LD_LIBRARY_PATH=$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} SLUICE_DEVICE=soft
export LD_LIBRARY_PATH SLUICE_DEVICE

# build NAME SOURCE OPTION...
build() {
  name=$1 source=$2
  shift 2
  # shellcheck disable=SC2086 # a compiler may come with options
  $cc -std=gnu99 -Wall -Wextra -Werror -I"$srcdir/include" -o "$tmp/$name" "$source" "$@"
}
awk '/^```c$/ { inside = !seen++; next } /^```/ { inside = 0 } inside' "$srcdir/README.md" \
  >"$tmp/hello.c"
check 'the pair compiles' build pair "$srcdir/tests/places/pair.c" "$libs/libsluice.so"
check 'the program of README.md compiles' build hello "$tmp/hello.c" "$libs/libsluice.so"

# ends_as WANTED COMMAND...: memory, TCP and ranks are what a success prints; all else is the text
# of a failure.
ends_as() {
  wanted=$1
  shift
  status=0
  "$@" >"$tmp/said" 2>&1 || status=$?
  cat "$tmp/said"
  echo "exit status $status"
  case $wanted in
    memory | TCP) [ "$status" = 0 ] && grep -q "^connected over $wanted$" "$tmp/said" ;;
    ranks) [ "$status" = 0 ] && [ "$(grep -c '^0 to [012], 1 to [012], 2 to [012]$' "$tmp/said")" = 3 ] ;;
    *) [ "$status" -gt 0 ] && [ "$status" -lt 124 ] && grep -q -e "$wanted" "$tmp/said" ;;
  esac
}

# The way to a place: functions that execute a command there.
ns=unshare
[ "$(id -u)" = 0 ] || ns='unshare --map-root-user'
usual() {
  "$@"
}
# apart FLAGS SCRIPT COMMAND...: in namespaces of its own, after the script.
apart() {
  flags=$1 script=$2
  shift 2
  # shellcheck disable=SC2086 # they are words
  $ns $flags sh -c "mount --make-rprivate / 2>/dev/null; $script || exit 99; exec \"\$@\"" - "$@"
}
bare() {
  env -i SLUICE_DEVICE=soft LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$@"
}
no_proc() {
  apart -m 'mount -t tmpfs none /proc' "$@"
}
no_secret() {
  no_proc env SLUICE_SECRET_FILE= "$@"
}
no_interface() {
  apart -n : "$@"
}
no_proc_nor_interface() {
  apart -nm 'mount -t tmpfs none /proc' "$@"
}
no_ipv4() {
  apart -n 'ip link set lo up && ip addr del 127.0.0.1/8 dev lo' "$@"
}
no_ipv6() {
  apart -n 'ip link set lo up && { ip addr del ::1/128 dev lo || :; }' "$@"
}
read_only() {
  apart -m 'mount -o remount,ro,bind / && { mount -o remount,ro,bind /tmp 2>/dev/null || :; }' "$@"
}
no_dev() {
  apart -m 'mount -t tmpfs none /dev' "$@"
}
no_sys() {
  apart -m 'mount -t tmpfs none /sys' "$@"
}
no_etc() {
  apart -m 'mount -t tmpfs none /etc' "$@"
}
no_name() {
  apart -mu 'hostname no.such.name.invalid && mount --bind /dev/null /etc/hosts &&
    mount --bind /dev/null /etc/resolv.conf' "$@"
}
own_users() {
  unshare --map-root-user "$@"
}
gone_folder() {
  mkdir -p "$tmp/gone" && (cd "$tmp/gone" && rmdir "$tmp/gone" && exec "$@")
}
no_permissions() {
  (umask 0777 && exec "$@")
}
# The file that keeps the output has no such limit.
no_files() {
  { prlimit --fsize=0 "$@" 2>&1; echo $? >"$tmp/code"; } | cat
  return "$(cat "$tmp/code")"
}
small() {
  prlimit --as=60000000 "$@"
}
few_descriptors() {
  prlimit --nofile=24 "$@"
}
other=$((50000 + $$ % 10000))
# For timeout(1), and the two processes of a pair. The limit is not that of root.
no_threads() {
  setpriv --reuid="$other" --clear-groups prlimit --nproc=3 "$@"
}
# A filter of seccomp(2) as container runtimes have them.
refused() {
  error=$1 calls=$2
  shift 2
  numbers=$(for call in $calls; do
    # shellcheck disable=SC2086 # a compiler may come with options
    printf '#include <sys/syscall.h>\nSYS_%s\n' "$call" | $cc -E -P -x c - | tail -n 1
  done)
  # shellcheck disable=SC2086 # they are words
  "$pair" under "$error" $numbers -- "$@"
}
no_memfd() {
  refused 1 memfd_create "$@"
}
unknown_memfd() {
  refused 38 memfd_create "$@"
}
no_reading() {
  refused 1 process_vm_readv "$@"
}
unknown_calls() {
  refused 38 "$new_calls" "$@"
}
denied_calls() {
  refused 1 "$new_calls" "$@"
}
new_calls='io_uring_setup pidfd_open pidfd_getfd userfaultfd membarrier close_range
  sched_getaffinity mbind rseq statfs prctl'
no_random() {
  refused 38 getrandom "$@"
}
no_sockets() {
  refused 1 socket "$@"
}
preloaded() {
  library=$1
  shift
  LD_PRELOAD=$library "$@"
}
jumping() {
  faketime -f '-1d x10' "$@"
}

# row PLACE FUNCTION SHM TCP LAUNCH: what each of the three ends as there.
row() {
  place=$1 function=$2
  if ! $function true 2>"$tmp/why"; then
    skip "$place" "this place cannot be made: $(tail -n 1 "$tmp/why")"
    return
  fi
  check "$place: shared memory" ends_as "$3" "$function" timeout 60 "$pair" soon
  check "$place: TCP" ends_as "$4" "$function" env SLUICE_WIRE=tcp timeout 60 "$pair" soon
  check "$place: sluice-launch" ends_as "$5" "$function" timeout 60 "$launch" -q -n 3 "$tmp/hello"
}

route='this host has no route to any address'
secret='cannot make a secret for the ranks: .*set SLUICE_SECRET_FILE'
row 'a usual host' usual memory TCP ranks
row 'an empty environment' bare memory TCP ranks
row 'no /proc' no_proc TCP TCP "$secret"
row 'no /proc, without a secret' no_secret TCP TCP ranks
row 'no interface that is up' no_interface memory "$route" ranks
row 'neither /proc nor an interface' no_proc_nor_interface "$route" "$route" "$secret"
row 'a loopback interface without IPv4' no_ipv4 memory TCP ranks
row 'a loopback interface without IPv6' no_ipv6 memory TCP ranks
row 'a read-only root' read_only memory TCP ranks
row 'an empty /dev' no_dev memory TCP ranks
row 'an empty /sys' no_sys memory TCP ranks
row 'an empty /etc' no_etc memory TCP ranks
row 'a host name that has no address' no_name memory TCP ranks
row 'a user namespace' own_users memory TCP ranks
row 'a folder that was removed' gone_folder memory TCP ranks
row 'a umask of 0777' no_permissions memory TCP ranks
row 'no files (ulimit -f 0)' no_files 'ulimit -f is less' 'ulimit -f is less' "$secret"
row 'an address space of 60 MB' small memory TCP ranks
row '24 descriptors' few_descriptors memory TCP ranks
if ! setpriv --reuid="$other" --clear-groups test -r "$libs/libsluice.so" -a -x "$launch" 2>/dev/null; then
  skip 'no more threads (ulimit -u)' 'no other user can run the programs of this build folder'
else
  row 'no more threads (ulimit -u)' no_threads 'cannot start the helper thread.*ulimit -u' \
    'cannot start the helper thread.*ulimit -u' 'no process for rank\|cannot start the helper'
fi
row 'seccomp denies memfd_create(2)' no_memfd TCP TCP "$secret"
row 'a kernel without memfd_create(2)' unknown_memfd TCP TCP "$secret"
row 'seccomp denies process_vm_readv(2)' no_reading memory TCP ranks
row 'seccomp denies calls of new kernels' denied_calls memory TCP ranks
row 'a kernel without these calls' unknown_calls memory TCP ranks
row 'a kernel without getrandom(2)' no_random 'getrandom(2)' 'getrandom(2)' 'no random bytes'
row 'seccomp denies sockets' no_sockets 'cannot listen for peers' 'cannot listen for peers' \
  'cannot listen'

check 'with children of posix_spawn(3), vfork(2) and fork(2)' ends_as memory timeout 60 "$pair" children
check 'the same over TCP' ends_as TCP env SLUICE_WIRE=tcp timeout 60 "$pair" children

# All three standard streams are closed: the status alone tells.
closed() {
  "$@" <&- >&- 2>&-
}
check 'closed standard streams: shared memory' closed timeout 60 "$pair"
check 'closed standard streams: TCP' closed env SLUICE_WIRE=tcp timeout 60 "$pair"
check 'closed standard streams: sluice-launch' closed timeout 60 "$launch" -q -n 3 "$tmp/hello"

# A rank in a namespace of processes of its own sees another /proc than the launcher.
if $ns -pf --mount-proc true 2>/dev/null; then
  # shellcheck disable=SC2086 # they are words
  check 'ranks that see another /proc than sluice-launch' ends_as 'not in the /proc that this process sees' \
    timeout 60 "$launch" -q -n 2 $ns -pf --mount-proc "$tmp/hello"
else
  skip 'ranks that see another /proc than sluice-launch' 'no namespaces of processes can be made'
fi

# Allocators and clocks in place of those of the system.
for library in libjemalloc.so.2 libtcmalloc_minimal.so.4; do
  path=$(PATH=$PATH:/sbin ldconfig -p | sed -n "s/.*$library .*=> //p" | head -n 1)
  if [ -z "$path" ]; then
    skip "$library" 'it is not installed'
  else
    check "$library: shared memory" ends_as memory preloaded "$path" timeout 60 "$pair"
    check "$library: TCP" ends_as TCP preloaded "$path" env SLUICE_WIRE=tcp timeout 60 "$pair"
  fi
done
if have faketime; then
  check 'a clock that is a day late, and ten times as fast' ends_as memory jumping timeout 60 "$pair"
else
  skip 'a clock that is a day late, and ten times as fast' 'no faketime'
fi

# The static library in a static program.
if [ ! -f lib/.libs/libsluice.a ]; then
  skip 'a static program' 'no static library was built'
elif ! build static "$srcdir/tests/places/pair.c" -static lib/.libs/libsluice.a -lsodium -lpthread \
  2>"$tmp/why"; then
  skip 'a static program' "it cannot be linked: $(grep -m 1 -e undefined -e cannot "$tmp/why")"
else
  check 'a static program: shared memory' ends_as memory timeout 60 "$tmp/static"
  check 'a static program: TCP' ends_as TCP env SLUICE_WIRE=tcp timeout 60 "$tmp/static"
fi
finish
