#!/bin/sh
# SPDX-License-Identifier: MIT
# The same source makes the same release archive to the bit: of two clones in different folders,
# with different times, time zones, languages, masks and configurations. The files are those of git,
# as they are in this tree now.
. "${srcdir:-.}/tests/tap.sh"

top=$(cd "$srcdir" && pwd)
for tool in git autoreconf sha256sum xz; do
  have $tool || skip_all "no $tool"
done
[ -e "$top/.git" ] || skip_all 'not in git: an archive is not made of an archive here'
unset MAKEFLAGS MFLAGS MAKELEVEL SOURCE_DATE_EPOCH

# archive FOLDER OPTION...: makes the archive of a clone there.
archive() {
  folder=$1
  shift
  git clone -q --depth 1 "file://$top" "$folder" || return 1
  # shellcheck disable=SC2016 # sh expands them
  (cd "$top" && git ls-files -z --deduplicate | xargs -0 sh -c 'for file; do [ ! -f "$file" ] || printf "%s\0" "$file"; done' sh |
    tar --null -T - -cf -) | tar -xf - --no-same-permissions --touch -C "$folder" || return 1
  mkdir "$folder/build" && cd "$folder" && autoreconf -fi >/dev/null 2>&1 && cd build &&
    CONFIG_SHELL=/bin/sh ../configure --quiet "$@" >/dev/null 2>&1 &&
    XZ_OPT=-1 ${MAKE:-make} -s dist-xz >/dev/null
}

first() {
  (archive "$tmp/one")
}

# Another place, an earlier time of the files, another zone, language, mask and configuration.
second() {
  (
    umask 077
    export TZ=Pacific/Kiritimati LANG=tr_TR.UTF-8
    unset LC_ALL
    archive "$tmp/another/much deeper/place" --without-verbs --disable-static
  )
}

archive_of() {
  find "$1" -name 'sluice-*.tar.xz' | head -n 1
}

same() {
  one=$(archive_of "$tmp/one") other=$(archive_of "$tmp/another")
  sha256sum "$one" "$other"
  cmp "$one" "$other" && return 0
  for each in "$one" "$other"; do
    tar -tvf "$each" >"$each.list"
    mkdir "$each.d" && tar -xf "$each" -C "$each.d"
  done
  diff "$one.list" "$other.list" | head -n 20
  diff -rq "$one.d" "$other.d" | head -n 20
  return 1
}

owned_by_nobody() {
  tar --numeric-owner -tvf "$(archive_of "$tmp/one")" >"$tmp/listing" &&
    ! awk '{ print $2 }' "$tmp/listing" | grep -vx 0/0 &&
    [ "$(awk '{ print $4, $5 }' "$tmp/listing" | sort -u | wc -l)" = 1 ] &&
    awk '{ print $6 }' "$tmp/listing" | tr / '\001' | LC_ALL=C sort -c
}

check 'a clone makes an archive' first
check 'another one as well' second
check 'both are the same' same
check 'its files belong to 0, have one time, and are sorted' owned_by_nobody
finish
