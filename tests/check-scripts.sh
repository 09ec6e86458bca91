#!/bin/sh
# SPDX-License-Identifier: MIT
# What scripts/test and tests/softroce/run promise of themselves: that they say what failed,
# refuse a tree that was built in place, run once at a time in a checkout, and end all that they
# started when a signal ends them, with and without a terminal. In a tree whose stages do as they
# are told here, and with a machine that is none. Nothing here waits for longer than a minute.
. "${srcdir:-.}/tests/tap.sh"

env --default-signal=HUP true 2>/dev/null || skip_all 'env(1) cannot set signals'
have flock || skip_all 'no flock (util-linux)'
# shellcheck disable=SC2016 # of that shell
bash -c '[ $((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1])) -ge 501 ]' 2>/dev/null ||
  skip_all 'no bash of 5.1 or later'

# shellcheck disable=SC2154 # tap.sh sets it
tree=$tmp/tree
mkdir -p "$tree/scripts" "$tree/tests/softroce" "$tmp/bin"
cp "$srcdir/scripts/demo" "$srcdir/scripts/test" "$tree/scripts"
cp "$srcdir/tests/softroce/run" "$tree/tests/softroce/real"
chmod +x "$tree/scripts/demo" "$tree/scripts/test" "$tree/tests/softroce/real"

# script FILE: what it does is read from standard input.
script() {
  { echo '#!/bin/sh' && cat; } >"$1"
  chmod +x "$1"
}

script "$tree/scripts/deps" </dev/null
script "$tree/tests/softroce/image" </dev/null
script "$tree/tests/softroce/check-hosts.sh" <<'END'
echo 'ok 1 - hosts'
END
script "$tree/tests/softroce/check-ptrace.sh" <<'END'
echo 'ok 1 - ptrace'
END
script "$tree/tests/check-linkage.sh" <<'END'
echo 'ok 1 - linkage'
END
script "$tree/tests/softroce/run" <<'END'
echo 'ok 1 - guest'
END
# A build folder in which make does what the file mood says, given the name of the folder.
script "$tree/configure" <<'END'
mkdir -p tests
{
  printf 'all:\n\t@:\n'
  # An archive of one file, the check of the packages.
  printf 'dist-xz:\n\tmkdir -p sluice-0/tests/packages\n'
  printf '\tprintf "#!/bin/sh\\necho ok 1 - packages\\n" >sluice-0/tests/packages/check\n'
  printf '\tchmod +x sluice-0/tests/packages/check\n\ttar -cJf sluice-0.tar.xz sluice-0\n'
  printf 'examples/01-loopback tests/test_data tests/test_wrap:\n\t@:\n'
  printf 'TESTS = all\ntest_programs = all\nthreaded_tests = all\ncheck coverage distcheck:\n\t@[ -z "$(TESTS)" ] || sh ../../mood $(notdir $(CURDIR))\n'
} >Makefile
printf 'echo "ok 1 - threads"\n' >tests/test_threads
chmod +x tests/test_threads
: >config.status
END

calm() {
  cat >"$tree/mood" <<'END'
printf 'PASS: tests/test_sun 1 - shines\n# TOTAL: 1\n# PASS:  1\n'
END
}

# Starts processes that do not end by themselves; one ignores signals, in a session of its own.
endless() {
  rm -f "$tmp/process".*
  cat >"$tree/mood" <<END
setsid sh -c 'trap "" TERM HUP INT; echo \$\$ >$tmp/process.deaf.\$1; while sleep 1; do :; done' - "\$1" &
echo \$\$ >$tmp/process.mood.\$1
while sleep 1; do :; done
END
}

# within SECONDS COMMAND...: it succeeds, now or soon.
within() {
  tenths=$(($1 * 10))
  shift
  until "$@"; do
    tenths=$((tenths - 1))
    [ "$tenths" -gt 0 ] || return 1
    sleep 0.1
  done
}

# all_run STAGE...: what they start.
all_run() {
  for name; do
    [ -s "$tmp/process.deaf.$name" ] && [ -s "$tmp/process.mood.$name" ] || return 1
  done
}

# Not as a process, or only as its exit status.
is_gone() {
  case $(cut -d ')' -f 2 "/proc/$1/stat" 2>/dev/null) in
    '' | ' Z'* | ' X'*) return 0 ;;
  esac
  return 1
}

all_gone() {
  for process in "$tmp/process".*; do
    is_gone "$(cat "$process")" || return 1
  done
}

