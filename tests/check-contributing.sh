#!/bin/sh
# SPDX-License-Identifier: MIT
# Each rule of CONTRIBUTING.md and docs/public-functions.md names its check, or says that it is for
# reviewers. The scripts, test programs and targets of make that these pages and docs/testing.md
# name exist. CONTRIBUTING.md has 120 lines at most, so that it is read before a first change.
. "${srcdir:-.}/tests/tap.sh"

pages="$srcdir/CONTRIBUTING.md $srcdir/docs/public-functions.md"

# rules FILE...: each item of a section whose title begins with "Rules", as one line.
rules() {
  awk '
    function done() { if (rule != "") print rule; rule = "" }
    /^## / { done(); within = $2 == "Rules" }
    within && /^(\*|[0-9]+\.) / { done(); rule = $0; next }
    within && rule != "" && /^  / { rule = rule " " $0; next }
    within { done() }
    END { done() }' "$@"
}

# shellcheck disable=SC2016 # the marks are those of the text
unchecked() {
  rules "$@" | grep -v -E '`(tests/[a-z_-]+(\.sh)?|make [a-z-]+)`|for reviewers' || true
}

# made_up FILE...: the scripts, programs and targets that they name and that do not exist.
# shellcheck disable=SC2016 # likewise
made_up() {
  grep -ohE '`(tests|scripts)/[A-Za-z0-9_./-]+( [^`]*)?`|`tests/test_[a-z_]+`' "$@" | tr -d '`' | cut -d ' ' -f 1 |
    grep -v 'NAME' | sort -u | while read -r name; do
    case $name in
      tests/test_*) [ -n "$(find "$srcdir/tests" -name "${name#tests/}.c")" ] || echo "there is no $name" ;;
      *) [ -e "$srcdir/$name" ] || echo "there is no $name" ;;
    esac
  done
  grep -ohE '`make [a-z-]+' "$@" | cut -d ' ' -f 2 | sort -u | while read -r target; do
    [ "$target" = check ] || grep -qE "^([a-z-]+ )*$target(-local)?( [a-z-]+)*:" "$srcdir/Makefile.am" "$srcdir"/*/local.mk ||
      echo "there is no target $target"
  done
}

# A text with a rule that has no check, and with names that do not exist.
# shellcheck disable=SC2016 # likewise
finds_what_is_wrong() {
  printf '## Rules\n\n* One.\n* Two, by `tests/check-nothing.sh`,\n  `make nothing`.\n' >"$tmp/wrong.md"
  unchecked "$tmp/wrong.md" >"$tmp/found"
  made_up "$tmp/wrong.md" >>"$tmp/found"
  printf '* One.\nthere is no tests/check-nothing.sh\nthere is no target nothing\n' | diff - "$tmp/found"
}

has_rules() {
  # shellcheck disable=SC2086 # they are words
  [ "$(rules $pages | wc -l)" -ge 15 ]
}

is_short() {
  [ "$(wc -l <"$srcdir/CONTRIBUTING.md")" -le 120 ]
}

check 'the pages have rules' has_rules
# shellcheck disable=SC2086 # they are words
check 'each names its check, or is for reviewers' silent unchecked $pages
# shellcheck disable=SC2086 # they are words
check 'the checks that the pages name exist' silent made_up $pages "$srcdir/docs/testing.md"
check 'CONTRIBUTING.md has at most 120 lines' is_short
check 'a rule without a check is found, and one with a check that is not there' finds_what_is_wrong
finish
