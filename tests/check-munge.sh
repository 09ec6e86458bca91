#!/bin/sh
# SPDX-License-Identifier: MIT
# Ranks that prove by munge that they are of the same user, beside daemons of munge that
# this script starts in a folder of its own; and who is told that nothing proves it.
# shellcheck disable=SC2016 # it is the shells of the ranks that see these variables
. "${srcdir:-.}/tests/tap.sh"

ranks=tests/exchange/launch/ranks
launch=tools/sluice-launch
[ -x $ranks ] || skip_all "no $ranks was built"
[ -x $launch ] || skip_all "no $launch was built"

# Nothing of a launcher that started this script, and no secret, which sluice-launch would make.
for name in $(env | sed -n 's/^\(\(SLUICE\|OMPI\|PMI\|PMIX\|SLURM\)_[A-Za-z0-9_]*\)=.*/\1/p'); do
  unset "$name"
done
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
export SLUICE_SECRET_FILE=

# says COUNT WORDS: so often in what the ranks wrote.
says() {
  cat "$tmp/out"
  [ "$(grep -c -e "$2" "$tmp/out")" = "$1" ]
}
# start N COMMAND...: its exit status is kept, which need not be 0.
start() {
  count=$1
  shift
  timeout 120 "$launch" -n "$count" "$@" >"$tmp/out" 2>&1
  status=$?
}
# succeed N COMMAND...: and each rank opened all its exchanges.
succeed() {
  start "$@"
  says "$1" ' over TCP$' && [ "$status" = 0 ]
}
# fail WORDS N COMMAND...
fail() {
  words=$1
  shift
  start "$@"
  says 1 "$words" && [ "$status" = 1 ]
}

warned_once() {
  succeed 3 "$ranks" 3 && says 1 '^\[0\] sluice: warn: .*: nothing proves that those who connect to rank 0'
}
unwarned() {
  succeed "$@" && says 0 'nothing proves'
}
secret_of_ours() (
  unset SLUICE_SECRET_FILE
  unwarned 3 "$ranks"
)

export SLUICE_MUNGE=no
check 'without secret and munge one rank warns, once' warned_once
check 'that says what to do' says 1 'by SLUICE_SECRET_FILE'
check 'with a secret nobody warns' secret_of_ours
check 'a single rank does not warn' unwarned 1 $ranks

munged=$(PATH=$PATH:/usr/sbin:/sbin command -v munged) || munged=
daemons=
end_daemons() {
  for id in $daemons; do
    kill "$id" && wait "$id"
  done 2>/dev/null
  rm -rf "$tmp"
}
trap end_daemons EXIT
# daemon NAME: with a key of its own; its socket is in a folder that other users can enter.
daemon() {
  (umask 077 && head -c 1024 /dev/urandom >"$tmp/$1.key")
  "$munged" --foreground --force --key-file="$tmp/$1.key" --socket="$tmp/$1.socket" \
    --pid-file="$tmp/$1.pid" --log-file="$tmp/$1.log" --seed-file="$tmp/$1.seed" \
    >"$tmp/$1.out" 2>&1 &
  daemons="$daemons $!"
  i=0
  until [ -S "$tmp/$1.socket" ]; do
    i=$((i + 1))
    [ "$i" -lt 100 ] || return 1
    sleep 0.1
  done
}
why=
chmod 755 "$tmp"
if [ ! "$munged" ]; then
  why='no munged'
elif ! PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | grep -q 'libmunge\.so\.2'; then
  why='no libmunge.so.2'
elif ! daemon ours || ! daemon theirs; then
  sed 's/^/# /' "$tmp"/*.out
  why='munged does not come up here'
fi
if [ "$why" ]; then
  skip 'munge' "$why"
  finish
fi

# unlike WHICH OF_IT OF_OTHERS: the socket of that rank, and of the other one.
unlike() {
  echo "SLUICE_MUNGE=$3; [ \$SLUICE_RANK = $1 ] && SLUICE_MUNGE=$2
    export SLUICE_MUNGE; exec timeout 20 $ranks"
}
ours=$tmp/ours.socket theirs=$tmp/theirs.socket
export SLUICE_MUNGE="$ours"
check 'ranks prove by munge that they are of one user' unwarned 4 $ranks
check 'in each exchange anew' unwarned 3 $ranks 3
check 'a file of a secret goes before munge' secret_of_ours
check 'a rank without munge is refused' fail 'rank 0 at [0-9.:]* has munge.*rank 1 has none' \
  2 sh -c "$(unlike 1 no "$ours")"
check 'rank 0 without munge is refused' fail 'rank 1 has munge.*rank 0 at [0-9.:]* has none' \
  2 sh -c "$(unlike 0 no "$ours")"
check 'a rank of another realm is refused' fail 'credential of rank 0 cannot be opened' \
  2 sh -c "$(unlike 1 "$theirs" "$ours")"
if [ "$(id -u)" = 0 ] && have setpriv && setpriv --reuid 12345 --clear-groups test -x $ranks &&
  setpriv --reuid 12345 --clear-groups $ranks 2>&1 | grep -q 'nothing says which rank'; then
  check 'a rank of another user is refused' fail 'credential of rank 0 cannot be opened' \
    2 sh -c "[ \$SLUICE_RANK = 0 ] && exec timeout 20 $ranks
      exec setpriv --reuid 12345 --clear-groups $ranks"
else
  skip 'a rank of another user is refused' 'no other user can run it here'
fi
check 'a socket that is none is an error' fail 'SLUICE_MUNGE names this socket' \
  1 sh -c "SLUICE_MUNGE=/nowhere SLUICE_RANKS=2 exec $ranks"
check 'so is a word that is none' fail "SLUICE_MUNGE is 'yes', must be no, or the path" \
  1 sh -c "SLUICE_MUNGE=yes SLUICE_RANKS=2 exec $ranks"
# It never answers: nobody else is to blame, nor munge, if the deadline is nearer;
late() {
  timeout 60 "$launch" -n 1 sh -c "SLUICE_RANKS=2 exec $ranks late" >"$tmp/out" 2>&1
  says 1 'munge: its daemon does not answer$' && says 0 'did not come'
}
# and no longer than munge is given, although the deadline is further off.
stopped() {
  for id in $daemons; do
    kill -s STOP "$id"
  done
  fail 'munge: its daemon does not answer.*SLUICE_MUNGE' 1 \
    sh -c "SLUICE_RANKS=2 exec $ranks"
  result=$?
  late || result=1
  for id in $daemons; do
    kill -s CONT "$id"
  done
  return "$result"
}
check 'a daemon that does not answer is an error' stopped
finish
