/* SPDX-License-Identifier: MIT */
/*
 * A cache of keys and values in blocks, as servers of language models have it. Each owner
 * publishes a pool of blocks, and a table maps each sequence to blocks of owners. A reader
 * fetches whole sequences, whose blocks are scattered over all owners, in one batch each, and
 * checks every block: first one sequence after the other, and then each block as it arrives,
 * while those of the next sequence are in flight.
 *
 *   15-kv-blocks [-b BLOCK BYTES] [-n OWNERS] [-r SEQUENCES]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#include "workers.h"

#define BLOCKS 256u  /* in the pool of an owner */
#define SEQUENCE 64u /* blocks of a sequence */
#define DEADLINE SLUICE_S(30)

struct options {
    size_t block;
    uint32_t owners, sequences;
};

struct device {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_buffer_service *service;
};

struct reader {
    struct device device;
    struct options options;
    struct sluice_mr *memory; /* for two sequences */
    double in_turn;           /* seconds for all sequences and checks, one after the other */
    struct sluice_buffer_handle pools[MAX_PROCESSES];
};

static int open_device(struct device *device)
{
    device->context = sluice_context_open(NULL, NULL);
    device->pd = device->context != NULL ? sluice_pd_alloc(device->context) : NULL;
    device->service = device->pd != NULL ? sluice_buffer_service_open(&device->pd, 1, NULL) : NULL;
    return device->service != NULL ? 0 : complain("set up", "a service");
}

static void close_device(struct device *device)
{
    sluice_buffer_service_close(device->service);
    sluice_pd_free(device->pd);
    sluice_context_close(device->context);
}

/* Returns the value of every byte of a block. */
static uint8_t content(uint32_t owner, uint32_t block)
{
    return (uint8_t)(owner * 37 + block * 11 + 1);
}

/* The message to an owner. It publishes its pool, and then does nothing until the end. */
struct part {
    uint32_t owner;
    uint64_t block;
};

static int own(struct device *device, const struct part *part, int socket)
{
    struct sluice_buffer_handle handle;
    struct sluice_buffer *pool = sluice_buffer_publish(device->service, NULL, BLOCKS * part->block,
                                                       SLUICE_ACCESS_REMOTE_READ);
    char end;
    int result = -1;

    if (pool == NULL || sluice_buffer_export(pool, &handle) != 0)
        return complain("owner", "publish");
    for (uint32_t block = 0; block < BLOCKS; block++)
        memset((char *)sluice_buffer_addr(pool) + block * part->block, content(part->owner, block),
               part->block);
    if (give(socket, &handle, sizeof(handle)) == 0)
        result = take(socket, &end, 1);
    sluice_buffer_release(pool);
    return result;
}

static int run_owner(int socket)
{
    struct device device = {0};
    struct part part;
    int result = take(socket, &part, sizeof(part));

    if (result == 0)
        result = open_device(&device);
    if (result == 0)
        result = own(&device, &part, socket);
    close_device(&device);
    return result;
}

static int meet_owners(struct reader *reader, const struct workers *workers)
{
    for (uint32_t i = 1; i < workers->count; i++) {
        const struct part part = {.owner = i, .block = reader->options.block};

        if (give(workers->sockets[i], &part, sizeof(part)) != 0 ||
            take(workers->sockets[i], &reader->pools[i], sizeof(reader->pools[i])) != 0)
            return -1;
    }
    return 0;
}

/* The table: the blocks of a sequence are at all owners in turn, anywhere in their pools. */
static uint32_t owner_of(const struct reader *reader, uint32_t sequence, uint32_t at)
{
    return 1 + (sequence + at) % reader->options.owners;
}

static uint32_t block_of(uint32_t sequence, uint32_t at)
{
    return (sequence * 7919u + at * 104729u) % BLOCKS;
}

/* Returns the memory of a block; sequences use the two halves in turn. */
static char *place_of(const struct reader *reader, uint32_t sequence, uint32_t at)
{
    char *memory = sluice_mr_addr(reader->memory);

    return memory + (sequence % 2 * SEQUENCE + at) * reader->options.block;
}

static void list_blocks(struct reader *reader, uint32_t sequence,
                        struct sluice_buffer_action actions[SEQUENCE])
{
    size_t block = reader->options.block;

    memset(actions, 0, SEQUENCE * sizeof(*actions));
    for (uint32_t at = 0; at < SEQUENCE; at++) {
        actions[at].opcode = SLUICE_OP_READ;
        actions[at].handle = &reader->pools[owner_of(reader, sequence, at)];
        actions[at].offset = block_of(sequence, at) * block;
        actions[at].length = block;
        actions[at].addr = place_of(reader, sequence, at);
        actions[at].mr = reader->memory;
        actions[at].user_data = at;
    }
}

static int fetch(struct reader *reader, uint32_t sequence)
{
    struct sluice_buffer_action actions[SEQUENCE];

    list_blocks(reader, sequence, actions);
    if (sluice_buffer_submit(reader->device.service, actions, SEQUENCE, DEADLINE, NULL) != 0)
        return complain("reader", "fetch a sequence");
    return 0;
}

