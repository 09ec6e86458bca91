#!/bin/sh
# SPDX-License-Identifier: MIT
# The server and the client of the manual, as a reader would take them: over loopback,
# with a secret, and between two network namespaces, of which one is not reachable from
# the other, or is where another address of the name swallows everything.
. "${srcdir:-.}/tests/tap.sh"

cc=${CC:-cc}
[ -f lib/.libs/libsluice.so ] || skip_all 'no shared library was built'
libs=$(pwd)/lib/.libs

# The program of a page, without what makes it a page.
extract() {
  awk '/^\.Bd -literal/ { text = ""; on = 1; next }
    /^\.Ed/ { if (on && text ~ /\nmain\(/) printf "%s", text; on = 0 }
    on { text = text $0 "\n" }' "$srcdir/man/$1" | sed 's/\\e/\\/g' >"$tmp/$2.c"
}
is_short() {
  lines=$(wc -l <"$tmp/$1.c")
  echo "$lines lines"
  [ "$lines" -gt 10 ] && [ "$lines" -le "$2" ]
}
build() {
  # shellcheck disable=SC2086 # a compiler may come with options
  $cc -std=gnu99 -Wall -Wextra -Werror -I"$srcdir/include" -o "$tmp/$1" "$tmp/$1.c" "$libs/libsluice.so"
}

extract sluice_listen.3 server
extract sluice_connect.3 client
check 'the server has at most 160 lines' is_short server 160
check 'the client has at most 40 lines' is_short client 40
check 'the server compiles' build server
check 'the client compiles' build client

LD_LIBRARY_PATH=$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} SLUICE_DEVICE=soft
export LD_LIBRARY_PATH SLUICE_DEVICE
server=
stop_server() {
  [ -z "$server" ] || kill "$server" 2>/dev/null
  [ -z "$server" ] || wait "$server" 2>/dev/null
  server=
}
trap 'stop_server; [ -z "$ns" ] || ip netns del "$ns" 2>/dev/null; rm -rf "$tmp"' EXIT
ns=

# start ADDRESS [COMMAND...]: the server; $port is where it listens.
start() {
  address=$1
  shift
  : >"$tmp/port"
  "$@" timeout 300 "$tmp/server" "$address" 2>"$tmp/port" &
  server=$!
  port=
  for _ in $(seq 600); do
    port=$(sed -n '/^[0-9][0-9]*$/p' "$tmp/port")
    [ -n "$port" ] && return 0
    kill -0 "$server" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}
says() {
  timeout 60 "$@" >"$tmp/said" 2>&1 && grep -q '^hello, server$' "$tmp/said"
  status=$?
  cat "$tmp/said"
  return "$status"
}
many() {
  pids=
  for _ in $(seq 20); do
    timeout 60 "$tmp/client" "127.0.0.1:$port" >/dev/null &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid" || return 1; done
}
fails() {
  words=$1
  shift
  timeout 60 "$@" >"$tmp/said" 2>&1 && return 1
  cat "$tmp/said"
  grep -q "$words" "$tmp/said"
}

check 'the server listens at localhost' start localhost:0
check 'a client gets its words back' says "$tmp/client" "localhost:$port"
check 'so do twenty at once' many
stop_server

printf 'the secret of this test, and of nobody else\n' >"$tmp/secret"
printf 'another secret, and of nobody else at all\n' >"$tmp/other"
chmod 600 "$tmp/secret" "$tmp/other"
check 'the server listens with a secret' start 127.0.0.1:0 env SLUICE_SECRET_FILE="$tmp/secret"
check 'who knows it is let in' says env SLUICE_SECRET_FILE="$tmp/secret" "$tmp/client" "localhost:$port"
check 'who knows another one is not' fails 'its secret differs' \
  env SLUICE_SECRET_FILE="$tmp/other" "$tmp/client" "127.0.0.1:$port"
check 'nor is who knows none' fails 'it requires a secret' "$tmp/client" "127.0.0.1:$port"
stop_server
check 'nobody listens there any more' fails 'refused' "$tmp/client" "127.0.0.1:$port"

# Another host: a namespace behind a pair of interfaces of documentation addresses.
name=sluice-$$
link=slu$$
if [ "$(id -u)" != 0 ] || ! have ip || ! ip netns add "$name" 2>/dev/null; then
  skip 'clients of another network' 'no network namespaces can be made'
  finish
fi
ns=$name
join() {
  ip link add "$link" type veth peer name "$link"p && ip link set "$link"p netns "$ns" &&
    ip addr add 198.51.100.1/29 dev "$link" && ip link set "$link" up &&
    ip -n "$ns" addr add 198.51.100.2/29 dev "$link"p && ip -n "$ns" link set "$link"p up &&
    ip -n "$ns" link set lo up
}
check 'two networks are joined' join
check 'the server listens at all addresses' start :0
check 'a client of another network' says ip netns exec "$ns" "$tmp/client" "198.51.100.1:$port"
# Its endpoint names an address where nobody can dial it: it dials alone.
check 'and one to which there is no way back' says \
  ip netns exec "$ns" env SLUICE_TCP_ADDRESS=127.0.0.1 "$tmp/client" "198.51.100.1:$port"
# The name has an address before that of the server, which swallows all that is sent there.
printf '198.51.100.5 twofold\n198.51.100.1 twofold\n' >"$tmp/hosts"
by_name() {
  ip -n "$ns" neigh replace 198.51.100.5 lladdr 02:00:00:00:00:01 dev "$link"p nud permanent &&
    says ip netns exec "$ns" unshare -m sh -c \
      "mount --bind '$tmp/hosts' /etc/hosts && exec '$tmp/client' twofold:$port"
}
if have unshare; then
  check 'and one whose name for it has another address first' by_name
else
  skip 'and one whose name for it has another address first' 'no unshare'
fi
stop_server
# Nothing but the port of the listener can be reached, from either side.
check 'the server listens, and can be dialed nowhere else' start :0 env SLUICE_TCP_ADDRESS=127.0.0.1
check 'a client that can reach the port alone is told so' \
  fails "answered, but the channel does not connect" \
  ip netns exec "$ns" env SLUICE_TCP_ADDRESS=127.0.0.1 "$tmp/client" "198.51.100.1:$port"
stop_server
finish
