#!/bin/sh
# SPDX-License-Identifier: MIT
# The packages and recipes of packaging/ agree with the tree, as far as seconds can show: versions,
# soname, options of configure, installed programs; and docs/install.md lists each form with its
# test. scripts/test --full builds, installs and uses them: tests/packages/.
. "${srcdir:-.}/tests/tap.sh"

spec=$srcdir/packaging/rpm/sluice.spec
version=$(awk '/define SLUICE_VERSION_(MAJOR|MINOR|PATCH) / { v = v s $3; s = "." } END { print v }' \
  "$srcdir/include/sluice/version.h")
so=$(sed -n 's/.*-version-info \([0-9]*\):[0-9]*:\([0-9]*\).*/\1 \2/p' "$srcdir/lib/local.mk" |
  awk '{ print $1 - $2 }')

spec_version() {
  grep '^Version:' "$spec"
  [ "$(sed -n 's/^Version: *//p' "$spec")" = "$version" ]
}

spec_soname() {
  grep 'libsluice\.so' "$spec"
  [ "$(sed -n 's,^%{_libdir}/libsluice\.so\.\([0-9]*\)\*$,\1,p' "$spec")" = "$so" ]
}

# The programs of the tools, in the spec and as they are made.
spec_tools() {
  sed -n 's,^%{_bindir}/,,p' "$spec" | sort >"$tmp/packaged"
  sed -n 's,^bin_PROGRAMS += .*/,,p' "$srcdir"/tools/*/local.mk | sort >"$tmp/made"
  [ -s "$tmp/made" ] && diff "$tmp/made" "$tmp/packaged"
}

# rpm itself reads the spec, if it is there.
spec_parses() {
  rpmspec -P "$spec" >"$tmp/parsed" && grep -q "^Version: *$version\$" "$tmp/parsed"
}

# unknown FILE...: prints the options of configure in these files that configure does not have.
unknown() {
  cat "$srcdir/configure.ac" "$srcdir"/m4/sluice*.m4 | grep -oE 'AC_ARG_(WITH|ENABLE)\(\[[a-z-]+\]' |
    sed 's/AC_ARG_WITH(\[\(.*\)\]/with \1/; s/AC_ARG_ENABLE(\[\(.*\)\]/enable \1/' >"$tmp/options"
  # These are of libtool.
  printf 'enable %s\n' static shared >>"$tmp/options"
  grep -v '^ *#' "$@" | grep -ohE -e '--(with|without|enable|disable)-[a-z-]+' | sort -u |
    sed 's/^--with\(out\)\{0,1\}-/with /; s/^--\(en\|dis\)able-/enable /' | while read -r option; do
    grep -qx -e "$option" "$tmp/options" || echo "configure has no $option"
  done
}

finds_unknown() {
  echo './configure --with-verbs --without-moon --disable-static' >"$tmp/wrong"
  unknown "$tmp/wrong" >"$tmp/found"
  echo 'configure has no with moon' | diff - "$tmp/found"
}

# The recipes, made of an archive, which need only have the right name.
make_recipes() {
  mkdir "$tmp/archive" && echo archive >"$tmp/archive/sluice-$version.tar.xz" || return 1
  "$srcdir/scripts/recipes" "$tmp/archive/sluice-$version.tar.xz" https://example.org/sluice/ "$tmp/recipes" &&
    { ! grep -rnE '@(URL|VERSION|SHA256|SO|COMPATIBLE)@' "$tmp/recipes"; }
}

# Each has the address and the checksum of the archive, once.
filled() {
  checksum=$(sha256sum <"$tmp/archive/sluice-$version.tar.xz")
  for file in spack/package.py conda/recipe.yaml cmake/sluice.cmake meson/sluice.wrap; do
    for text in "https://example.org/sluice/sluice-$version.tar.xz" "${checksum%% *}"; do
      [ "$(grep -cF -e "$text" "$tmp/recipes/$file")" = 1 ] || { echo "$file: no $text" && return 1; }
    done
  done
}

refuses_other_archive() {
  echo archive >"$tmp/archive/sluice-9.9.9.tar.xz"
  ! "$srcdir/scripts/recipes" "$tmp/archive/sluice-9.9.9.tar.xz" https://example.org "$tmp/other"
}

spack() {
  python3 "$srcdir/tests/packages/spack.py" "$tmp/recipes/spack/package.py" "$@"
}

spack_describes() {
  spack --describe >"$tmp/described" || return 1
  cat "$tmp/described"
  grep -qx "version $version [0-9a-f]*" "$tmp/described" && grep -qx 'depends libsodium' "$tmp/described"
}

# With each of its variants, configure is given only options that it has.
spack_options() {
  for changes in '' ~verbs ~rdmacm ~jansson +probes ~static '~verbs ~jansson ~static'; do
    # shellcheck disable=SC2086 # they are words
    spack $changes >"$tmp/arguments" || return 1
    grep -q '^--' "$tmp/arguments" && silent unknown "$tmp/arguments" || return 1
  done
  spack ~verbs >"$tmp/arguments" && grep -qx -e --without-verbs "$tmp/arguments"
}

# rows: the tests that the table of docs/install.md names, one a line.
# shellcheck disable=SC2016 # the marks are those of the text
rows() {
  sed -n '/^## Other packages/,/^## /s/^| .*`\(tests\/packages\/[a-z]*\)` |$/\1/p' "$srcdir/docs/install.md"
}

# Each form is in the table, and each test of the table is there and run by scripts/test.
listed() {
  for folder in "$srcdir"/packaging/*/; do
    folder=${folder%/}
    grep -qF "\`packaging/${folder##*/}/\`" "$srcdir/docs/install.md" ||
      echo "docs/install.md has no row of packaging/${folder##*/}/"
  done
  rows | sort -u | while read -r name; do
    [ -x "$srcdir/$name" ] || echo "there is no $name"
    grep -qE "forms=\(.*\b${name##*/}\b|/packages/${name##*/} " "$srcdir/scripts/test" ||
      echo "scripts/test does not run $name"
  done
  [ "$(rows | wc -l)" -ge 5 ] || echo 'the table has less than five rows'
}

check 'the spec has the version of the tree' spec_version
check 'and its soname' spec_soname
check 'and its tools' spec_tools
if have rpmspec; then
  check 'rpm reads the spec' spec_parses
else
  skip 'rpm reads the spec' 'no rpm'
fi
check 'an option that configure does not have is found' finds_unknown
check 'the spec and build.sh give configure options that it has' silent unknown "$spec" \
  "$srcdir/packaging/conda/build.sh" "$srcdir/packaging/cmake/sluice.cmake.in" \
  "$srcdir/packaging/meson/packagefiles/sluice/meson.build.in"
check 'scripts/recipes writes the recipes, without a gap' make_recipes
check 'each has address and checksum of the archive' filled
check 'scripts/recipes refuses the archive of another version' refuses_other_archive
if have python3; then
  check 'the recipe for Spack has the version and what the library needs' spack_describes
  check 'its variants are options of configure' spack_options
else
  skip 'the recipe for Spack is executed' 'no python3'
fi
check 'docs/install.md lists each form, and its test is run' silent listed
finish
