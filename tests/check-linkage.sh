#!/bin/sh
# SPDX-License-Identifier: MIT
# configure refuses a machine that the library is not for; it finds the libibverbs that
# it was told to take, in each of the ways that README.md names; says why where it
# cannot; and what it wrote down serves a program.
# Other installations than the host's are made up here, of copies of it and of
# archives that hold next to nothing.
#
#   check-linkage.sh           as above
#   check-linkage.sh static    in the top of a build tree that was configured with
#                              --disable-shared --with-static-verbs=rxe, as scripts/test makes
#                              one for the guest: what a program that is linked with it has
. "${srcdir:-.}/tests/tap.sh"

unset MAKEFLAGS MFLAGS MAKELEVEL CONFIG_SITE VERBS_CFLAGS VERBS_LIBS
srcdir=$(cd "$srcdir" && pwd)
pkg_config=${PKG_CONFIG:-pkg-config}
cc=${CC:-cc}
nm=${NM:-nm}
jobs=$(nproc 2>/dev/null || echo 1)

[ ! -f "$srcdir/config.status" ] || skip_all 'the sources are configured'
version=$($pkg_config --modversion libibverbs 2>/dev/null) || skip_all 'no libibverbs'
libdir=$($pkg_config --variable=libdir libibverbs)
include=$($pkg_config --variable=includedir libibverbs)

# An installation like the host's, with a libibverbs.pc that speaks of the host's
# folders, and the same without one in the build/ of sources.
copy_rdma_core() {
  mkdir -p "$1/include" "$1/lib"
  cp -R "$include/infiniband" "$include/rdma" "$1/include"
  cp -P "$libdir"/libibverbs.so* "$1/lib"
}

# made_up_pc FOLDER VERSION
made_up_pc() {
  mkdir -p "$1"
  printf '%s\n' 'Name: libibverbs' 'Description: made up' "Version: $2" 'Libs: -libverbs' \
    >"$1/libibverbs.pc"
}

# archive FILE FLAG: the C on standard input.
archive() {
  # shellcheck disable=SC2086 # $cc may be several words
  $cc "$2" -w -c -x c -o "$1.o" - && ${AR:-ar} cr "$1" "$1.o" && rm "$1.o"
}

# archives FOLDER FLAG: what configure wants to see of libibverbs.a, and two providers.
# Their code reads a variable that it also defines, which tells -fPIE from -fPIC.
archives() {
  mkdir -p "$1/lib"
  ln -s "$tmp/prefix/include" "$1/include"
  archive "$1/lib/libibverbs.a" "$2" <<'END'
int counter, verbs_provider_none;
void *ibv_get_device_list(int *n) { return counter ? n : 0; }
void ibv_static_providers(void *unused, ...) {}
int ibv_is_fork_initialized(void) { return counter; }
void *ibv_reg_dmabuf_mr(void *a, long b, long c, long d, int e, int f) { return 0; }
long _ibv_query_gid_table(void *a, void *b, long c, int d, long e) { return 0; }
const char *ibv_node_type_str(int type) { return ""; }
END
  echo 'int verbs_provider_rxe;' | archive "$1/lib/librxe-rdmav99.a" "$2"
  echo 'int verbs_provider_mlx5;' | archive "$1/lib/libmlx5.a" "$2"
}

# In a short run the library against PREFIX takes most objects of this build, which must have the same
# features: see reuse_objects.
like_build=--without-jansson
if [ "${SLUICE_TEST_SHORT:-}" ] && [ -z "${SANITIZE:-}" ] && [ -f lib/.libs/libsluice.so ] &&
  grep -q '^#define HAVE_JANSSON 1' config.h 2>/dev/null; then
  like_build=--with-jansson
fi

# Each is a folder, and the arguments of configure in it.
cases() {
  cat <<END
default
old PKG_CONFIG_PATH=$tmp/old
old-wanted PKG_CONFIG_PATH=$tmp/old --with-verbs
missing PKG_CONFIG_LIBDIR=$tmp/nowhere PKG_CONFIG_PATH= --with-verbs
unwanted --without-verbs --with-static-verbs=rxe
prefix --with-rdma-core=$tmp/prefix --disable-static $like_build
no-pc --with-rdma-core=$tmp/tree
wrong-prefix --with-rdma-core=$tmp/old
no-prefix --with-rdma-core=$tmp/nowhere
old-prefix --with-rdma-core=$tmp/old-prefix
no-archive --with-rdma-core=$tmp/prefix --with-static-verbs=rxe
all --with-rdma-core=$tmp/pic --with-static-verbs=all
pie --with-rdma-core=$tmp/pie --with-static-verbs=rxe
pie-program --with-rdma-core=$tmp/pie --with-static-verbs=mlx5,rxe,mlx5 --disable-shared
unknown --with-rdma-core=$tmp/pic --with-static-verbs=rxe,bogus
static --with-static-verbs=rxe --disable-shared
narrow ac_cv_sizeof_void_p=4
END
}

