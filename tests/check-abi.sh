#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that were built against the headers of tests/abi/ need not be built again:
# functions, constants, fields at the end of structs that have their size, and fields in
# the reserve of others may have come since, and limits may have risen; nothing else has
# changed. And this check would notice if it had.
# From 1.0.0 on also the record of the previous release holds, which tests/previous-release names.
. "${srcdir:-.}/tests/tap.sh"

for tool in abidiff abidw perl; do
  have $tool || skip_all "no $tool"
done
top=$(cd "$srcdir" && pwd)
known=$top/tests/abi/libsluice

write_down() {
  bash "$top/scripts/update-abi" --of "$1" "$2" "$3"
}

# kept OLD NEW HEADERS: NEW has all that OLD has.
kept() {
  status=0
  bash "$top/scripts/update-abi" --compare "$1" "$2" "$3" || status=1
  if [ "$status" != 0 ] && [ "$(major_of "$3")" -ge 1 ]; then
    echo 'Nothing may be changed or removed from 1.0.0 on: see docs/stability.md.'
    echo 'scripts/update-abi --report prints all differences; scripts/update-abi refuses.'
  elif [ "$status" != 0 ]; then
    echo 'If programs are to be built again because of this: scripts/update-abi, and commit'
    echo 'what it wrote by itself, with the reason.'
  fi
  return "$status"
}

major_of() {
  awk '/define SLUICE_VERSION_MAJOR / { print $3 }' "$1/sluice/version.h"
}

# A function whose prototype is not understood would be missed.
all_functions() {
  sed -n "s/.*<function-decl name='\([^']*\)'.*/\1/p" "$1" | sort >"$tmp/written"
  bash "$top/scripts/update-map" --map | diff - "$tmp/written"
}

# Each function of the dump has its version in the library.
same_versions() {
  sed -n "s/.*<elf-symbol name='\([^']*\)' version='\([^']*\)'.*/\1@@\2/p" "$known.abi" |
    sort >"$tmp/wanted"
  ${NM:-nm} -D --defined-only "$1" | awk '{ print $NF }' | sort >"$tmp/there"
  [ -s "$tmp/wanted" ] && silent comm -23 "$tmp/wanted" "$tmp/there"
}

no_paths() {
  ! grep -n '[^<]/[^>]' "$known.abi"
}

check 'the headers are written down' write_down "$top/include" "$top/lib/sluice.map" "$tmp/now"
check 'every function of the map is written down' all_functions "$tmp/now.abi"
check 'programs that are built need not be built again' kept "$known" "$tmp/now" "$top/include"
check 'what is written down has no paths in it' no_paths
if have python3; then
  check 'the bindings declare what the headers do' python3 "$top/bindings/update" --check
else
  skip 'the bindings declare what the headers do' 'no python3'
fi
if [ ! -f lib/.libs/libsluice.so ]; then
  skip 'the library has the functions in their versions' 'no shared library was built'
elif [ "${VERBS:-yes}" = no ]; then
  skip 'the library has the functions in their versions' 'built without verbs'
else
  check 'the library has the functions in their versions' same_versions lib/.libs/libsluice.so
fi

# The record of the previous release, if that promised to keep it.
read -r release revision <<END
$(grep -v '^#' "$top/tests/previous-release")
END
previous=$tmp/previous
why=
if [ "${release%%.*}" -lt 1 ] || [ "${release%%.*}" != "$(major_of "$top/include")" ]; then
  why="$release made no promise to this version"
else
  for end in abi constants; do
    git -C "$top" show "$revision:tests/abi/libsluice.$end" >"$previous.$end" 2>/dev/null ||
      why="git does not have $release here"
  done
fi
if [ -n "$why" ]; then
  skip "programs built with $release need not be built again" "$why"
else
  check "programs built with $release need not be built again" kept "$previous" "$tmp/now" \
    "$top/include"
fi

# Copies of the headers and of the map.
copy() {
  rm -rf "$tmp/changed"
  cp -R "$top/include" "$tmp/changed"
  cp "$top/lib/sluice.map" "$tmp/changed.map"
  chmod -R u+w "$tmp/changed" "$tmp/changed.map"
}

# edit FILE COMMAND: sed must find what to change.
edit() {
  sed "$2" "$1" >"$tmp/edited"
  ! cmp -s "$tmp/edited" "$1" || { echo "$1 is not what it was: $2"; return 1; }
  cp "$tmp/edited" "$1"
}

# changed HEADER COMMAND: a copy in which one header is edited.
changed() {
  copy
  edit "$tmp/changed/sluice/$1" "$2"
}

compare() {
  write_down "$tmp/changed" "$tmp/changed.map" "$tmp/then" &&
    kept "$tmp/now" "$tmp/then" "$tmp/changed"
}

# notices TEXT: the check fails, and says so.
notices() {
  ! compare >"$tmp/said" 2>&1 || return 1
  cat "$tmp/said"
  grep -q -e "$1" "$tmp/said" && grep -q 'scripts/update-abi' "$tmp/said"
}

field_gone() {
  changed exchange.h '/^    uint32_t ranks;/d' && notices "data member deletion"
}

field_between() {
  changed mr.h 's/^struct sluice_sge {/&\n    uint32_t more, and_more;/' &&
    notices "data member insertion"
}

