#!/bin/sh
# SPDX-License-Identifier: MIT
# A library that was configured with --with-static-verbs drives a device on a host
# that has nothing of rdma-core: no plugins, no configuration, no libibverbs. Where
# the device is, as tests/softroce/run gives it, in the top of such a build tree:
#
#   check-static.sh DEVICE [TEST PROGRAM...]
#
# What has to be away is hidden for the command's own eyes only.
. "${srcdir:-.}/tests/tap.sh"

device=${1:?DEVICE}
shift
export SLUICE_DEVICE="$device" SLUICE_TEST_DEVICE="$device"

[ -e "/sys/class/infiniband/$device" ] || skip_all "no device $device"
have unshare || skip_all 'no unshare (util-linux)'
library=$(readlink -f "$(ldconfig -p 2>/dev/null | sed -n 's/.*libibverbs\.so\.1.*=> //p' | head -n 1)")
plugins=${library%/*}/libibverbs
[ -n "$library" ] || skip_all 'no libibverbs.so.1 to do without'
if [ "$(id -u)" = 0 ]; then as_root=; else as_root=--map-root-user; fi

# without PATH... -- COMMAND...
without() {
  # shellcheck disable=SC2016,SC2086 # the inner shell expands it; no option is no word
  unshare $as_root --mount sh -c '
    while [ "$1" != -- ]; do
      if [ -d "$1" ]; then mount -t tmpfs none "$1"; else mount --bind /dev/null "$1"; fi || exit 99
      shift
    done
    shift
    exec "$@"' without "$@"
}

without_rdma_core() {
  without /etc/libibverbs.d "$plugins" "$library" -- timeout 120 "$@"
}

# lists COUNT COMMAND...: the command is ibv_devinfo -l in some way.
lists() {
  count=$1
  shift
  "$@" 2>&1 | tee "$tmp/devices"
  grep -q "^$count HCA" "$tmp/devices"
}

# With shared libraries, the program proper is in .libs/.
no_libibverbs() {
  for file in examples/01-loopback examples/.libs/01-loopback lib/.libs/libsluice.so; do
    ! ldd "$file" 2>/dev/null | grep libibverbs || return 1
  done
}

if have ibv_devinfo; then
  check 'a program with plugins finds a device' lists '[1-9]' ibv_devinfo -l
  check 'without its plugins it finds none' lists 0 without "$plugins" /etc/libibverbs.d -- ibv_devinfo -l
else
  skip 'a program with plugins needs them' 'no ibv_devinfo (ibverbs-utils)'
fi
check 'examples/01-loopback is linked without libibverbs' no_libibverbs
check "examples/01-loopback on $device without rdma-core" without_rdma_core examples/01-loopback
for program in "$@"; do
  status=0
  without_rdma_core "$program" >"$tmp/program.out" 2>&1 || status=$?
  pass_on "$program" $status "$tmp/program.out"
done
finish
