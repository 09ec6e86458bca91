#!/bin/sh
# SPDX-License-Identifier: MIT
# Each rule of CONTRIBUTING.md names what checks it, or says that it is for reviewers; and what it
# names exists: scripts, programs of tests, targets of make.
. "${srcdir:-.}/tests/tap.sh"

# rules FILE: each rule, and what a new function comes with, as one line.
rules() {
  awk '
    function done() { if (rule != "") print rule; rule = "" }
    /^## / { done(); within = $2 == "Rules" }
    within && /^(\*|[0-9]+\.) / { done(); rule = $0; next }
    within && rule != "" && /^  / { rule = rule " " $0; next }
    within { done() }
    END { done() }' "$1"
}

# shellcheck disable=SC2016 # the marks are those of the text
unchecked() {
  rules "$1" | grep -v -E '`(tests/[a-z_-]+(\.sh)?|make [a-z-]+)`|for reviewers' || true
}

# made_up FILE: what it names of these and is not there.
# shellcheck disable=SC2016 # likewise
made_up() {
  grep -oE '`(tests|scripts)/[A-Za-z0-9_./-]+( [^`]*)?`|`tests/test_[a-z_]+`' "$1" | tr -d '`' | cut -d ' ' -f 1 |
    grep -v 'NAME' | sort -u | while read -r name; do
    case $name in
      tests/test_*) [ -n "$(find "$srcdir/tests" -name "${name#tests/}.c")" ] || echo "there is no $name" ;;
      *) [ -e "$srcdir/$name" ] || echo "there is no $name" ;;
    esac
  done
  grep -oE '`make [a-z-]+' "$1" | cut -d ' ' -f 2 | sort -u | while read -r target; do
    [ "$target" = check ] || grep -qE "^([a-z-]+ )*$target(-local)?( [a-z-]+)*:" "$srcdir/Makefile.am" "$srcdir"/*/local.mk ||
      echo "there is no target $target"
  done
}

# Of a text that is wrong in both ways.
# shellcheck disable=SC2016 # likewise
finds_what_is_wrong() {
  printf '## Rules\n\n* One.\n* Two, by `tests/check-nothing.sh`,\n  `make nothing`.\n' >"$tmp/wrong.md"
  unchecked "$tmp/wrong.md" >"$tmp/found"
  made_up "$tmp/wrong.md" >>"$tmp/found"
  printf '* One.\nthere is no tests/check-nothing.sh\nthere is no target nothing\n' | diff - "$tmp/found"
}

has_rules() {
  [ "$(rules "$srcdir/CONTRIBUTING.md" | wc -l)" -ge 15 ]
}

check 'CONTRIBUTING.md has rules' has_rules
check 'each names its check, or is for reviewers' silent unchecked "$srcdir/CONTRIBUTING.md"
check 'the checks that it names exist' silent made_up "$srcdir/CONTRIBUTING.md"
check 'a rule without a check is found, and one with a check that is not there' finds_what_is_wrong
finish
