#!/bin/sh
# SPDX-License-Identifier: MIT
# The library exports exactly the names in its map and its headers; names shared
# between its files, but not exported, start with slu_.
. "${srcdir:-.}/tests/tap.sh"

nm=${NM:-nm}
library=lib/.libs/libsluice.so
archive=lib/.libs/libsluice.a

# Symbols that a tool put there, such as a sanitizer's, start with two underscores.
exported() {
  $nm -D --defined-only "$library" | awk '$2 ~ /[TDBRVWi]/ { sub(/@.*/, "", $3); print $3 }' |
    grep -v -e '^__' -e '^_init$' -e '^_fini$' -e '^SLUICE_' | sort -u
}

# Calls of sluice/verbs.h may be left out of a build without verbs.
declared() {
  if [ "${VERBS:-yes}" = no ] && [ -f "$srcdir/include/sluice/verbs.h" ]; then
    grep -o 'sluice_[a-z0-9_]*(' "$srcdir/include/sluice/verbs.h" | tr -d '(' | sort -u >"$tmp/verbs"
    exported >"$tmp/exported"
    "$srcdir/scripts/update-map" --list | awk -v verbs="$tmp/verbs" -v out="$tmp/exported" '
      BEGIN {
        while ((getline name < verbs) > 0) optional[name] = 1
        while ((getline name < out) > 0) delete optional[name]
      }
      !($0 in optional)'
  else
    "$srcdir/scripts/update-map" --list
  fi
}

same() {
  diff "$tmp/left" "$tmp/right"
}

# Each object with probes has the mark of sys/sdt.h, which is weak and the same in all.
foreign_globals() {
  $nm --defined-only --extern-only "$@" |
    awk 'NF == 3 && $2 ~ /[A-Z]/ && $3 !~ /^(sluice_|slu_|__|_\.stapsdt\.base$)/ { print $3; bad = 1 } END { exit bad }'
}

"$srcdir/scripts/update-map" --list >"$tmp/left"
"$srcdir/scripts/update-map" --map >"$tmp/right"
check 'headers (<) and map (>) name the same functions: scripts/update-map' same

# The version is that which the symbol came with.
"$srcdir/scripts/update-map" --symbols >"$tmp/left"
cp "$srcdir/debian/libsluice1.symbols" "$tmp/right"
check 'map (<) and the list of Debian (>) have the same symbols: scripts/update-map' same

if [ -f "$library" ]; then
  declared >"$tmp/left"
  exported >"$tmp/right"
  check 'headers (<) and library (>) have the same functions' same
else
  skip 'headers and library have the same functions' 'no shared library was built'
fi

if [ -f "$archive" ]; then
  check 'names shared between files start with sluice_ or slu_' foreign_globals "$archive"
else
  skip 'names shared between files start with sluice_ or slu_' 'no static library was built'
fi
# Calls that post requests take these or their elements; those of prepared lists post nothing,
# those of a pool are refused where receives are of one peer, and an agent's are of two agents and
# not of a channel: test_pool and tests/agent try them.
posting() {
  awk 'BEGIN { RS = "[*]/" } { sub(/\/[*].*/, ""); print }' "$srcdir"/include/sluice/*.h | awk '
    BEGIN { RS = ";" }
    /const struct sluice_(sge|request) \*/ && match($0, /sluice_[a-z0-9_]+\(/) {
      print substr($0, RSTART, RLENGTH - 1)
    }' | grep -v -e '_list_prepare$' -e '^sluice_list_aim$' -e '^sluice_agent_' -e '_receive_any' | sort -u
}

in_table() {
  sed -n 's/^ *ROW(\([a-z0-9_]*\),.*/sluice_\1/p' "$srcdir/tests/support/forms.h" | sort
}

# The soak makes each call of channels, multichannels and scopes.
soaked() {
  {
    in_table
    sed -n 's/^ *X(\([a-z0-9_]*\)).*/sluice_\1/p
      s/^ *SOAK_EITHER(X, \([a-z0-9_]*\)).*/sluice_channel_\1\
sluice_multichannel_\1/p' "$srcdir/tests/fault/soak/calls.h"
  } | grep -E '^sluice_(prepared_)?(channel|multichannel|scope)_' | sort
}

posting >"$tmp/left"
in_table >"$tmp/right"
check 'calls that post requests (<) are rows of tests/support/forms.h (>)' same

# But for arrivals and pools, which are of channels without receives of their own; test_arrivals and
# test_pool have them.
# Histograms are compared with the counters by random sequences of test_engine.
"$srcdir/scripts/update-map" --map | grep -E '^sluice_(prepared_)?(channel|multichannel|scope)_' |
  grep -v -e '_arrivals$' -e '_histogram$' -e '_histogram_reset$' -e '_receive_any' | sort >"$tmp/left"
soaked >"$tmp/right"
check 'calls of channels and scopes (<) are those of the soak (>)' same
finish
