#!/bin/sh
# SPDX-License-Identifier: MIT
# Processes with libraries of different versions talk to each other, in both directions: this one
# with the previous release, which tests/previous-release names and which is built here from git;
# and this one with a next version, which is this source with all versions of its forms raised by
# one, readable from the present ones on. And the other way: a later library whose forms cannot be
# read is refused with a text that names both versions, and never waited for. docs/stability.md
# says what peers of different versions may expect.
#
# It also runs the program that was built with the headers of the previous release with this
# library, as long as both have one soname.
#
# SLUICE_TEST_SHORT leaves out what repeats the same forms. The builds stay in versions/ of the
# build folder, until tests/previous-release or the source changes. Within a process, on the wire
# self, there is one library, and nothing to test. With SLUICE_TEST_DEVICE the wires are that
# device: tests/softroce/run --env srcdir=... --env SLUICE_TEST_DEVICE=rxe0 sh this script; then
# the builds must be there already.
. "${srcdir:-.}/tests/tap.sh"

top=$(cd "$srcdir" && pwd)
here=$PWD/versions
# Longer than the deadline of tests/versions/talk.h, at which a process that waits in vain fails.
patience=60
device=${SLUICE_TEST_DEVICE:-}

[ -z "${SANITIZE:-}" ] || skip_all 'libraries of other builds do not go with a sanitizer'
[ -f lib/.libs/libsluice.so ] || skip_all 'no shared library was built'
[ -n "$device" ] || export SLUICE_TEST_DEVICE=soft
for tool in pkg-config timeout; do
  have $tool || skip_all "no $tool"
done

read -r name revision <<END
$(grep -v '^#' "$top/tests/previous-release")
END

compiler=${CC:-cc}
case $compiler in
  *ccache*) ;;
  *) ! have ccache || compiler="ccache $compiler" ;;
esac
jobs=$(nproc 2>/dev/null || echo 2)

# folder_of VERSION: prints where its libsluice.so is.
folder_of() {
  case $1 in
    this) echo "$PWD/lib/.libs" ;;
    previous) echo "$here/previous-$revision/build/lib/.libs" ;;
    *) echo "$here/$1" ;;
  esac
}

headers_of() {
  if [ "$1" = previous ]; then
    echo "$here/previous-$revision/source/include"
  else
    echo "$top/include"
  fi
}

# The previous release as its users build it, but without optimisation.
build_previous() {
  folder=$here/previous-$revision
  [ ! -f "$(folder_of previous)/libsluice.so" ] || return 0
  rm -rf "$folder"
  mkdir -p "$folder/source" "$folder/build" &&
    git -C "$top" archive "$revision" >"$folder/source.tar" &&
    tar -xf "$folder/source.tar" -C "$folder/source" && rm "$folder/source.tar" &&
    (cd "$folder/source" && autoreconf -fi >"$folder/log" 2>&1) || return 1
  (
    unset MAKEFLAGS MFLAGS MAKELEVEL
    cd "$folder/build" &&
      CONFIG_SHELL=/bin/sh ../source/configure --quiet --disable-static --disable-probes \
        CC="$compiler" CFLAGS=-O0 >>"$folder/log" 2>&1 &&
      ${MAKE:-make} -s -j"$jobs" LIBTOOL="/bin/sh $PWD/../source/scripts/libtool ./libtool" \
        lib/libsluice.la >>"$folder/log" 2>&1
  ) || { tail -n 20 "$folder/log"; return 1; }
}

# Prints the sources that another library has of its own: those that may know the versions.
sources_with_versions() {
  headers='versions|session|greeting|negotiation|target|meeting|passage|listener/[a-z_]*|exchange/tcp'
  (cd "$top" && grep -rlE "include \"([a-z]+/)*($headers)\.h\"" lib | grep '\.c$' | sort)
}

# Makes a copy of lib/ in which no form can be read by an earlier version, nor reads one: each
# READABLE and OLDEST is VERSION.
copy_foreign() {
  mkdir -p "$1"
  cp -R "$top/lib" "$1" && chmod -R u+w "$1" || return 1
  (cd "$1" && grep -rlE '^#define [A-Z_]*(READABLE|OLDEST)' lib) >"$1/changed"
  while read -r file; do
    sed -E 's/^#define ([A-Z]+_|SLU_[A-Z]+_|)(READABLE|OLDEST)(_SOFT|_OF_[A-Z]+)? +[0-9]+$/#define \1\2\3 \1VERSION/' \
      "$1/$file" >"$1/edited" && cp "$1/edited" "$1/$file"
  done <"$1/changed"
  # A form that has no such number is one that this test does not see.
  ! grep -rnE '^#define [A-Z_]*(READABLE|OLDEST)[A-Z_]* +[0-9]+$' "$1/lib" | grep -v _AT >"$1/left" ||
    { cat "$1/left"; return 1; }
}

