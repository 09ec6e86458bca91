#!/bin/sh
# SPDX-License-Identifier: MIT
# timed.sh DRIVER ... --test-name NAME ...: the driver of a test, and its seconds and name
# as a line of the file $SLUICE_TEST_TIMES, if that is set.
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
echo "$begun $ended $name" | awk '{ printf "%.2f %s\n", $2 - $1, $3 }' >>"$SLUICE_TEST_TIMES"
exit $status
