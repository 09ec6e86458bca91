#!/bin/sh
# SPDX-License-Identifier: MIT
# The library can be loaded late: into a process whose room for thread-local variables is used up
# but for 64 bytes, and a second time; and dlclose(3) harms nothing that is open.
. "${srcdir:-.}/tests/tap.sh"

cc=${CC:-cc}
library=$(pwd)/lib/.libs/libsluice.so.1
[ -f "$library" ] || skip_all 'no shared library was built'
[ -z "${SANITIZE:-}" ] || skip_all 'a sanitizer has variables of its own'
SLUICE_DEVICE=soft
SLUICE_MUNGE=no
export SLUICE_DEVICE SLUICE_MUNGE

# A library that takes 64 bytes, copies of it, and the program that loads them.
cat >"$tmp/room.c" <<'END'
static _Thread_local char room[64] __attribute__((tls_model("initial-exec")));
char *sluice_test_room(void);
char *sluice_test_room(void) { return room; }
END
cat >"$tmp/load.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* load PREFIX COUNT FILE...: copies 1 to COUNT, then the files. Prints how many copies it had. */
int main(int argc, char **argv)
{
    char name[4096];
    int i, j;
    for (i = 0; i < atoi(argv[2]); i++) {
        snprintf(name, sizeof name, "%s%d.so", argv[1], i);
        if (!dlopen(name, RTLD_NOW))
            break;
    }
    printf("%d\n", i);
    for (j = 3; j < argc; j++) {
        void *library = dlopen(argv[j], RTLD_NOW);
        const char *(*version)(void) =
            library ? (const char *(*)(void))dlsym(library, "sluice_version") : NULL;
        if (!version || !*version()) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    }
    return 0;
}
END
cat >"$tmp/close.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *fail_and_end(void *argument)
{
    void *(*open)(const void *, const void *) = argument;
    return open("not a device", "nor attributes");
}

int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW), *(*open)(const void *, const void *), *context;
    pthread_t thread;
    if (!library)
        return 2;
    open = (void *(*)(const void *, const void *))dlsym(library, "sluice_context_open");
    context = open(NULL, NULL);
    if (!context || pthread_create(&thread, NULL, fail_and_end, (void *)open) != 0)
        return 3;
    if (dlclose(library) != 0)
        return 4;
    /* Its thread runs, the other one ends with what the library keeps of it, and a child begins. */
    pthread_join(thread, NULL);
    usleep(20000);
    if (fork() == 0)
        _exit(0);
    return argc > 2;
}
END

build() {
  # shellcheck disable=SC2086 # $cc may be several words
  $cc -w -fPIC -shared -o "$tmp/room.so" "$tmp/room.c" &&
    $cc -w -o "$tmp/load" "$tmp/load.c" -ldl && $cc -w -o "$tmp/close" "$tmp/close.c" -ldl -lpthread
}
check 'the programs are built' build

# Bytes of all its thread-local variables; if one uses static TLS, all of them do.
few_bytes() {
  bytes=$(($(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')))
  echo "$bytes bytes"
  [ "$bytes" -gt 0 ] && [ "$bytes" -le 64 ]
}
if command -v readelf >/dev/null 2>&1; then
  check 'it has at most 64 bytes of thread-local variables' few_bytes
else
  skip 'it has at most 64 bytes of thread-local variables' 'no readelf'
fi

# Each copy is a library of its own. As many as go, and then one less.
i=0
while [ $i -lt 200 ]; do
  cp "$tmp/room.so" "$tmp/room$i.so"
  i=$((i + 1))
done
most=$("$tmp/load" "$tmp/room" 200)

beside_others() {
  echo "$most blocks of 64 bytes"
  [ "$most" -gt 0 ] && [ "$most" -lt 200 ] && "$tmp/load" "$tmp/room" $((most - 1)) "$library"
}
check 'it loads where 64 bytes are left' beside_others

# The room is measured with what the library itself needs, which may have such variables, too.
twice() {
  cp "$library" "$tmp/copy.so"
  "$tmp/load" "$tmp/room" 0 "$library" "$tmp/copy.so"
}
check 'it loads a second time' twice
check 'dlclose() with an open context is harmless' "$tmp/close" "$library"
finish