static int check_block(const struct reader *reader, uint32_t sequence, uint32_t at)
{
    const uint8_t *bytes = (const uint8_t *)place_of(reader, sequence, at);
    uint8_t expected = content(owner_of(reader, sequence, at), block_of(sequence, at));

    for (size_t i = 0; i < reader->options.block; i++)
        if (bytes[i] != expected) {
            fprintf(stderr, "15-kv-blocks: sequence %u, block %u: other bytes\n", sequence, at);
            return -1;
        }
    return 0;
}

static int check(const struct reader *reader, uint32_t sequence)
{
    for (uint32_t at = 0; at < SEQUENCE; at++)
        if (check_block(reader, sequence, at) != 0)
            return -1;
    return 0;
}

/* Checks each block as it arrives, and frees the batch. */
static int check_as_they_come(const struct reader *reader, uint32_t sequence,
                              struct sluice_buffer_batch *batch)
{
    struct sluice_completion done;
    int result = 0;

    for (uint32_t i = 0; i < SEQUENCE && result == 0; i++) {
        if (sluice_buffer_batch_next(batch, SLUICE_FOREVER, &done) != 0 || done.error != 0)
            result = complain("reader", "wait for a block");
        else
            result = check_block(reader, sequence, (uint32_t)done.user_data);
    }
    sluice_buffer_batch_free(batch);
    return result;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Reads all sequences in turn. The first one, which connects, is not measured. */
static int read_all(struct reader *reader)
{
    double seconds = 0, bytes = (double)SEQUENCE * (double)reader->options.block;

    for (uint32_t sequence = 0; sequence <= reader->options.sequences; sequence++) {
        double begin = now();

        if (fetch(reader, sequence) != 0)
            return -1;
        seconds += sequence > 0 ? now() - begin : 0;
        if (check(reader, sequence) != 0)
            return -1;
        reader->in_turn += sequence > 0 ? now() - begin : 0;
    }
    printf("%u sequences of %u blocks of %zu bytes, %u owners: %.0f MB/s\n",
           reader->options.sequences, SEQUENCE, reader->options.block, reader->options.owners,
           bytes * reader->options.sequences / seconds / 1e6);
    return 0;
}

/* Reads all sequences; the blocks of the next are in flight while those of one are checked. */
static int read_ahead(struct reader *reader)
{
    double bytes = (double)SEQUENCE * (double)reader->options.block, begin = now();
    struct sluice_buffer_action actions[SEQUENCE];
    struct sluice_buffer_batch *before = NULL, *batch;
    int result = 0;

    for (uint32_t sequence = 0; sequence <= reader->options.sequences && result == 0; sequence++) {
        list_blocks(reader, sequence, actions);
        batch = sequence < reader->options.sequences
                    ? sluice_buffer_post(reader->device.service, actions, SEQUENCE, DEADLINE)
                    : NULL;
        if (batch == NULL && sequence < reader->options.sequences)
            result = complain("reader", "post a sequence");
        if (result != 0)
            sluice_buffer_batch_free(before); /* cancels what is in flight */
        else if (before != NULL)
            result = check_as_they_come(reader, sequence - 1, before);
        before = batch;
    }
    sluice_buffer_batch_free(before);
    if (result == 0)
        printf("with the checks: %.0f MB/s, one sequence ahead %.0f MB/s\n",
               bytes * reader->options.sequences / reader->in_turn / 1e6,
               bytes * reader->options.sequences / (now() - begin) / 1e6);
    return result;
}

static int run_reader(const struct workers *workers, const struct options *options)
{
    struct reader reader = {.options = *options};
    int result = open_device(&reader.device);

    if (result == 0) {
        reader.memory = sluice_mr_alloc(reader.device.pd, 2 * SEQUENCE * options->block,
                                        SLUICE_ACCESS_LOCAL_WRITE);
        result = reader.memory != NULL ? 0 : complain("reader", "allocate");
    }
    if (result == 0)
        result = meet_owners(&reader, workers);
    if (result == 0)
        result = read_all(&reader);
    if (result == 0)
        result = read_ahead(&reader);
    sluice_mr_deregister(reader.memory);
    close_device(&reader.device);
    return result;
}

static int usage(void)
{
    fprintf(stderr, "usage: 15-kv-blocks [-b BLOCK BYTES] [-n OWNERS] [-r SEQUENCES]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct workers workers = {0};
    struct options options;
    long block = 16384, owners = 3, sequences = 200;
    int option, result;

    while ((option = getopt(argc, argv, "b:n:r:")) != -1) {
        if (option == 'b')
            block = atol(optarg);
        else if (option == 'n')
            owners = atol(optarg);
        else if (option == 'r')
            sequences = atol(optarg);
        else
            return usage();
    }
    if (optind != argc || block < 1 || block > 1 << 22 || owners < 1 ||
        owners > MAX_PROCESSES - 1 || sequences < 1 || sequences > 1000000)
        return usage();
    options = (struct options){(size_t)block, (uint32_t)owners, (uint32_t)sequences};
    /* Start the processes first: open objects do not survive a fork. */
    result = workers_start(&workers, options.owners + 1, run_owner);
    if (result == 0)
        result = run_reader(&workers, &options);
    if (result == 0)
        result = workers_send(&workers, 'e');
    return workers_end(&workers, result) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
