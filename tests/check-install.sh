#!/bin/sh
# SPDX-License-Identifier: MIT
# The installed library serves a program that knows nothing but pkg-config: that of README.md is
# built and run, with the shared library and without, by itself and as some ranks. So is one that
# needs all that exchanges are made of.
. "${srcdir:-.}/tests/tap.sh"

unset MAKEFLAGS MFLAGS MAKELEVEL
root=$tmp/root
prefix=${prefix:-/usr/local}
libdir=${libdir:-$prefix/lib}

install_all() {
  "${MAKE:-make}" install DESTDIR="$root"
}

pc() {
  PKG_CONFIG_PATH=$root$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} \
    "${PKG_CONFIG:-pkg-config}" "$@"
}

# With a shared library pkg-config gets along with this file alone: libibverbs.pc and its like
# are of packages that users do not have. Archives need the libraries, but no such files.
pc_alone() {
  if [ -d "$tmp/shared-was-there" ]; then
    PKG_CONFIG_LIBDIR=$tmp/nowhere PKG_CONFIG_PATH=$root$libdir/pkgconfig \
      "${PKG_CONFIG:-pkg-config}" "$@"
  else
    pc "$@"
  fi
}

# In a DESTDIR the prefix is elsewhere than the file says.
flags() {
  pc_alone --define-variable=prefix="$root$prefix" --define-variable=libdir="$root$libdir" "$@" sluice
}

# The prefix may well be inside the build tree; nothing else may.
no_build_paths() {
  sed "s,$prefix,PREFIX,g" "$root$libdir/pkgconfig/sluice.pc" |
    { ! grep -n -F -e "$root" -e "$(pwd)" -e "$(cd "$srcdir" && pwd)"; }
}

right_version() {
  [ "$(pc --modversion sluice)" = "$VERSION" ]
}

