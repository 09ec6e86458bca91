/* SPDX-License-Identifier: MIT */
/*
 * Host files, which are written by hand: an accepted file names a host for each rank and the
 * address of rank 0; a refused one changes nothing, and sets a text.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "connect/address.h"
#include "exchange/exchange.h"
#include "fuzz.h"

const char fuzz_name[] = "host_file";

static int file; /* of memory */
static char path[32];

static void write_file(const uint8_t *data, size_t size)
{
    if (file == 0) {
        file = memfd_create("hosts", MFD_CLOEXEC);
        hold(file > 0, "%s", strerror(errno));
        snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    }
    hold(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size, "%s",
         strerror(errno));
}

static bool has_end(const char *text, size_t size)
{
    return strnlen(text, size) < size;
}

/* Reads it as this rank of ranks, both of which may be unknown. */
static void try_file(uint32_t rank, uint32_t ranks)
{
    struct slu_launch launch = {
        .rank = rank, .ranks = ranks, .source = "the fuzzer", .rank_source = "the fuzzer"};
    struct slu_launch before = launch;
    struct slu_host_port where;
    int error = slu_host_file_read(path, &launch);
    if (error != 0) {
        hold(error == -EINVAL, "%d", error);
        hold(memcmp(&launch, &before, sizeof(launch)) == 0, "something is left of it");
        fuzz_explained();
        return;
    }
    fuzz_taken++;
    hold(launch.ranks > 0 && launch.ranks <= SLUICE_MAX_RANKS && launch.rank < launch.ranks,
         "rank %u of %u", launch.rank, launch.ranks);
    hold(rank == SLU_RANK_UNKNOWN || launch.rank == rank, "rank %u", launch.rank);
    hold(ranks == 0 || launch.ranks == ranks, "%u ranks", launch.ranks);
    hold(has_end(launch.root, sizeof(launch.root)) &&
             has_end(launch.device, sizeof(launch.device)) &&
             has_end(launch.source, sizeof(launch.source)),
         "a text without end");
    hold(slu_host_port_parse(launch.root, 0, &where) == 0, "root \"%s\"", launch.root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int before;
#ifndef HAVE_JANSSON
    fuzz_taken = 1;
    return 0;
#endif
    write_file(data, size);
    before = fuzz_free_descriptor();
    try_file(0, 0);
    try_file(1, 2);
    try_file(SLU_RANK_UNKNOWN, 0);
    hold(fuzz_free_descriptor() == before, "a descriptor is left");
    return 0;
}