# configure FOLDER ARGUMENT...: what it said is in FOLDER/out, its result in FOLDER/status.
cat >"$tmp/configure" <<'END'
folder=$1
shift
mkdir -p "$folder" && cd "$folder" || exit
grep -v -e pkg_cv_ -e ac_cv_env_ "$cache" >config.cache 2>/dev/null
"$srcdir/configure" --config-cache CC="$CC" CFLAGS=-O0 --without-mpi \
  --without-jansson \
  --disable-dependency-tracking "$@" >out 2>&1
echo $? >status
END

# Most of what configure finds out does not change: the first run finds it for all.
configure_all() {
  export srcdir cache="$tmp/default/config.cache" CC="$cc"
  cases | head -n 1 | (cd "$tmp" && xargs -L 1 sh configure)
  cases | tail -n +2 | (cd "$tmp" && xargs -L 1 -P "$jobs" sh configure)
}

# says FOLDER TEXT: configure succeeded, and its summary has this of verbs.
says() {
  tail -n 20 "$tmp/$1/out"
  [ "$(cat "$tmp/$1/status")" = 0 ] && grep -q -x -F -e "  verbs       $2" "$tmp/$1/out"
}

# fails FOLDER TEXT: configure ended, and gave this as the reason.
fails() {
  tail -n 3 "$tmp/$1/out"
  [ "$(cat "$tmp/$1/status")" != 0 ] && grep 'error: ' "$tmp/$1/out" | grep -q -F -e "$2"
}

# transports FOLDER TEXT: what sluice_version() would name.
transports() {
  grep TRANSPORTS "$tmp/$1/config.h"
  grep -q -x -F -e "#define TRANSPORTS \"$2\"" "$tmp/$1/config.h"
}

# pc FOLDER TEXT: a line of sluice.pc.
pc() {
  cat "$tmp/$1/lib/sluice.pc"
  sed 's/ *$//' "$tmp/$1/lib/sluice.pc" | grep -q -x -F -e "$2"
}

# alone FOLDER [--static WORD]: pkg-config has no other file than that, and it names none; the
# flags have this word.
alone() {
  ! grep -i 'requires[a-z.]*: *[a-z]' "$tmp/$1/lib/sluice.pc" || return 1
  PKG_CONFIG_LIBDIR=$tmp/nowhere PKG_CONFIG_PATH=$tmp/$1/lib \
    $pkg_config --cflags --libs ${2:+"$2"} sluice | tee "$tmp/flags"
  grep -q -w -e "${3:--lsluice}" "$tmp/flags"
}

