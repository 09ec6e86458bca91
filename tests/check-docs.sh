#!/bin/sh
# SPDX-License-Identifier: MIT
# Names in docs/, README.md, SECURITY.md and CHANGELOG.md exist: calls, types, constants and
# environment variables, as the installed headers and the manual have them, and variables that the
# tests read. A name that ends in a star stands for all names with that beginning, of which there
# must be one. Each block of C in docs/ is a whole file, which compiles; a block with main() is also
# linked. Figures are as scripts/figure draws them, and their ratios are those of the table of
# docs/performance.md.
. "${srcdir:-.}/tests/tap.sh"

cc=${CC:-cc}
docs=$(ls "$srcdir"/docs/*.md)

# All names of the headers, the manual and the environment of tests.
{
  cat "$srcdir"/include/*.h "$srcdir"/include/sluice/*.h | grep -oE '\b(sluice|SLUICE)_[A-Za-z0-9_]+'
  for page in "$srcdir"/man/*.[1-9]; do
    page=${page##*/}
    echo "${page%.*}"
  done
  sed -n 's/^\.It Ev \([A-Z0-9_]*\).*/\1/p' "$srcdir/man/sluice_environment.7"
  find "$srcdir/tests" -name '*.c' -exec grep -ohE '"SLUICE_(FAKE|FUZZ|TEST)_[A-Z]+"' {} + | tr -d '"'
} | sort -u >"$tmp/known"

# made_up FILE: prints the names that do not exist.
made_up() {
  grep -noE '\b(sluice|SLUICE)_[A-Za-z0-9_]+\*?' "$1" | while IFS=: read -r line name; do
    case $name in
      *\*) grep -q "^${name%\*}" "$tmp/known" || echo "line $line: nothing begins with ${name%\*}" ;;
      *) grep -qx "$name" "$tmp/known" || echo "line $line: there is no $name" ;;
    esac
  done
}

# split FILE PREFIX: writes the blocks of C to PREFIX-LINE.c, and one that begins with the name of a
# header also to that.
split() {
  awk -v prefix="$2" -v folder="$tmp" '
    /^```/ { file = file == "" && $0 == "```c" ? prefix "-" NR + 1 ".c" : ""; next }
    file == "" { next }
    /^\/\* [a-z]+\.h: / { header = folder "/" substr($2, 1, length($2) - 1); of = file }
    { print >file }
    file == of { print >header }' "$1"
}

compiles() {
  # shellcheck disable=SC2086 # a compiler may come with options
  silent $cc -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -I"$srcdir/include" \
    ${VERBS_CFLAGS:-} -c -o "$tmp/block.o" "$1"
}

links() {
  # shellcheck disable=SC2086 # flags are words
  silent $cc ${SANITIZE:-} -pthread -o "$tmp/block" "$tmp/block.o" -Llib/.libs -lsluice
}

# docs/calls.md lists the functions of the headers.
all_listed() {
  # shellcheck disable=SC2016 # backquotes of the page
  # shellcheck disable=SC2016 # no expansions
  sed -n 's/^| `\(sluice_[a-z0-9_]*\)` | [A-Za-z_0-9]*(3) |.*/\1/p' "$srcdir/docs/calls.md" | sort >"$tmp/listed"
  "$srcdir/scripts/update-map" --list | sort | diff - "$tmp/listed"
}

drawn() {
  sh "$srcdir/scripts/figure" --print "$1" >"$tmp/drawn.svg" || return
  diff "$tmp/drawn.svg" "${1%.figure}.svg" >"$tmp/figure.diff" ||
    { head -n 4 "$tmp/figure.diff"; echo 'scripts/figure draws it anew'; return 1; }
}

# Prints the ratios of the table of docs/performance.md as a figure has them. The row of a rate has
# the inverse there, so that less is better in all rows.
measured() {
  awk -F ' *[|] *' '
    $2 == "row" { rows = $4 == "theirs"; next }
    !rows || NF < 9 || $2 ~ /^-/ { next }
    {
      split($6, ratio, /[^0-9.]+/) # begins with **
      if ($2 !~ /(^|: )(message )?rate/) print "ratio", ratio[2], ratio[3], ratio[4], $2
      else printf "ratio %.2f %.2f %.2f %s (inverse)\n", 1 / ratio[2], 1 / ratio[4], 1 / ratio[3], $2
    }' "$srcdir/docs/performance.md"
}

# Prints the rows of a figure that were not measured.
not_measured() {
  grep '^ratio ' "$srcdir/docs/figures/$1" | sort | comm -13 "$tmp/measured" -
}

# Prints the rows that are not in the whole figure.
not_drawn() {
  grep '^ratio ' "$srcdir/docs/figures/comparison.figure" | sort | comm -23 "$tmp/measured" -
  [ -s "$tmp/measured" ] || echo 'no ratios'
}

