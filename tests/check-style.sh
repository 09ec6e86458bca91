#!/bin/sh
# SPDX-License-Identifier: MIT
# The look of the sources: length of lines, functions and files, the license line on top,
# and what scripts/lint says of format, scripts and spelling.
. "${srcdir:-.}/tests/tap.sh"

build=$(pwd)
cd "$srcdir" || exit 99
srcdir=.
scripts/lint --files c >"$tmp/c"
scripts/lint --files shell >"$tmp/sh"

# Each prints what breaks the rule.
long_lines() {
  xargs awk 'length > 100 { print FILENAME ":" FNR ": " length " columns" }' <"$tmp/c"
}

long_functions() {
  xargs awk '
    /^{/ { start = FNR }
    /^}/ && start {
      if (FNR - start + 1 > 80)
        print FILENAME ":" start ": a function of " FNR - start + 1 " lines"
      start = 0
    }' <"$tmp/c"
}

long_files() {
  xargs wc -l <"$tmp/c" | awk '$1 > 600 && $2 != "total" { print $2 ": " $1 " lines" }'
}

# Only the engine, and scopes, include the internals of the engine.
outsiders() {
  xargs grep -l '#include "engine/\(life\.h\|state/\|request/\|ring/\|peer/\|progress/\|post/\|poll/\)' <"$tmp/c" |
    grep -v -x -e 'lib/engine/.*' -e lib/scope/post.c -e lib/scope/report.c -e 'tests/engine/[^/]*' || :
}

# A source that no local.mk names is not built, or not in the release.
unlisted() {
  while read -r file; do
    folder=${file%/*} name=${file##*/}
    cat "$folder/local.mk" "$folder/../local.mk" "$folder/../../local.mk" 2>/dev/null |
      grep -q -F -e "/${name%.*}" || echo "$file"
  done <"$tmp/c"
}

no_license() {
  while read -r file; do
    [ "$(head -n 1 "$file")" = '/* SPDX-License-Identifier: MIT */' ] || echo "$file"
  done <"$tmp/c"
  while read -r file; do
    head -n 2 "$file" | grep -q '^# SPDX-License-Identifier: MIT$' || echo "$file"
  done <"$tmp/sh"
}

# Calls that make a descriptor stand only in files that lib/base/descriptor.h lists.
makers='accept|accept4|creat|dup|dup2|dup3|epoll_create|epoll_create1|eventfd|fanotify_init'
makers="$makers|fopen|fopen64|freopen|getaddrinfo|getifaddrs|ibv_create_comp_channel"
makers="$makers|ibv_get_device_list|ibv_open_device|if_indextoname|if_nameindex|if_nametoindex"
makers="$makers|inotify_init|inotify_init1|ioctl|memfd_create|mkostemp|mkstemp|open|open64|open_by_handle_at|openat|openat2|opendir"
makers="$makers|pidfd_getfd|pidfd_open|pipe|pipe2|popen|pthread_setname_np|rdma_create_event_channel"
makers="$makers|scandir|shm_open|signalfd|socket|socketpair|syscall|timerfd_create|tmpfile|userfaultfd"
raw_descriptors() {
  grep '^lib/' <"$tmp/c" | grep -v -x -e lib/base/descriptor.c -e lib/transport/verbs/device/open.c |
    xargs grep -n -E "(^|[^[:alnum:]_.>])($makers)\\(([^0-9]|[0-9][^)])" | grep -v -E 'SYS_(mbind|membarrier|futex)|DMA_BUF_IOCTL_SYNC|MAPPING_QUERY' || true
  xargs grep -n -E 'F_DUPFD|IBV_OPEN' <"$tmp/c" | grep '^lib/' | grep -v '^lib/base/descriptor.c:' || true
}

# sizeof(type), but sizeof expression. Not yet so: tests, bench, examples, the soft transport.
parted_sizeof() {
  types='struct|union|enum|const|unsigned|signed|void|bool|char|short|int|long|float|double|_Atomic|[a-z0-9_]*_t'
  dialect | xargs grep -n -P "\\bsizeof\\((?!\\(|($types)\\b)" || true
}

# Static functions of a file carry no prefix; those of headers are shared.
prefixed_statics() {
  grep '^lib/.*\.c$' <"$tmp/c" | xargs grep -nE '^static [^=;]*\b(slu|sluice)_[a-z0-9_]+\(' || true
}

# Texts of errors: %m is of the errno of the C library, which is not that of a simulated rank.
percent_m() {
  grep '^lib/' <"$tmp/c" | xargs grep -n '%m\>' || true
}

# Declarations stand at the head of a block, as the compiler sees them. It sees all sources of a folder
# at once: that names of different files collide does not matter here, and parsing the headers for
# each file takes ten times as long. Each folder ends with a function that breaks the rule, and that
# the compiler must find: it has then read to the end.
late_declarations() {
  flags=$(sed -n -E 's/^(VERBS|SODIUM|JANSSON|PMIX)_CFLAGS = //p' "$build/Makefile" | tr '\n' ' ')
  ! ${CC:-cc} --version | grep -q clang || flags="$flags -ferror-limit=0"
  dialect | grep '\.c$' >"$tmp/late"
  cut -d / -f 1-2 "$tmp/late" | sort -u | while read -r folder; do
    {
      grep "^$folder/" "$tmp/late" | sed 's/.*/#include "&"/'
      echo '#line 1 "end"'
      echo 'void slu_end(void) { slu_end(); int late; }'
    } >"$tmp/late.c"
    # shellcheck disable=SC2086 # a compiler may come with options
    ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -fsyntax-only -Wdeclaration-after-statement -DHAVE_CONFIG_H -I. -I"$build" \
      -Ilib -Iinclude $flags "$tmp/late.c" 2>&1 | grep 'Wdeclaration-after-statement' >"$tmp/late.found"
    grep -q '^end:1:' "$tmp/late.found" || echo "$folder was not read to its end"
    grep -v '^end:1:' "$tmp/late.found" || true
  done
}

dialect() {
  grep '^lib/' <"$tmp/c" | grep -v '^lib/transport/soft/'
}

trailing_space() {
  cat "$tmp/c" "$tmp/sh" | xargs grep -n '[[:blank:]]$' || true
}

check 'no line is over 100 columns' silent long_lines
check 'no line ends in blanks' silent trailing_space
check 'no text of the library has %m' silent percent_m
check 'no function is over 80 lines' silent long_functions
check 'no file is over 600 lines' silent long_files
check 'nothing but the engine looks into it' silent outsiders
check 'every source is in a local.mk' silent unlisted
check 'every source has its license line' silent no_license
check 'no static function has a prefix' silent prefixed_statics
check 'sizeof has parentheses around types alone' silent parted_sizeof
if [ -f "$build/config.h" ]; then
  check 'no declaration follows a statement' silent late_declarations
else
  skip 'no declaration follows a statement' 'not in a build tree'
fi
check 'no descriptor is made but as lib/base/descriptor.h says' silent raw_descriptors
export LINT_BUILD="$build"
lint format 'clang-format changes nothing'
lint shell 'shellcheck finds nothing'
lint spelling 'codespell finds nothing'
finish