headers_are_there() {
  for header in "$srcdir"/include/*.h "$srcdir"/include/sluice/*.h; do
    name=${header#"$srcdir"/include/}
    [ -f "$root$prefix/include/$name" ] || { echo "$name is not installed"; return 1; }
  done
}

# build SOURCE PROGRAM [--static]
build() {
  source=$1 program=$2
  shift 2
  # shellcheck disable=SC2046,SC2086 # flags are words
  ${CC:-cc} -Wall -Wextra -Werror $SANITIZE -o "$program" "$source" $(flags --cflags --libs "$@")
}

run() {
  (cd "$tmp" && LD_LIBRARY_PATH=$root$libdir timeout 60 "$@")
}

# "--exists" checks private requirements as well.
nothing_required() {
  pc_alone --exists --print-errors sluice 2>&1
  pc_alone --print-requires sluice
  pc_alone --print-requires-private sluice
}

# Shared use gets none of it.
static_flags() {
  flags --libs
  flags --libs --static
  for library in ibverbs:HAVE_VERBS sodium: jansson:HAVE_JANSSON; do
    [ -z "${library#*:}" ] || grep -q "^#define ${library#*:} 1" config.h || continue
    flags --libs --static | grep -q -e "${library%:*}" || return 1
    { ! flags --libs | grep -q -e "-l${library%:*}\b"; } || return 1
  done
}

check 'make install' install_all
[ ! -f "$root$libdir/libsluice.so" ] || mkdir "$tmp/shared-was-there"
check 'every header is installed' headers_are_there
check 'sluice.pc holds no path of the build' no_build_paths
check 'sluice.pc has the version of the package' right_version
if [ -d "$tmp/shared-was-there" ]; then
  check 'sluice.pc needs no file of another package' silent nothing_required
  check 'sluice.pc brings along what an archive needs' static_flags
else
  skip 'sluice.pc needs no file of another package' 'no shared library was built'
fi

# It has a secret if the library can have one, which pulls in what that needs.
cat >"$tmp/exchange.c" <<'EOF'
#include <errno.h>
#include <stdio.h>
#include <sluice.h>
int main(void)
{
    struct sluice_exchange_attr attr = {
        .size = sizeof(attr), .ranks = 1, .host_file = "hosts", .secret_file = "secret"};
    struct sluice_exchange *exchange = sluice_exchange_open(&attr, SLUICE_S(5));
    if (exchange == NULL)
        fprintf(stderr, "%s\n", sluice_last_error());
    int result = exchange == NULL && errno != EOPNOTSUPP;
    sluice_exchange_close(exchange);
    return result;
}
EOF
printf '{"hosts": [{"hostname": "localhost", "port": 7471, "rankid": 0}]}\n' >"$tmp/hosts"
(umask 077 && echo 'known to us alone' >"$tmp/secret")

# Ranks of a job, started by what is installed, on a host that has nothing else of it.
cat >"$tmp/rank.c" <<'EOF'
#include <stdio.h>
#include <sluice.h>
int main(void)
{
    struct sluice_exchange_info info = {.size = sizeof(info)};
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(30));
    if (exchange == NULL || sluice_exchange_query(exchange, &info) < 0 ||
        sluice_exchange_barrier(exchange, SLUICE_S(30)) < 0) {
        fprintf(stderr, "%s\n", sluice_last_error());
        return 1;
    }
    printf("rank %u of %u\n", (unsigned)info.rank, (unsigned)info.ranks);
    sluice_exchange_close(exchange);
    return 0;
}
EOF

launches() {
  run "$root$prefix/bin/sluice-launch" -n 3 "$1" >"$tmp/ranks" || return 1
  cat "$tmp/ranks"
  [ "$(sort "$tmp/ranks" | tr '\n' ' ')" = '[0] rank 0 of 3 [1] rank 1 of 3 [2] rank 2 of 3 ' ]
}

# A reader of the installed manual has the files that its pages name.
named_files_are_there() {
  doc=$root${docdir:-$prefix/share/doc/sluice}
  grep -hv '^\.\\"' "$srcdir"/man/*.[137] |
    grep -ohE '\b(docs|examples|bindings)/[A-Za-z0-9/_.-]*[a-z0-9]' | sort -u >"$tmp/named"
  cat "$tmp/named"
  [ "$(wc -l <"$tmp/named")" -ge 5 ] || return 1
  while read -r name; do
    [ -e "$doc/$name" ] || { echo "$name is not installed"; return 1; }
  done <"$tmp/named"
}
check 'the files that the manual names are installed' named_files_are_there

page_is_there() {
  [ -f "$root${mandir:-$prefix/share/man}/man1/sluice-launch.1" ]
}
check 'sluice-launch has its page' page_is_there

perf_is_there() {
  [ -f "$root${mandir:-$prefix/share/man}/man1/sluice-perf.1" ] &&
    run env SLUICE_DEVICE=soft "$root$prefix/bin/sluice-perf" --iters 10 send_lat
}
check 'sluice-perf is installed, with its page, and runs' perf_is_there
info_is_there() {
  [ -f "$root${mandir:-$prefix/share/man}/man1/sluice-info.1" ] &&
    run "$root$prefix/bin/sluice-info" build devices && run "$root$prefix/bin/sluice-info" --version
}
check 'sluice-info is installed, with its page, and runs' info_is_there

# The one of README.md.
awk '/^```c$/ { inside = !seen++; next } /^```/ { inside = 0 } inside' "$srcdir/README.md" \
  >"$tmp/readme.c"

run_alone() {
  run env SLUICE_RANK=0 SLUICE_RANKS=1 SLUICE_DEVICE=soft "$1" >"$tmp/out"
  cat "$tmp/out"
  [ "$(cat "$tmp/out")" = '0 to 0' ]
}

run_ranks() {
  run env SLUICE_DEVICE=soft "$launch" -q -n 3 "$1" | sort >"$tmp/out"
  cat "$tmp/out"
  printf '0 to %d, 1 to %d, 2 to %d\n' 0 0 0 1 1 1 2 2 2 | cmp - "$tmp/out"
}
launch=$(pwd)/tools/sluice-launch

# Short enough for a first glance: counts lines that are not empty.
is_short() {
  grep -c . "$tmp/readme.c"
  [ "$(grep -c . "$tmp/readme.c")" -le 35 ]
}
kind='with the shared library'
[ -f "$root$libdir/libsluice.so" ] || kind='without a shared library'
check 'the program of README.md is short' is_short
check "the program of README.md is built $kind" build "$tmp/readme.c" "$tmp/readme"
check "the program of README.md runs alone $kind" run_alone "$tmp/readme"
check "the program of README.md runs as some ranks $kind" run_ranks "$tmp/readme"
check "a rank of a job is built $kind" build "$tmp/rank.c" "$tmp/rank"
check 'the ranks of a job are started by sluice-launch' launches "$tmp/rank"
if [ -f "$root$libdir/libsluice.a" ]; then
  rm -f "$root$libdir"/libsluice.so*
  check 'it is built with the static library' build "$tmp/readme.c" "$tmp/static" --static
  check 'it runs with the static library' run_alone "$tmp/static"
  check 'an exchange is built with the static library' \
    build "$tmp/exchange.c" "$tmp/exchange" --static
  check 'an exchange runs with the static library' run "$tmp/exchange"
else
  skip 'it runs with the static library' 'no static library was built'
fi
finish
