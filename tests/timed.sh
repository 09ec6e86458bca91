#!/bin/sh
# SPDX-License-Identifier: MIT
# timed.sh DRIVER ... --test-name NAME ...: the driver of a test, and as a line of the file
# $SLUICE_TEST_TIMES, if that is set: its seconds, those of processors, and its name.
[ -n "${SLUICE_TEST_TIMES:-}" ] || exec "$@"
name=
last=
for word; do
  [ "$last" != --test-name ] || name=$word
  last=$word
done
read -r begun _ </proc/uptime
"$@"
status=$?
read -r ended _ </proc/uptime
# CPU time of the children of this shell, in hundredths: proc(5), cutime and cstime.
read -r own </proc/$$/stat
echo "$begun $ended $name $own" |
  awk '{ printf "%.2f %.2f %s\n", $2 - $1, ($19 + $20) / 100, $3 }' >>"$SLUICE_TEST_TIMES"
exit $status