# begin COMMAND...: in the background, as a process group of its own, with the usual signals.
begin() {
  setsid env --default-signal=HUP,INT,TERM "$@" >"$tmp/out" 2>&1 </dev/null &
  begun=$!
}

# finish_begun STATUS: it has ended within a minute, with this exit status.
finish_begun() {
  within 60 is_gone "$begun" || { echo 'it runs for ever' && kill -s KILL "$begun"; }
  status=0
  wait "$begun" || status=$?
  cat "$tmp/out"
  echo "exit status $status, wanted $1"
  [ "$status" = "$1" ]
}

last_line() {
  [ "$(tail -n 1 "$tmp/out")" = "$1" ]
}

all_stages() {
  calm
  wanted='9 passed, 0 failed' packages=dist
  ! have apt-get || packages=packages
  begin env -u TERM HOME=/nonexistent "$tree/scripts/test"
  finish_begun 0 && last_line "$wanted" &&
    for name in plain guest sanitized threads without-verbs $packages; do
      grep -q "^$name .* ok " "$tmp/out" || return 1
    done
}

# The end of the output, which is all that is kept in some places, says it all.
says_what_failed() {
  cat >"$tree/mood" <<'END'
[ "$1" = sanitized ] || { printf '# TOTAL: 1\n# PASS:  1\n'; exit 0; }
seq -f 'line %g of the log' 50 >tests/test_moon.log
printf 'FAIL: tests/test_moon 3 - craters\n# TOTAL: 1\n# FAIL:  1\n'
exit 1
END
  begin "$tree/scripts/test"
  finish_begun 1 && last_line "$((${wanted%% *} - 1)) passed, 1 failed" || return 1
  tail -n 50 "$tmp/out" >"$tmp/end"
  grep -q '^stage sanitized failed' "$tmp/end" && grep -q '^ *FAIL: tests/test_moon 3 - craters' "$tmp/end" &&
    grep -q 'line 50 of the log' "$tmp/end" && grep -q 'line 11 of the log' "$tmp/end" &&
    ! grep -q 'line 10 of the log' "$tmp/end" && grep -q '^failed stages: sanitized$' "$tmp/end"
}

# Two that run at once, as each waits for the other, and both fail; the third does not.
says_what_failed_in_both() {
  rm -f "$tmp/met".*
  cat >"$tree/mood" <<END
[ "\$1" != plain ] || { printf '# TOTAL: 1\n# PASS:  1\n'; exit 0; }
: >$tmp/met.\$1
until [ -e $tmp/met.sanitized ] && [ -e $tmp/met.threads ]; do sleep 0.1; done
echo "\$1 was here" >tests/test_\$1.log
printf 'FAIL: tests/test_%s 1 - alone\n# TOTAL: 1\n# FAIL:  1\n' "\$1"
exit 1
END
  begin "$tree/scripts/test" sanitized threads plain
  finish_begun 1 && last_line '1 passed, 2 failed' || return 1
  for name in sanitized threads; do
    grep -q "^$name  *FAILED .* 0 passed, 1 failed" "$tmp/out" &&
      grep -q "^stage $name failed, exit status [12]:" "$tmp/out" &&
      grep -q "^ *FAIL: tests/test_$name 1 - alone" "$tmp/out" && grep -q "$name was here" "$tmp/out" || return 1
  done
  grep -q '^plain  *ok ' "$tmp/out" && grep -q '^failed stages: .*sanitized' "$tmp/out" &&
    grep -q '^failed stages: .*threads' "$tmp/out"
}

# These two work in one folder.
one_at_a_time_in_a_folder() {
  cat >"$tree/mood" <<END
mkdir $tmp/busy || exit 1
sleep 1
rmdir $tmp/busy
printf '# TOTAL: 1\n# PASS:  1\n'
END
  begin "$tree/scripts/test" dist plain
  finish_begun 0 && last_line '2 passed, 0 failed'
}

# A stage that breaks outside of a test.
says_what_broke() {
  printf 'echo "mood.c:7: error: no moon" >&2\nexit 2\n' >"$tree/mood"
  begin "$tree/scripts/test" plain
  finish_begun 1 && last_line '0 passed, 1 failed' && tail -n 12 "$tmp/out" | grep -q 'no moon'
}