# Takes the objects of this build for the library in FOLDER, if both are configured alike but for the
# text that names the transports. Those with that text, and some that use libibverbs, are compiled of
# the headers in FOLDER.
reuse_objects() {
  grep -v '^#define TRANSPORTS ' config.h | cmp -s - "$tmp/alike" || return 0
  (cd lib && find . \( -name '*.lo' -o -name '*.o' -o -name .dirstamp \) -exec tar -cf - {} +) |
    tar -C "$tmp/$1/lib" -xf - &&
    (cd "$tmp/$1/lib" && rm -f base/*version.lo transport/verbs/device/*.lo && find . -name '*.lo' -exec touch {} +)
}

# The headers are in another folder in each run, which ccache, if it is used, must not see.
build_library() {
  grep -v '^#define TRANSPORTS ' "$tmp/$1/config.h" >"$tmp/alike"
  [ "$like_build" = --without-jansson ] || reuse_objects "$1" || return 1
  CCACHE_BASEDIR=$tmp "${MAKE:-make}" -s -j "$jobs" -C "$tmp/$1" lib/libsluice.la \
    LIBTOOL="/bin/sh $srcdir/scripts/libtool ./libtool"
}

cat >"$tmp/program.c" <<'END'
#include <stdio.h>
#include <sluice.h>

int main(void)
{
    struct sluice_device_list *devices = sluice_device_list_get();

    if (devices == NULL)
        return 1;
    sluice_device_list_free(devices);
    puts(sluice_version());
    return 0;
}
END

# program FOLDER OPTION...: made of the library in FOLDER as a user would.
program() {
  folder=$tmp/$1
  shift
  # shellcheck disable=SC2046,SC2086 # flags are words
  $cc -o "$folder/program" "$tmp/program.c" $(PKG_CONFIG_PATH=$folder/lib $pkg_config \
    --define-variable=libdir="$folder/lib/.libs" \
    --define-variable=includedir="$srcdir/include" --cflags --libs sluice) "$@"
}

# prints FOLDER TEXT: so does its program.
prints() {
  LD_LIBRARY_PATH=$tmp/$1/lib/.libs timeout 60 "$tmp/$1/program" >"$tmp/printed"
  status=$?
  echo "exit status $status"
  cat "$tmp/printed"
  [ "$status" = 0 ] && grep -q -x -F -e "${VERSION:-1.0.0} ($2)" "$tmp/printed"
}

# loads FOLDER: the libibverbs that its program would start with.
loads() {
  LD_LIBRARY_PATH=$tmp/$1/lib/.libs ldd "$tmp/$1/program" |
    sed -n 's/^.*libibverbs.*=> \([^ ]*\) .*$/\1/p'
}

loads_the_copy() {
  loads prefix
  [ "$(loads prefix)" = "$tmp/prefix/lib/libibverbs.so.1" ]
}

loads_none() {
  silent loads static
}

# Without a reference to it, the linker would have left the provider in its archive.
holds_the_provider() {
  $nm "$tmp/static/program" | grep verbs_provider_
  $nm "$tmp/static/program" | grep -q ' verbs_provider_rxe$'
}

if [ "${1:-}" = static ]; then
  ln -s "$PWD" "$tmp/static"
  check 'a program is built with the static library' program static
  check 'it loads no libibverbs' loads_none
  check 'it holds the provider' holds_the_provider
  check 'it names the provider' prints static "verbs $version static rxe, soft"
  rm -f program
  finish
fi

copy_rdma_core "$tmp/prefix"
copy_rdma_core "$tmp/tree/build"
mkdir "$tmp/prefix/lib/pkgconfig"
cp "$libdir/pkgconfig/libibverbs.pc" "$tmp/prefix/lib/pkgconfig"
made_up_pc "$tmp/old" 1.8.28
made_up_pc "$tmp/old-prefix/lib/pkgconfig" 1.12.34.0
cp -R "$tmp/prefix/include" "$tmp/old-prefix"
cp -P "$tmp/prefix/lib"/libibverbs.so* "$tmp/old-prefix/lib"
archives "$tmp/pic" -fPIC
archives "$tmp/pie" -fPIE
made_up_pc "$tmp/pic/lib/pkgconfig" 1.99.9
made_up_pc "$tmp/pie/lib/pkgconfig" 1.99.9
configure_all

check 'a machine of 32 bits is refused' \
  fails narrow "sluice needs pointers of 8 bytes, and those of $cc have 4"
check 'pkg-config finds libibverbs' says default "$version, shared, in $libdir, found by pkg-config"
check 'its users need no libibverbs.pc' alone default
check 'with its archive they link libibverbs nevertheless' alone default --static -libverbs
check 'one that is too old is left out' \
  says old 'no (libibverbs 1.8.28 is too old: 1.13 or newer is needed)'
check 'the text names soft alone' transports old soft
check 'one that is too old but wanted is an error' fails old-wanted 'libibverbs 1.8.28 is too old'
check 'a missing one that is wanted is an error' fails missing 'does not find libibverbs'
check 'none and a certain one is an error' fails unwanted 'contradicts'

check 'PREFIX' says prefix "$version, shared, in $tmp/prefix/lib"
check 'PREFIX without libibverbs.pc, in build/' says no-pc "$version, shared, in $tmp/tree/build/lib"
check 'an archive of sluice brings PREFIX along' pc no-pc \
  "Libs.private: -lsodium -pthread -L$tmp/tree/build/lib -libverbs -Wl,-rpath,$tmp/tree/build/lib -pthread"
check 'PREFIX with something else in it is an error' fails wrong-prefix "lib64 and lib, for libibverbs.so"
check 'PREFIX that is not there is an error' fails no-prefix 'no such folder'
check 'PREFIX that is too old is an error' fails old-prefix 'libibverbs 1.12.34.0 is too old'
check 'a library against PREFIX is built' build_library prefix
check 'a program is built with it' program prefix
check 'it finds PREFIX at run time' loads_the_copy
check 'it names the version' prints prefix "verbs $version, soft"

check 'no archive is an error' fails no-archive 'for libibverbs.a'
check 'all providers, position-independent' says all "1.99.9, static (mlx5 rxe), in $tmp/pic/lib"
check 'archives for programs are refused for libsluice.so' fails pie 'add --disable-shared'
check 'and are taken without it, each provider once' \
  says pie-program "1.99.9, static (mlx5 rxe), in $tmp/pie/lib"
check 'the text names the providers' transports pie-program 'verbs 1.99.9 static mlx5 rxe, soft'
check 'all is public where there is no libsluice.so' pc pie-program \
  "Libs: -L\${libdir} -lsluice -L$tmp/pie/lib -l:libmlx5.a -l:librxe-rdmav99.a -l:libibverbs.a -pthread"
check 'an unknown provider is an error that names those there are' \
  fails unknown "no provider bogus in $tmp/pic/lib, only: mlx5 rxe"

if [ -f "$libdir/libibverbs.a" ]; then
  check 'a static libibverbs' says static "$version, static (rxe), in $libdir, found by pkg-config"
else
  skip 'a static libibverbs' "no libibverbs.a in $libdir"
fi
finish