# build_other NAME LIB FLAG...: this library, of which the sources that know versions are compiled
# of another LIB, or with other versions.
build_other() {
  folder=$here/$1
  lib=$2
  shift 2
  if [ -f "$folder/libsluice.so" ] &&
    [ -z "$(find "$PWD/lib/.libs/libsluice.so" "$top/lib" -newer "$folder/libsluice.so" -name '*.[cho]*' | head -n 1)" ]; then
    return 0
  fi
  rm -rf "$folder"
  mkdir -p "$folder/objects"
  [ "$lib" = "$top/lib" ] || copy_foreign "${lib%/lib}" || return 1
  # The objects of this build, from which those below are left out.
  find lib -path '*/.libs/*' -name 'libsluice_la-*.o' | sort >"$folder/all"
  sources_with_versions >"$folder/sources"
  flags="-std=gnu11 -O0 -fPIC -pthread -fvisibility=hidden -fno-optimize-sibling-calls -w
    -D_GNU_SOURCE -DHAVE_CONFIG_H -I. -I$top/include -I$lib ${VERBS_CFLAGS:-}
    $(pkg-config --cflags libsodium 2>/dev/null) $(pkg-config --cflags jansson 2>/dev/null)
    $(pkg-config --cflags pmix 2>/dev/null) $*"
  # shellcheck disable=SC2086,SC2016,SC2116 # flags are words; sh expands the rest
  while read -r source; do
    object=$(dirname "$source")/.libs/libsluice_la-$(basename "$source" .c).o
    grep -qx "$object" "$folder/all" || continue
    echo "$object" >>"$folder/mine"
    printf '%s\n%s\n' "${lib%/lib}/$source" "$folder/objects/$(echo "$object" | tr / _)"
  done <"$folder/sources" |
    xargs -n 2 -P "$jobs" sh -c 'exec '"$compiler $(echo $flags)"' -c "$0" -o "$1"' || return 1
  # shellcheck disable=SC2046,SC2086 # words
  $compiler -shared -o "$folder/libsluice.so" "$folder"/objects/*.o \
    $(grep -vxFf "$folder/mine" "$folder/all") \
    -Wl,-soname,"$(soname_of lib/.libs/libsluice.so)" \
    -Wl,--version-script="$top/lib/sluice.map" -Wl,-z,nodelete -pthread \
    $(sed -n "s/^dependency_libs='\(.*\)'/\1/p" lib/libsluice.la) || return 1
  ln -sf libsluice.so "$folder/$(soname_of lib/.libs/libsluice.so)"
}

soname_of() {
  ${READELF:-readelf} -d "$1" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p'
}

# Each version has the program of its own headers.
build_talk() {
  # shellcheck disable=SC2086 # words
  $compiler -std=gnu11 -O0 -D_GNU_SOURCE -I"$(headers_of "$1")" -o "$here/talk-$1" \
    "$top"/tests/versions/*.c "$(folder_of "$1")/libsluice.so"
}

# start SIDE VERSION LIBRARY WHAT FOLDER RANK: one process; its exit status goes to a file.
start() {
  (
    LD_LIBRARY_PATH=$(folder_of "$3")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH SLUICE_RANK="$6"
    status=0
    timeout "$patience" "$here/talk-$2" "$1" "$4" "$5" >"$5/said-$6" 2>"$5/log-$6" || status=$?
    echo "$status" >"$5/status-$6"
  ) &
}

# run_pair WHAT WIRE ZERO ONE: both processes of a conversation; ZERO and ONE are versions, or
# "VERSION+LIBRARY": the program of one version with the library of another.
run_pair() {
  folder=$tmp/run
  rm -rf "$folder"
  mkdir "$folder"
  ranks=2
  [ "$1" != relay ] || ranks=34
  (
    export SLUICE_WIRE="$2" SLUICE_RANKS="$ranks" SLUICE_JOB=versions SLUICE_LOG=warn
    [ -z "$device" ] || unset SLUICE_WIRE
    SLUICE_ROOT=@$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
    export SLUICE_ROOT
    SLUICE_DEVICE=$SLUICE_TEST_DEVICE
    export SLUICE_DEVICE
    rank=0
    while [ "$rank" -lt "$ranks" ]; do
      version=$3
      [ $((rank % 2)) = 0 ] || version=$4
      start $((rank % 2)) "${version%+*}" "${version#*+}" "$1" "$folder" "$rank"
      rank=$((rank + 1))
    done
    wait
  )
}

show() {
  for file in "$tmp"/run/said-* "$tmp"/run/log-*; do
    [ ! -s "$file" ] || sed "s/^/$(basename "$file"): /" "$file"
  done
}

# They talk, and all bytes are right.
talks() {
  run_pair "$@"
  for status in "$tmp"/run/status-*; do
    [ "$(cat "$status")" = 0 ] || { show; return 1; }
  done
  # A wire that falls back is none that was tested.
  if [ "$2" = shm ] && grep -q '^shares nothing' "$tmp"/run/said-*; then
    echo 'they do not share memory' && show
    return 1
  fi
}

# refuses WHAT WIRE ZERO ONE TEXT: neither side talks, and the text of one matches. A listener and
# rank 0 wait on, for others may come; the rest do not wait until their deadlines.
refuses() {
  TALK_SECONDS=2 run_pair "$1" "$2" "$3" "$4"
  show >"$tmp/shown"
  cat "$tmp/shown"
  ! grep -q -e '^said-[0-9]*: ok' -e '^said-[0-9]*: .*the other process has not' "$tmp/shown" &&
    grep -q "^said-.*$5" "$tmp/shown"
}

# A program finds what it was linked with.
uses_library() {
  LD_LIBRARY_PATH=$(folder_of "$2") "$here/talk-$1" 2>&1 | grep -q '^usage'
}

wires='shm tcp'
forms='pair connect agent buffer exchange node lazy'
if [ -n "$device" ]; then
  wires=$device
elif [ -z "${SLUICE_TEST_SHORT:-}" ]; then
  forms="$forms striped relay"
fi

# expect ZERO ONE WHAT WIRE: prints what the two do: "talk", or "refuse TEXT". All talk that can;
# a form that changes on purpose has a line here, and goes when both releases have the new form.
expect() {
  case "$1 $2 $3 $4" in
    'foreign foreign '*) echo talk ;;
    'foreign this connect '* | 'this foreign connect '* | *'foreign'*' agent '* | *'foreign'*' buffer '*)
      echo 'refuse version [0-9]* of the greeting, readable from version [0-9]* on' ;;
    *foreign*' exchange '* | *foreign*' relay '* | *foreign*' node '* | *foreign*' lazy '*)
      echo 'refuse version [0-9]*.* readable from version [0-9]*' ;;
    # In a lazy node of 0.9, barriers go along another tree.
    'previous this lazy '* | 'this previous lazy '*)
      echo 'refuse version [0-9]* of its form.* from version [0-9]*' ;;
    *foreign*) echo 'refuse by version [0-9]* of its form.* knows version [0-9]*' ;;
    *) echo talk ;;
  esac
}

# test_pair ZERO ONE WHAT...
test_pair() {
  zero=$1 one=$2
  shift 2
  for what in "$@"; do
    for wire in $wires; do
      case $what:$wire in exchange:tcp | relay:tcp) continue ;; esac
      expected=$(expect "$zero" "$one" "$what" "$wire")
      case $expected in
        talk) check "$what over $wire: $zero with $one" talks "$what" "$wire" "$zero" "$one" ;;
        *) check "$what over $wire: $zero and $one refuse each other, with both versions" \
          refuses "$what" "$wire" "$zero" "$one" "${expected#refuse }" ;;
      esac
    done
  done
}

# There is no compiler's time in a guest, nor a place to write to.
if [ -n "$device" ]; then
  [ -f "$here/talk-previous" ] || skip_all 'run this check without a device first: it builds'
  build_talk() { test -f "$here/talk-$1"; }
  build_other() { test -f "$here/$1/libsluice.so"; }
else
  mkdir -p "$here"
fi

check 'the program builds with this library' build_talk this
# The next version; and one whose forms this library cannot read.
check 'a next version of the library builds' build_other next "$top/lib" -DSLU_VERSIONS_NEXT=1
check 'and its program' build_talk next
check 'a version that cannot be read builds' build_other foreign "$here/foreign/source/lib" \
  -DSLU_VERSIONS_NEXT=1
check 'and its program' build_talk foreign

# shellcheck disable=SC2086 # words
{
  test_pair next this $forms
  test_pair this next $forms
  if [ -z "${SLUICE_TEST_SHORT:-}" ]; then
    test_pair next next $forms
    test_pair foreign foreign $forms
  fi
  all_wires=$wires
  wires=${wires%% *}
  test_pair foreign this pair connect exchange
  test_pair this foreign pair connect exchange
  wires=$all_wires
}

why=
if [ ! -f "$(folder_of previous)/libsluice.so" ]; then
  have autoreconf || why='no autoreconf'
  have git && git -C "$top" rev-parse --git-dir >/dev/null 2>&1 || why='not in git: an archive has no history'
  [ -n "$why" ] || git -C "$top" cat-file -e "$revision^{commit}" 2>/dev/null ||
    why="the clone does not have commit $revision, of $name: it is shallow"
fi
if [ -n "$why" ]; then
  skip "this version with $name" "$why"
  finish
fi

check "$name builds" build_previous
check 'and its program' build_talk previous
# shellcheck disable=SC2086 # words
{
  test_pair previous this $forms
  test_pair this previous $forms
}
if [ "$(soname_of "$(folder_of previous)/libsluice.so")" != "$(soname_of lib/.libs/libsluice.so)" ]; then
  skip "a program of $name with this library" 'the soname is another one on purpose'
  finish
fi
check "the program of $name starts with this library" uses_library previous this
for what in $forms; do
  for wire in $wires; do
    check "$what over $wire: the program of $name with this library" \
      talks "$what" "$wire" previous+this this
  done
done
finish
