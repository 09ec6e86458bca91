#!/bin/sh
# SPDX-License-Identifier: MIT
# Large messages where Yama forbids a process to read another one's memory, by each of its
# scopes: boots a guest, whose kernel may be told so, and there runs, as a user of no rights,
# the two programs that send such messages, and sluice-info. In the top of the build tree:
#
#   check-ptrace.sh
. "${srcdir:-.}/tests/tap.sh"

scope=/proc/sys/kernel/yama/ptrace_scope

in_guest() {
  here=$(cd "$srcdir" && pwd)
  "$here/tests/softroce/run" --env "srcdir=$here" --env TAP_EXIT=yes --env SLUICE_TEST_SHORT=1 \
    sh "$here/tests/softroce/check-ptrace.sh" guest >"$tmp/out" 2>"$tmp/err"
  status=$?
  [ "$status" != 77 ] || skip_all "$(cat "$tmp/err")"
  sed 's/^/# /' "$tmp/err"
  pass_on guest "$status" "$tmp/out"
  finish
}

# tells NUMBER: sluice-info advises to change what hinders, and names nothing that does not.
tells() {
  setpriv --reuid 65534 --regid 65534 --clear-groups tools/sluice-info --advice >"$tmp/advice" 2>&1
  cat "$tmp/advice"
  if [ "$1" = 0 ]; then
    ! grep -q '^process-vm:' "$tmp/advice"
  else
    grep -q '^process-vm: .*copied twice.*ptrace_scope=0' "$tmp/advice"
  fi
}

# with_scope NUMBER: what it is once set to 3 it stays.
with_scope() {
  if ! echo "$1" >$scope; then
    check "scope $1 can be set" false
    return
  fi
  export SLUICE_TEST_PTRACE_SCOPE="$1"
  # Where nothing is forbidden it is what each machine runs, and takes minutes in a guest.
  if [ "$1" != 0 ] || [ -z "${SLUICE_TEST_SHORT:-}" ]; then
    tests/test_forbidden >"$tmp/program.out" 2>&1
    pass_on "scope $1: test_forbidden" $? "$tmp/program.out"
  fi
  # The other scopes already forbid the reading that the filter of these tests forbids.
  without=
  [ "$1" = 0 ] || [ -z "${SLUICE_TEST_SHORT:-}" ] ||
    without=messages_are_copied_where_reading_is_forbidden
  SLUICE_TEST_WITHOUT=$without setpriv --reuid 65534 --regid 65534 --clear-groups tests/test_lent \
    >"$tmp/program.out" 2>&1
  pass_on "scope $1: test_lent" $? "$tmp/program.out"
  check "scope $1: sluice-info" tells "$1"
}

[ "${1:-}" = guest ] || in_guest
# A machine with a device of its own has no guest, and a setting that is not ours.
[ "${SOFTROCE_HOST:-}" ] || skip_all 'this is no guest: the setting of this machine stays as it is'
[ -e $scope ] || skip_all "the guest's kernel has no Yama"
# For a user of no rights the last is the one before it.
scopes='0 1'
[ "${SLUICE_TEST_SHORT:-}" ] || scopes="$scopes 2"
for number in $scopes; do
  with_scope "$number"
done
finish
