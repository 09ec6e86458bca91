#!/bin/sh
# SPDX-License-Identifier: MIT
# Memcheck finds nothing in a program that is right, with what is installed for it.
. "${srcdir:-.}/tests/tap.sh"

cc=${CC:-cc}
library=$(pwd)/lib/.libs/libsluice.so
have valgrind || skip_all 'no valgrind'
[ -f "$library" ] || skip_all 'no shared library was built'
[ -z "${SANITIZE:-}" ] || skip_all 'valgrind runs no sanitizer'
SLUICE_DEVICE=soft LD_LIBRARY_PATH=$(pwd)/lib/.libs
export SLUICE_DEVICE LD_LIBRARY_PATH

# Two contexts, memory of malloc(3), a message, a write and a read.
cat >"$tmp/program.c" <<'END'
#include <sluice.h>
#include <stdlib.h>

#define BYTES 100000

static struct sluice_context *contexts[2];
static struct sluice_pd *pds[2];
static struct sluice_channel *channels[2];
static struct sluice_mr *mrs[2];
static struct sluice_sge sges[2];
static void *memory[2];

static int set_up(void)
{
    struct sluice_prepared_channel *prepared[2];
    struct sluice_endpoint endpoints[2];
    uint32_t all =
        SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ;
    int i;
    for (i = 0; i < 2; i++) {
        contexts[i] = sluice_context_open(NULL, NULL);
        pds[i] = sluice_pd_alloc(contexts[i]);
        prepared[i] = sluice_channel_prepare(pds[i], NULL);
        memory[i] = calloc(1, BYTES);
        mrs[i] = sluice_mr_register(pds[i], memory[i], BYTES, all);
        if (!prepared[i] || sluice_prepared_channel_endpoint(prepared[i], &endpoints[i]) != 0 ||
            sluice_mr_sge(mrs[i], 0, BYTES, &sges[i]) != 0)
            return 1;
    }
    for (i = 0; i < 2; i++)
        channels[i] = sluice_prepared_channel_handshake(prepared[i], &endpoints[!i]);
    return !channels[0] || !channels[1];
}

static int move(void)
{
    struct sluice_request receive = {
        .opcode = SLUICE_OP_RECEIVE, .sge_count = 1, .sge = sges[1]};
    struct sluice_completion completion;
    struct sluice_remote_mr remote;
    struct sluice_handle handle;
    int64_t deadline = SLUICE_S(60);
    return sluice_channel_post(channels[1], &receive, 1, deadline, &handle) != 1 ||
           sluice_channel_send(channels[0], sges, 1, deadline) != 0 ||
           sluice_channel_wait(channels[1], &handle, deadline, &completion) != 0 ||
           sluice_mr_remote(mrs[1], &remote) != 0 ||
           sluice_channel_write(channels[0], sges, 1, &remote, deadline) != 0 ||
           sluice_channel_read(channels[0], sges, 1, &remote, deadline) != 0;
}

int main(void)
{
    int i;
    if (set_up() != 0 || move() != 0)
        return 1;
    for (i = 0; i < 2; i++) {
        sluice_channel_close(channels[i]);
        if (sluice_mr_deregister(mrs[i]) != 0)
            return 1;
        free(memory[i]);
        sluice_pd_free(pds[i]);
        sluice_context_close(contexts[i]);
    }
    return 0;
}
END
build() {
  # shellcheck disable=SC2086 # $cc may be several words
  $cc -g -I"$srcdir/include" -I"include" -o "$tmp/program" "$tmp/program.c" "$library"
}
check 'the program is built' build

run() {
  SLUICE_WIRE=$1 timeout 300 valgrind --quiet --error-exitcode=9 --leak-check=full \
    --suppressions="$srcdir/lib/sluice.supp" "$tmp/program" >"$tmp/out" 2>&1
}
clean() {
  cat "$tmp/out"
  [ "$status" = 0 ]
}
for wire in shm tcp; do
  run $wire
  status=$?
  # Valgrind 3.19 gives up at what clang 14 writes for debuggers.
  if grep -q 'debuginfo reader' "$tmp/out"; then
    skip "nothing is found on $wire" 'valgrind cannot read the debug information of this compiler'
  else
    check "nothing is found on $wire" clean
  fi
done
finish
