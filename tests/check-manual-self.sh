#!/bin/sh
# SPDX-License-Identifier: MIT
# That tests/check-manual.sh finds what differs between pages and headers, and names it: in a copy
# of both, in which one side alone is changed, each time of another page.
. "${srcdir:-.}/tests/tap.sh"

have perl || skip_all 'no perl'
# shellcheck disable=SC2154 # tap.sh sets it
tree=$tmp/tree
mkdir "$tree" "$tree/tests"
top=$(cd "$srcdir" && pwd)
cp -R "$top/include" "$top/man" "$tree"
ln -s "$top/lib" "$top/bindings" "$tree"
pages='sluice_channel_fd.3 sluice_channel_send.3 sluice_mr_register.3'
ln -s "$top/tests/tap.sh" "$top/tests/check-manual.sh" "$tree/tests"

compare() {
  srcdir=$tree ONLY="$pages" sh "$tree/tests/check-manual.sh" >"$tmp/compared" 2>&1
}

finds_nothing() {
  compare
  grep -v '^ok' "$tmp/compared" | grep -v '^1\.\.'
  grep -q '^1\.\.' "$tmp/compared" && ! grep -q '^not ok' "$tmp/compared"
}

# change FILE SCRIPT: by sed(1), which must change it.
change() {
  sed "$2" "$tree/$1" >"$tmp/changed" && ! cmp -s "$tmp/changed" "$tree/$1" && cp "$tmp/changed" "$tree/$1"
}

change_one_side() {
  # A prototype in a page, and one in a header.
  change man/sluice_channel_send.3 's/^\.Fa "uint32_t sge_count"$/.Fa "uint64_t sge_count"/' &&
    change include/sluice/mr.h 's/sluice_mr_length(const struct sluice_mr/sluice_mr_length(struct sluice_mr/' &&
    # An error that only a header names, one that only a page does, one that a page has lost, and
    # one that the list of all has lost.
    change include/sluice/list.h 's/and EFAULT or ENOBUFS/EXDEV, and EFAULT or ENOBUFS/' &&
    change man/sluice_device_list_get.3 's/^\.It Bq Er ENODEV$/&\
.It Bq Er EXFULL/' &&
    change man/sluice_agent_request_mr.3 's/^\.It Bq Er EDQUOT$/.It Bq Er EACCES/' &&
    change man/sluice_errors.7 '/^\.It Er ENFILE /d' &&
    # An alias that has gone from its page, and a page that would not be installed.
    change man/sluice_channel_fd.3 '/^\.Nm sluice_channel_wake ,$/d' &&
    change man/local.mk '/sluice_channel_next\.3/d' &&
    # The value of a constant, an errno value of a class, a range; and a constant of no page.
    change include/sluice/error.h 's/SLUICE_STATUS_DEADLINE = 64/SLUICE_STATUS_DEADLINE = 65/' &&
    change include/sluice/error.h 's/the device failed, EIO/the device failed, ENXIO/' &&
    change include/sluice/channel.h 's/in flight; 1\.\.16384, default 128/in flight; 1..16385, default 128/' &&
    change include/sluice/macros.h 's/^#define SLUICE_EXPORT .*/&\
#define SLUICE_NOWHERE 1/' || return 1
  compare
}

# named CHECK TEXT: this check fails, and says so.
named() {
  awk -v name="$1" -v text="$2" '
    /^(not )?ok / { mine = $1 == "not" && index($0, name) }
    mine && /^#/ && index($0, text) { found = 1 }
    END { exit !found }' "$tmp/compared" || { cat "$tmp/compared" && return 1; }
}

check 'pages and headers as they are pass' finds_nothing
check 'one side alone can be changed' change_one_side
prototypes='has the prototypes of the headers'
errors='errors in the pages, the headers and sluice_errors(7) are the same'
values='numbers, errno values, ranges and defaults are those of the headers'
check 'a prototype of a page is found' named "sluice_channel_send.3 $prototypes" \
  'page:   int sluice_channel_send(struct sluice_channel*channel,const struct sluice_sge*sges,uint64_t sge_count'
check 'so is one of a header' named "$prototypes" 'header: size_t sluice_mr_length(struct sluice_mr*mr)'
check 'an error that a header alone names is found' named "$errors" \
  'sluice_channel_list_prepare.3 lacks EXDEV, which the contract of sluice_channel_list_prepare() names'
check 'so is one that a page alone names' named "$errors" \
  'sluice_device_list_get.3: ERRORS names EXFULL, and no header does'
check 'so is one that a page has not' named "$errors" \
  'sluice_agent_request_mr.3 lacks EDQUOT, which the contract of sluice_agent_request_mr() names'
check 'so is one that sluice_errors(7) has not' named "$errors" 'ENFILE is not in sluice_errors(7)'
check 'an alias that a page has lost is found' named "sluice_channel_fd.3 $prototypes" \
  'only in SYNOPSIS: sluice_channel_wake'
check 'and again, as a function without a page' named 'every function has one page' sluice_channel_wake
check 'a page that is not installed is found' named 'man/local.mk has every page' \
  'not in man/local.mk: sluice_channel_next.3'
check 'the value of a constant is found' named "$values" 'only in a header: SLUICE_STATUS_DEADLINE 65'
check 'so is the errno value of a class' named "$values" 'only in a header: SLUICE_CLASS_DEVICE ENXIO'
check 'so is a range' named "$values" 'send_depth: no page says 1 to 16385'
check 'so is a constant that no page has' named 'every constant is in a page' 'SLUICE_NOWHERE is in no page'
finish
