#!/bin/sh
# SPDX-License-Identifier: MIT
# GIDs of a device that several network namespaces share: a VLAN beside the interface, and a macvlan
# in a namespace like a pod. Boots a guest and makes them there. In the top of the build tree:
#
#   check-gids.sh
. "${srcdir:-.}/tests/tap.sh"

in_guest() {
  here=$(cd "$srcdir" && pwd)
  "$here/tests/softroce/run" --env "srcdir=$here" --env TAP_EXIT=yes \
    sh "$here/tests/softroce/check-gids.sh" guest >"$tmp/out" 2>"$tmp/err"
  status=$?
  [ "$status" != 77 ] || skip_all "$(cat "$tmp/err")"
  sed 's/^/# /' "$tmp/err"
  pass_on guest "$status" "$tmp/out"
  finish
}

make_interfaces() {
  ip link add link sluice0 name sluice0.20 type vlan id 20 &&
    ip address add 10.9.20.1/24 dev sluice0.20 && ip link set sluice0.20 up &&
    ip netns add pod && ip link add link sluice0 name net1 type macvlan mode bridge &&
    ip link set net1 netns pod && ip -n pod address add 10.9.30.1/24 dev net1 &&
    ip -n pod link set net1 up && ip netns add other && ip -n other link set lo up
}

# Tests that run later in this guest connect over each address of the table.
remove_interfaces() {
  ip netns delete other && ip -n pod link delete net1 && ip netns delete pod &&
    ip link delete sluice0.20 || return 1
  for _ in $(seq 50); do
    $info devices >"$tmp/lines" 2>&1
    grep -q '10\.9\.' "$tmp/lines" || return 0
    sleep 0.2
  done
  cat "$tmp/lines"
  return 1
}

# has_line WORDS COMMAND...: the command prints a line with the words, within 10 s: the kernel fills
# the table of addresses in the background.
has_line() {
  words=$1
  shift
  for _ in $(seq 50); do
    "$@" >"$tmp/lines" 2>&1
    ! grep -q -e "$words" "$tmp/lines" || return 0
    sleep 0.2
  done
  cat "$tmp/lines"
  return 1
}

[ "${1:-}" = guest ] || in_guest
[ "${SOFTROCE_HOST:-}" ] || skip_all 'this is no guest: the interfaces of this machine stay as they are'
info=tools/sluice-info
check 'a VLAN, a macvlan and namespaces can be made' make_interfaces
check 'a VLAN is named with its kind' \
  has_line '  GID [0-9]* *RoCE v2 *10.9.20.1 (sluice0.20, vlan)' $info devices
check "the table has another namespace's address, without a name" \
  has_line '  GID [0-9]* *RoCE v2 *10.9.30.1$' $info devices
check 'the address of the interface is taken' \
  has_line '\* GID [0-9]* *RoCE v2 *192.0.2.1 (sluice0)' $info devices
check 'in the other namespace its own address is taken' \
  has_line '\* GID [0-9]* *RoCE v2 *10.9.30.1 (net1' ip netns exec pod $info devices
check 'a namespace without an interface of the device takes none' \
  has_line 'no address of this network namespace.*192.0.2.1' ip netns exec other $info devices
check 'and is advised' \
  has_line '^namespace: port rxe0:1 has only GIDs of other' ip netns exec other $info --advice
# rxe of Linux 6.1 looks up all routes in the first network namespace, so that an address of another
# one carries nothing there.
check 'channels work beside the VLAN and the macvlan' \
  env CK_RUN_CASE=self SLUICE_TEST_WITHOUT=each_gid_carries_data SLUICE_TEST_DEVICE=rxe0 \
  tests/test_path
check 'they leave nothing in the table' remove_interfaces
finish