function_gone() {
  changed channel.h '/^SLUICE_EXPORT int sluice_channel_wake(/d' &&
    edit "$tmp/changed.map" '/sluice_channel_wake;/d' &&
    notices "Removed function"
}

parameter_other() {
  changed verbs.h 's/sluice_verbs_mr(const struct sluice_mr /sluice_verbs_mr(const struct sluice_pd /' &&
    notices 'sluice_verbs_mr'
}

version_other() {
  copy
  edit "$tmp/changed.map" 's/^SLUICE_[0-9.]* {/SLUICE_99 {/' &&
    notices 'Removed function'
}

constant_other() {
  changed request.h 's/^    SLUICE_OP_READ = [0-9]*/    SLUICE_OP_READ = 77/' &&
    notices '^SLUICE_OP_READ [0-9]*$'
}

limit_lower() {
  changed multichannel.h 's/^\(#define SLUICE_MAX_PEERS\) .*/\1 1000/' &&
    notices '^SLUICE_MAX_PEERS [0-9]*$'
}

limit_higher() {
  changed multichannel.h 's/^\(#define SLUICE_MAX_PEERS\) .*/\1 1000000/' && compare
}

# A struct of attributes in place of one of information, and the reserve of a request.
fields_come() {
  changed connect.h '/^struct sluice_listen_attr {/,/^}/s/^}/    uint64_t more;\n}/' &&
    edit "$tmp/changed/sluice/request.h" \
      's/uint64_t reserved2\[2\];/uint64_t more;\n    uint64_t reserved2[1];/' &&
    compare
}

field_before_reserve() {
  changed request.h 's/^    uint64_t user_data;/    uint32_t more, and_more;/' &&
    notices 'data member'
}

additions() {
  changed channel.h 's/^SLUICE_EXPORT int sluice_channel_wake(.*/&\nSLUICE_EXPORT int sluice_more(int a);/' &&
    edit "$tmp/changed/sluice/channel.h" 's/^#define SLUICE_CHANNEL_PSN .*/&\n#define SLUICE_CHANNEL_MORE 64/' &&
    edit "$tmp/changed/sluice/scope.h" '/^struct sluice_scope_report {/,/^}/s/^}/    uint64_t more;\n}/' &&
    edit "$tmp/changed.map" 's/.*sluice_channel_wake;/&\nsluice_more;/' &&
    compare
}

# released MAJOR: the copy, and a copy of the record, are of this version.
released() {
  sed "s/^\(#define SLUICE_VERSION_MAJOR\) .*/\1 $1/" "$tmp/changed/sluice/version.h" >"$tmp/edited" &&
    cp "$tmp/edited" "$tmp/changed/sluice/version.h" &&
    sed "s/^SLUICE_[0-9.]* {/SLUICE_$1.0 {/" "$tmp/changed.map" >"$tmp/edited" &&
    cp "$tmp/edited" "$tmp/changed.map" &&
    sed "s/\(version='\|@@\)SLUICE_[0-9.]*'/\1SLUICE_$1.0'/" "$tmp/now.abi" >"$tmp/released.abi" &&
    cp "$tmp/now.constants" "$tmp/released.constants"
}

# record_again: scripts/update-abi, on that record.
record_again() {
  cp "$tmp/released.abi" "$tmp/record.abi" && cp "$tmp/released.constants" "$tmp/record.constants" &&
    bash "$top/scripts/update-abi" --record "$tmp/changed" "$tmp/changed.map" "$tmp/record"
}

record_refuses() {
  changed exchange.h '/^    uint32_t ranks;/d' && released 1 || return 1
  ! record_again >"$tmp/said" 2>&1 || return 1
  cat "$tmp/said"
  grep -q 'nothing may be changed or removed' "$tmp/said" &&
    cmp "$tmp/released.abi" "$tmp/record.abi" &&
    cmp "$tmp/released.constants" "$tmp/record.constants" &&
    ! compare >"$tmp/said" && grep -q 'Nothing may be changed or removed' "$tmp/said"
}

record_changes_before() {
  changed exchange.h '/^    uint32_t ranks;/d' && released 0 && record_again &&
    ! cmp -s "$tmp/released.abi" "$tmp/record.abi"
}

record_adds() {
  changed channel.h 's/^SLUICE_EXPORT int sluice_channel_wake(.*/&\nSLUICE_EXPORT int sluice_more(int a);/' &&
    edit "$tmp/changed.map" 's/.*sluice_channel_wake;/&\nsluice_more;/' && released 1 &&
    record_again && grep -q sluice_more "$tmp/record.abi"
}

check 'a field that is gone is noticed' field_gone
check 'a field between others is noticed' field_between
check 'a function that is gone is noticed' function_gone
check 'another type of a parameter is noticed' parameter_other
check 'another version of a function is noticed' version_other
check 'another value of a constant is noticed' constant_other
check 'a lower limit is noticed' limit_lower
check 'a limit may rise' limit_higher
check 'fields may come to attributes, and in place of a reserve' fields_come
check 'a field before a reserve is noticed' field_before_reserve
check 'a function, a constant, and a field at the end may come' additions
check 'before 1.0.0 a change is recorded' record_changes_before
check 'from 1.0.0 on no change is recorded' record_refuses
check 'from 1.0.0 on additions are recorded' record_adds
finish
