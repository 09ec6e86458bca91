#!/bin/sh
# SPDX-License-Identifier: MIT
# The probes of the library are those of the table in lib/base/probe.h and of
# sluice_tracing(7), each with as many arguments; and what debuggers and tracers find
# there is what the program did. A build without sys/sdt.h has none.
. "${srcdir:-.}/tests/tap.sh"

library=lib/.libs/libsluice.so
program=tests/probes
page=$srcdir/man/sluice_tracing.7

have readelf || skip_all 'no readelf'
[ -f $library ] || skip_all 'no shared library was built'

# "name count" of each.
table() {
  sed -n 's/^ *PROBE(\([a-z_]*\), "\([^"]*\)").*/\1 \2/p' "$srcdir/lib/base/probe.h"
}
counted() {
  awk '{ print $1, NF - 1 }' | sort -u
}
notes() {
  readelf -n $library 2>/dev/null | awk '
    $1 == "Provider:" { ours = $2 == "sluice" }
    $1 == "Name:" { name = $2 }
    $1 == "Arguments:" && ours { print name, NF - 1 }' | sort -u
}
documented() {
  sed -n 's/^\.It Sy \([a-z_]*\) Fa \(.*\)$/\1 \2/p' "$page" | sed 's/ , /, /g'
}
same() {
  diff "$tmp/left" "$tmp/right"
}

table >"$tmp/left"
documented >"$tmp/right"
check 'probes of lib/base/probe.h (<) and of sluice_tracing(7) (>)' same
check 'what is traced works' timeout 60 $program

if ! grep -q '^#define HAVE_PROBES 1' config.h; then
  : >"$tmp/left"
  notes >"$tmp/right"
  check 'a build without probes has none' same
  finish
fi

table | counted >"$tmp/left"
notes >"$tmp/right"
check 'probes of the table (<) and notes in the library (>), with their arguments' same

listed() {
  tools/sluice-info --probes | sed -n 's/^sluice:\([a-z_]*\)(\(.*\))$/\1 \2/p' >"$tmp/right"
  table >"$tmp/left"
  same
}
if [ -x tools/sluice-info ]; then
  check 'probes of the table (<) and of sluice-info --probes (>)' listed
else
  skip 'sluice-info --probes' 'it was not built'
fi

# In gdb: writes of 1 to 15 bytes, and one that is refused.
cat >"$tmp/script" <<'GDB'
set breakpoint pending on
set confirm off
set pagination off
start
break -probe-stap sluice:post
commands
silent
printf "post %lu %lu\n", *(unsigned long *)$_probe_arg0, $_probe_arg1
continue
end
break -probe-stap sluice:completion
commands
silent
printf "completion %lu %lu opcode %d bytes %lu status %d\n", *(unsigned long *)$_probe_arg0, $_probe_arg1, $_probe_arg2, $_probe_arg3, $_probe_arg4
continue
end
break -probe-stap sluice:peer_state
commands
silent
printf "state of %d is %d for %d\n", $_probe_arg1, $_probe_arg2, $_probe_arg3
continue
end
continue
GDB
debug() {
  SLUICE_LOG=none libtool_run gdb -nx -batch -x "$1" "$program" >"$tmp/gdb.out" 2>"$tmp/gdb.err"
}
libtool_run() {
  ./libtool --mode=execute "$@"
}

# The script prints the work of the program: the numbers of posts and of their ends agree.
traced() {
  debug "$tmp/script" || { cat "$tmp/gdb.out" "$tmp/gdb.err"; return 1; }
  awk '
    $1 == "post" { posts++; channel = $2; ids[posts] = $3 }
    $1 == "completion" {
      ends++
      good += $2 == channel && $3 == ids[ends] && $5 == 3 &&
        (ends < 16 ? $7 == ends && $9 == 0 : $7 == 0 && $9 == 10)
    }
    /^state of 0 is 1 for 0$/ { prepared++ }
    /^state of 0 is 2 for 0$/ { ready++ }
    /^state of 0 is 3 for 10$/ { failed++ }
    END { exit !(posts == 16 && ends == 16 && good == 16 && prepared == 1 && ready == 1 && failed == 1) }
  ' "$tmp/gdb.out" || { cat "$tmp/gdb.out" "$tmp/gdb.err"; return 1; }
}

# blocks KIND: those of the page, one a file, of this build's library.
blocks() {
  awk -v kind="$1" -v folder="$tmp" -v library="$(pwd)/$library" '
    $0 == ".\\\" block " kind { file = folder "/" kind "." ++count; next }
    file != "" && /^\.Ed/ { close(file); print file; file = "" }
    file != "" && !/^\.Bd/ {
      gsub(/\/usr\/lib\/libsluice\.so\.0/, library)
      gsub(/\\e/, "\\")
      print > file
    }' "$page"
}

can_debug() {
  have gdb || { echo 'no gdb' >"$tmp/why"; return 1; }
  gdb -nx -batch -ex run /bin/true >"$tmp/can" 2>&1
  grep -q 'exited normally' "$tmp/can" || { echo 'gdb cannot run a program here' >"$tmp/why"; return 1; }
}
if [ -n "${SANITIZE:-}" ]; then
  skip 'what gdb sees at the probes is what the program did' 'instrumented'
elif can_debug; then
  check 'what gdb sees at the probes is what the program did' traced
  shown() {
    { echo 'set breakpoint pending on' && echo 'start' && cat "$1" && echo 'continue'; } >"$tmp/show"
    debug "$tmp/show" || { cat "$tmp/gdb.out" "$tmp/gdb.err"; return 1; }
    grep -q '^13: .*write' "$tmp/gdb.out" || { cat "$tmp/gdb.out" "$tmp/gdb.err"; return 1; }
  }
  for file in $(blocks gdb); do
    check "${file##*/} of the page shows the write that is refused" shown "$file"
  done
else
  skip 'what gdb sees at the probes is what the program did' "$(cat "$tmp/why")"
fi

understood() {
  bpftrace -d -e "$(cat "$1")" >"$tmp/bpftrace.out" 2>&1 || { cat "$tmp/bpftrace.out"; return 1; }
}
if ! have bpftrace; then
  skip 'programs of the page for bpftrace' 'no bpftrace'
elif ! bpftrace -d -e 'BEGIN { exit(); }' >"$tmp/bpftrace.out" 2>&1; then
  skip 'programs of the page for bpftrace' "$(head -n 1 "$tmp/bpftrace.out")"
else
  check 'a program for bpftrace that is wrong is found' sh -c \
    "! bpftrace -d -e 'usdt:$(pwd)/$library:sluice:post { @[arg9x] = count(; }'"
  for file in $(blocks bpftrace); do
    check "${file##*/} of the page is understood" understood "$file"
  done
fi
finish
