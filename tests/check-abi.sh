#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that were built against the headers of tests/abi/ need not be built again:
# functions, constants, fields at the end of structs that have their size, and fields in
# the reserve of others may have come since, and limits may have risen; nothing else has
# changed. And this check would notice if it had.
. "${srcdir:-.}/tests/tap.sh"

for tool in abidiff abidw perl; do
  have $tool || skip_all "no $tool"
done
top=$(cd "$srcdir" && pwd)
known=$top/tests/abi/libsluice

write_down() {
  bash "$top/scripts/update-abi" --of "$1" "$2" "$3"
}

# grows HEADERS: the structs whose size says which fields they have.
grows() {
  grep -rhoE 'set to sizeof\(struct sluice_[a-z_]+\)' "$1" | sed 's/.*struct \(.*\))/\1/' | sort -u |
    while read -r name; do
      printf '[suppress_type]\ntype_kind = struct\nname = %s\nhas_data_member_inserted_at = end\n' "$name"
    done
}

# Structs of which programs have arrays: fields may replace the reserve at their end.
# Assertions in lib/ keep their sizes.
has_reserve='buffer_action completion handle layout remote_mr request'
# What calls accept at most. No array has such a size.
limits='MAX_PEERS MAX_RANKS EXCHANGE_MAX_BYTES NODE_ALLGATHER_BYTES NODE_ALLTOALL_BYTES BUFFER_PDS
  ALLOCATOR_MAX_ALIGN'

# uses_reserve OLD: where the reserve of each begins, in bits.
uses_reserve() {
  for name in $has_reserve; do
    begin=$(sed -n "/<class-decl name='sluice_$name' /,/<\/class-decl>/p" "$1.abi" |
      sed -n "s/.*layout-offset-in-bits='\([0-9]*\)'.*/\1/p; s/.*<var-decl name='\([^']*\)'.*/\1/p" |
      paste - - | awk '$2 ~ /^reserved/ { begin = $1 } END { print begin }')
    printf '[suppress_type]\ntype_kind = struct\nname = sluice_%s\n' "$name"
    printf 'has_data_member_inserted_between = {%s, end}\n' "${begin:?no reserve in $name}"
  done
}

# lost OLD NEW: constants that are gone or have another value, but for limits that rose.
lost() {
  awk -v limits="$limits" '
    BEGIN { split(limits, names); for (i in names) rises["SLUICE_" names[i]] = 1 }
    NR == FNR { now[$1] = $2; next }
    !($1 in now) || ($1 in rises ? now[$1] + 0 < $2 + 0 : now[$1] != $2)' "$2" "$1"
}

# kept OLD NEW HEADERS: NEW has all that OLD has.
kept() {
  { grows "$3" && uses_reserve "$1"; } >"$tmp/grows" || return 1
  status=0
  abidiff --harmless --no-added-syms --suppr "$tmp/grows" "$1.abi" "$2.abi" || status=1
  if ! lost "$1.constants" "$2.constants" >"$tmp/gone" || [ -s "$tmp/gone" ]; then
    echo 'constants that are gone, or have another value:'
    cat "$tmp/gone"
    status=1
  fi
  if [ "$status" != 0 ]; then
    echo 'If programs are to be built again because of this: scripts/update-abi, and commit'
    echo 'what it wrote by itself, with the reason.'
  fi
  return "$status"
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
  edit "$tmp/changed.map" 's/^SLUICE_0 {/SLUICE_1 {/' &&
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
finish