one_at_a_time() {
  endless
  begin "$tree/scripts/test" plain
  within 60 all_run plain || { cat "$tmp/out" && return 1; }
  status=0
  "$tree/scripts/test" plain >"$tmp/second" 2>&1 || status=$?
  cat "$tmp/second"
  [ "$status" = 3 ] && grep -q "process $begun\$" "$tmp/second" && ! is_gone "$begun"
}

# ended_by SIGNAL STATUS: the run that goes on, and all that it started.
ended_by() {
  kill -s "$1" "$begun"
  finish_begun "$2" && within 5 all_gone
}

# begins_and_ends_by SIGNAL STATUS STAGE...: of one, or of two that run at once.
begins_and_ends_by() {
  signal=$1 wanted=$2
  shift 2
  endless
  begin "$tree/scripts/test" "$@"
  within 60 all_run "$@" && ended_by "$signal" "$wanted"
}

# As under nohup; and nobody has a terminal here.
hangup_is_ignored() {
  cat >"$tree/mood" <<END
echo 1 >$tmp/process.mood
while [ ! -f $tmp/go ]; do sleep 0.1; done
printf '# TOTAL: 1\n# PASS:  1\n'
END
  rm -f "$tmp/process".*
  setsid env --default-signal=INT,TERM --ignore-signal=HUP "$tree/scripts/test" plain >"$tmp/out" 2>&1 &
  begun=$!
  within 60 test -s "$tmp/process.mood" || { cat "$tmp/out" && return 1; }
  kill -s HUP "$begun"
  : >"$tmp/go"
  finish_begun 0 && last_line '1 passed, 0 failed'
}

# A guest that runs until it is ended.
script "$tmp/bin/qemu-system-x86_64" <<END
[ "\$1" != -netdev ] || { echo stream; exit; }
echo \$\$ >$tmp/process.guest.\$\$
exec sleep 1000
END
script "$tmp/bin/rdma" </dev/null

# A signal to its whole group, at moments that differ: before, while and after it boots.
guests_end() {
  rm -f "$tmp/process".*
  printf '#!/bin/sh\necho %s/image\n' "$tmp" >"$tree/tests/softroce/image"
  mkdir "$tmp/own"
  for tenths in 0 1 2 3 4 5 6 7; do
    begin env PATH="$tmp/bin:$PATH" TMPDIR="$tmp/own" "$tree/tests/softroce/real" --hosts 2 true
    case $tenths in
      7) within 20 test -n "$(find "$tmp" -maxdepth 1 -name 'process.guest.*')" ;;
      *) sleep "0.$tenths" ;;
    esac
    within 10 kill -s TERM -- "-$begun" 2>/dev/null || return 1
    # It ends by the signal itself.
    finish_begun 143 || return 1
  done
  within 10 all_gone && within 10 silent ls -A "$tmp/own"
}

# SCRIPT ARGUMENT...: a tree that was built in place is refused, with what to do about it.
refuses_built_in_place() {
  : >"$tree/config.status"
  status=0
  (cd "$tree" && timeout 60 "$@") >"$tmp/refused" 2>&1 || status=$?
  rm "$tree/config.status"
  cat "$tmp/refused"
  [ "$status" = 1 ] && grep -q 'this tree was built in place: run make distclean' "$tmp/refused"
}

check 'scripts/demo refuses a tree that was built in place' refuses_built_in_place scripts/demo
check 'so does scripts/test' refuses_built_in_place scripts/test --quick
check 'scripts/test runs all its stages, whoever is at home' all_stages
check 'what failed is said at the end, with the end of its log' says_what_failed
check 'so is what failed in two stages at once' says_what_failed_in_both
check 'so is what broke outside of a test' says_what_broke
check 'two stages that share a folder wait for each other' one_at_a_time_in_a_folder
check 'a second run in a checkout is refused, and changes nothing' one_at_a_time
check 'SIGTERM ends all that it started' ended_by TERM 143
check 'so does an interrupt, in another stage' begins_and_ends_by INT 130 threads
check 'and of two stages that run at once' begins_and_ends_by INT 130 plain sanitized
check 'and a hangup' begins_and_ends_by HUP 129 without-verbs
check 'one that ignores hangups goes on' hangup_is_ignored
if [ "$(uname -m)" = x86_64 ] && [ -f /etc/libibverbs.d/rxe.driver ] &&
  ! [ -e /sys/class/infiniband ]; then
  check 'tests/softroce/run ends by a signal to its group, whenever it comes' guests_end
else
  skip 'tests/softroce/run ends by a signal to its group' 'no guest would be started here'
fi
finish