measured | sort >"$tmp/measured"
check 'calls.md lists every call' all_listed
check 'speed.figure has ratios of performance.md' silent not_measured speed.figure
check 'comparison.figure has ratios of performance.md' silent not_measured comparison.figure
check 'comparison.figure has all ratios of performance.md' silent not_drawn
for file in "$srcdir"/docs/figures/*.figure; do
  check "${file##*/} is what its SVG shows" drawn "$file"
done
for file in $docs "$srcdir/README.md" "$srcdir/CHANGELOG.md" "$srcdir/SECURITY.md"; do
  check "${file##*/} names what there is" silent made_up "$file"
done
for file in $docs; do
  name=${file##*/}
  split "$file" "$tmp/${name%.md}"
  for block in "$tmp/${name%.md}"-*.c; do
    [ -f "$block" ] || continue
    line=${block##*-}
    check "$name:${line%.c} compiles" compiles "$block"
    if grep -q '^int main(' "$block" && [ -f lib/.libs/libsluice.so ]; then
      check "$name:${line%.c} is a program" links
    fi
  done
done
# defined KIND FILE: the first number of a #define of that kind.
defined() {
  sed -nE "s/^#define ([A-Z_]+_)?$1(_[A-Z]+)? [(\"]?([0-9]+).*/\\3/p" "$srcdir/$2" | head -n 1
}

# Prints each form of docs/stability.md whose versions are not those of its source, and each source
# with such versions that it does not list.
other_versions() {
  # shellcheck disable=SC2016 # no expansions
  sed -nE 's/^\| [^|]+ \| `(([a-z]+\/)+[a-z_]+\.[ch])`[^|]* \| ([0-9]+)[^|]* \| ([0-9]+).*/\1 \3 \4/p' \
    "$srcdir/docs/stability.md" >"$tmp/forms"
  [ -s "$tmp/forms" ] || echo 'no forms'
  while read -r file version readable; do
    least=$(defined READABLE "$file")
    [ "$(defined VERSION "$file")" = "$version" ] || echo "$file is not of version $version"
    [ "${least:-$(defined OLDEST "$file")}" = "$readable" ] || [ "$file" = lib/exchange/host_file.c ] ||
      echo "$file is not readable from $readable"
  done <"$tmp/forms"
  (cd "$srcdir" && grep -rlE "^#define ([A-Z_]+_)?VERSION [(]?[0-9]" lib tools |
    xargs grep -lE "READABLE|OLDEST") |
    grep -v -x -F "$(cut -d' ' -f1 "$tmp/forms")" || true
}

check 'docs/stability.md has the versions of all forms' silent other_versions
# Prints the functions that not all of headers, pages and docs/stability.md call experimental.
other_experimental() {
  cat "$srcdir"/include/sluice/*.h | tr '\n' ' ' | grep -oE 'SLUICE_EXPERIMENTAL [^(#]*\(' |
    sed -nE 's/.*[ *](sluice_[a-z0-9_]+)\($/\1/p' | sort >"$tmp/marked"
  cat "$srcdir"/man/*.3 | awk '/^is experimental, and may change in any release\.$/ { print name }
    { name = $2 }' | sort >"$tmp/said"
  # shellcheck disable=SC2016 # no expansions
  sed -n '/^## Experimental/,/^## Deprecation/s/^| `\(sluice_[a-z0-9_]*\)` |.*/\1/p' \
    "$srcdir/docs/stability.md" | sort >"$tmp/listed"
  [ -s "$tmp/marked" ] || echo 'no marks'
  diff "$tmp/marked" "$tmp/said" || echo 'headers and pages differ'
  diff "$tmp/marked" "$tmp/listed" || echo 'headers and docs/stability.md differ'
}

# A program is warned of each experimental call that it makes, if it wants to be.
warns_of_experimental() {
  printf '#include <sluice.h>\nint main(void)\n{\n    return sluice_node_reach(0, 0, 0, 0);\n}\n' >"$tmp/call.c"
  # shellcheck disable=SC2086 # a compiler may come with options
  silent $cc -std=c11 -Werror -I"$srcdir/include" -c -o "$tmp/call.o" "$tmp/call.c" || return 1
  # shellcheck disable=SC2086 # a compiler may come with options
  $cc -std=c11 -DSLUICE_WARN_EXPERIMENTAL -I"$srcdir/include" -c -o "$tmp/call.o" "$tmp/call.c" 2>&1 |
    grep -q 'experimental: it may change or go'
}

check 'a program can be warned of experimental calls' warns_of_experimental
check 'headers, pages and docs/stability.md agree on what is experimental' silent other_experimental
finish
