/* SPDX-License-Identifier: MIT */
/*
 * Rank 0 scatters the blocks of a file, all ranks digest them, and rank 0 gathers the digests.
 *
 *   03-scatter-gather [-l ADDRESS:PORT] [-n PROCESSES] [-r TIMES] [FILE]
 *   03-scatter-gather -c ADDRESS:PORT
 *
 * The program starts its own processes, or waits for processes that are started with
 * -c on any host. Rank 0 has a multichannel to all ranks, itself included, and
 * every other rank has a channel to rank 0. In each round, rank 0 sends a different
 * block to each rank and receives the digests of the round before. In the end it
 * digests the whole file alone and compares.
 *
 * -l  be rank 0 and wait for the others, up to 60 s for each; port 0 is any free
 *     port, which is printed
 * -c  be another rank of the program that listens there; wait for it for up to 60 s
 * -n  number of processes, 1 to 64, default 4
 * -r  how many times to do it all, for a longer run, default 1
 * Without a FILE, the data is 64 MiB of reproducible noise. The printed time runs
 * from the first scatter to the last gather; MB/s are the bytes scattered in it.
 * It does not include reading the file and comparing.
 *
 * Before two ranks have a channel, they talk over a stream socket: rank 0 sends the
 * other its rank (a byte), receives its endpoint, sends an endpoint, and receives a
 * byte when the other has connected. When all is well the other sends a byte that it
 * is done, and then rank 0 does: a sender may not know yet that its message arrived,
 * and a closed channel acknowledges nothing any more.
 * With -l these are TCP connections without any check of the client: use it only in
 * networks that you trust.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include <sluice.h>

#include "workers.h"

#define BLOCK (UINT64_C(1) << 20) /* bytes */
#define DIGEST 32

/* For each round. A process that hangs is noticed only then; one that dies, sooner. */
#define DEADLINE SLUICE_S(30)

/* The state of rank 0. The index of a peer is its rank. */
struct job {
    uint32_t processes;
    struct workers workers;
    struct sluice_mr *data;    /* the file */
    struct sluice_mr *digests; /* of all blocks, gathered */
    struct sluice_mr *own;     /* the block that rank 0 works on */
    uint64_t bytes;
    uint64_t blocks;
    uint64_t times;
};

static void digest(unsigned char *out, const void *bytes, uint64_t count)
{
    crypto_generichash(out, DIGEST, bytes, count, NULL, 0);
}

/*
 * The worker: receives a block into one half of its memory while it digests the
 * block in the other half. An empty message ends it.
 */
static int work(struct sluice_channel *channel, struct sluice_mr *mr, uint32_t rank)
{
    unsigned char *memory = sluice_mr_addr(mr);
    struct sluice_sge halves[2], result;
    struct sluice_handle handles[2];
    struct sluice_completion block;

    if (sluice_mr_sge(mr, 0, BLOCK, &halves[0]) != 0 ||
        sluice_mr_sge(mr, BLOCK, BLOCK, &halves[1]) != 0 ||
        sluice_mr_sge(mr, 2 * BLOCK, DIGEST, &result) != 0 ||
        sluice_channel_post_receive(channel, &halves[0], 1, DEADLINE, &handles[0]) != 0)
        return complain_as(rank, "post the first receive");
    for (uint32_t half = 0;; half = 1 - half) {
        if (sluice_channel_wait(channel, &handles[half], DEADLINE, &block) != 0)
            return complain_as(rank, "wait for a block");
        if (block.error != 0) {
            fprintf(stderr, "03-scatter-gather: rank %u: receive a block: %s\n", rank,
                    sluice_error_class_name(block.error_class));
            return -1;
        }
        if (block.bytes == 0)
            return 0;
        if (sluice_channel_post_receive(channel, &halves[1 - half], 1, DEADLINE,
                                        &handles[1 - half]) != 0)
            return complain_as(rank, "post a receive");
        digest(memory + 2 * BLOCK, memory + half * BLOCK, block.bytes);
        if (sluice_channel_send(channel, &result, 1, DEADLINE) != 0)
            return complain_as(rank, "send a digest");
    }
}

/* Runs a worker. Rank 0 is at the other end of the socket. */
static int run_worker(int socket)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = NULL;
    struct sluice_mr *mr = NULL;
    struct sluice_prepared_channel *prepared = NULL;
    struct sluice_channel *channel = NULL;
    struct sluice_endpoint endpoint;
    unsigned char rank = 0;
    int result = -1;

    if (context != NULL)
        pd = sluice_pd_alloc(context);
    if (pd != NULL)
        mr = sluice_mr_alloc(pd, 2 * BLOCK + DIGEST, SLUICE_ACCESS_LOCAL_WRITE);
    if (mr != NULL)
        prepared = sluice_channel_prepare(pd, NULL);
    if (prepared == NULL) {
        fprintf(stderr, "03-scatter-gather: a worker: set up: %s\n", sluice_last_error());
        goto close;
    }
    sluice_prepared_channel_endpoint(prepared, &endpoint);
    if (take(socket, &rank, 1) != 0 || give(socket, &endpoint, sizeof(endpoint)) != 0 ||
        take(socket, &endpoint, sizeof(endpoint)) != 0) {
        fprintf(stderr, "03-scatter-gather: a worker: rank 0 gave no endpoint\n");
        sluice_prepared_channel_free(prepared);
        goto close;
    }
    channel = sluice_prepared_channel_handshake(prepared, &endpoint);
    if (channel == NULL)
        complain_as(rank, "handshake");
    else if (give(socket, &rank, 1) == 0 && work(channel, mr, rank) == 0 &&
             give(socket, &rank, 1) == 0)
        result = take(socket, &rank, 1); /* until then rank 0 may need the channel */
close:
    sluice_channel_close(channel);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

/* Receives the endpoints of all ranks, and sends each rank one of rank 0. */
static int exchange(const struct job *job, const struct sluice_endpoint *ours,
                    struct sluice_endpoint *theirs)
{
    theirs[0] = ours[0]; /* peer 0 is rank 0 itself */
    for (uint32_t rank = 1; rank < job->processes; rank++) {
        unsigned char number = (unsigned char)rank;

        if (give(job->workers.sockets[rank], &number, 1) != 0 ||
            take(job->workers.sockets[rank], &theirs[rank], sizeof(*theirs)) != 0 ||
            give(job->workers.sockets[rank], &ours[rank], sizeof(*ours)) != 0) {
            fprintf(stderr, "03-scatter-gather: rank %u gave no endpoint\n", rank);
            return -1;
        }
    }
    return 0;
}

/* Waits for a byte of each worker: once it has connected, and once it is done. */
static int await_workers(const struct job *job, const char *what)
{
    char byte;

    for (uint32_t rank = 1; rank < job->processes; rank++)
        if (take(job->workers.sockets[rank], &byte, 1) != 0) {
            fprintf(stderr, "03-scatter-gather: rank %u did not %s\n", rank, what);
            return -1;
        }
    return 0;
}

static struct sluice_multichannel *connect_all(const struct job *job, struct sluice_pd *pd)
{
    struct sluice_endpoint ours[MAX_PROCESSES], theirs[MAX_PROCESSES];
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(pd, job->processes, NULL);
    struct sluice_multichannel *multichannel;

    if (prepared == NULL ||
        sluice_prepared_multichannel_endpoints(prepared, ours, job->processes) != 0) {
        complain_as(0, "prepare");
        sluice_prepared_multichannel_free(prepared);
        return NULL;
    }
    if (exchange(job, ours, theirs) != 0) {
        sluice_prepared_multichannel_free(prepared);
        return NULL;
    }
    multichannel = sluice_prepared_multichannel_handshake(prepared, theirs, job->processes);
    if (multichannel == NULL)
        complain_as(0, "handshake");
    else if (await_workers(job, "connect") != 0) { /* a message before that would take 1 s */
        sluice_multichannel_close(multichannel);
        multichannel = NULL;
    }
    return multichannel;
}

/* Prints which peers failed, and why. */
static int complain_of_peers(const struct job *job, const struct sluice_multichannel *multichannel)
{
    struct sluice_error error = {.size = sizeof(error)};
    uint32_t failed = 0;

    for (uint32_t rank = 0; rank < job->processes; rank++)
        if (sluice_multichannel_peer_error(multichannel, rank, &error) == 1) {
            fprintf(stderr, "03-scatter-gather: rank %u: %s: %s\n", rank,
                    sluice_error_class_name(error.error_class), error.text);
            failed++;
        }
    return failed != 0 ? -1 : complain_as(0, "scatter and gather");
}

/* Returns the bytes of a block; the last one may be shorter. */
static uint64_t length_of(const struct job *job, uint64_t block)
{
    return block + 1 < job->blocks ? BLOCK : job->bytes - block * BLOCK;
}

/* A list of requests with one element each. */
struct list {
    uint32_t count;
    struct sluice_request requests[MAX_PROCESSES];
    int wrong;
};

static void add(struct list *list, uint32_t opcode, uint32_t peer, const struct sluice_mr *mr,
                uint64_t offset, uint64_t length)
{
    struct sluice_request *request = &list->requests[list->count++];

    *request = (struct sluice_request){.opcode = opcode, .peer = peer, .sge_count = length != 0};
    if (length != 0) /* an empty message needs no memory */
        list->wrong |= sluice_mr_sge(mr, offset, length, &request->sge);
}

/*
 * Sends block b of the data to rank (b + 1) % processes. The last round, for
 * which no blocks are left, has the empty messages and the last digests.
 */
static int scatter_and_gather(const struct job *job, struct sluice_multichannel *multichannel)
{
    const uint32_t n = job->processes;
    const uint64_t total = job->blocks * job->times, rounds = (total + n - 1) / n;

    for (uint64_t round = 0; round <= rounds; round++) {
        struct list sends = {.count = 0}, receives = {.count = 0};
        uint64_t own = total; /* the block for rank 0 itself */

        for (uint32_t i = 0; i < n; i++) {
            uint32_t rank = (i + 1) % n;
            uint64_t turn = round * n + i, before = turn - n, block;

            if (turn < total) {
                block = turn % job->blocks;
                add(&sends, SLUICE_OP_SEND, rank, job->data, block * BLOCK, length_of(job, block));
                if (rank == 0) {
                    own = block;
                    add(&receives, SLUICE_OP_RECEIVE, 0, job->own, 0, length_of(job, block));
                }
            } else if (round == rounds && rank != 0) {
                add(&sends, SLUICE_OP_SEND, rank, NULL, 0, 0);
            }
            if (round > 0 && before < total && rank != 0)
                add(&receives, SLUICE_OP_RECEIVE, rank, job->digests, before % job->blocks * DIGEST,
                    DIGEST);
        }
        if (sends.wrong != 0 || receives.wrong != 0)
            return complain_as(0, "name the memory");
        if (sluice_multichannel_scatter_gather(multichannel, sends.requests, sends.count,
                                               receives.requests, receives.count, DEADLINE,
                                               NULL) != 0)
            return complain_of_peers(job, multichannel);
        if (own < total)
            digest((unsigned char *)sluice_mr_addr(job->digests) + own * DIGEST,
                   sluice_mr_addr(job->own), length_of(job, own));
    }
    return 0;
}

/* Makes the memory of rank 0 and reads the file into it. */
static int load(struct job *job, struct sluice_pd *pd, FILE *file)
{
    static const unsigned char seed[randombytes_SEEDBYTES] = "sluice";

    job->blocks = (job->bytes + BLOCK - 1) / BLOCK;
    job->data = sluice_mr_alloc(pd, job->bytes + 1, SLUICE_ACCESS_LOCAL_WRITE);
    job->digests = sluice_mr_alloc(pd, job->blocks * DIGEST + 1, SLUICE_ACCESS_LOCAL_WRITE);
    job->own = sluice_mr_alloc(pd, BLOCK, SLUICE_ACCESS_LOCAL_WRITE);
    if (job->data == NULL || job->digests == NULL || job->own == NULL)
        return complain_as(0, "allocate memory");
    if (file == NULL) {
        randombytes_buf_deterministic(sluice_mr_addr(job->data), job->bytes, seed);
    } else if (fread(sluice_mr_addr(job->data), 1, job->bytes, file) != job->bytes) {
        fprintf(stderr, "03-scatter-gather: the file could not be read\n");
        return -1;
    }
    return 0;
}

/* Digests all blocks alone, and compares. */
static int check(const struct job *job)
{
    const unsigned char *data = sluice_mr_addr(job->data), *digests = sluice_mr_addr(job->digests);
    unsigned char expected[DIGEST], whole[DIGEST];
    char text[2 * DIGEST + 1];

    for (uint64_t block = 0; block < job->blocks; block++) {
        digest(expected, data + block * BLOCK, length_of(job, block));
        if (memcmp(expected, digests + block * DIGEST, DIGEST) != 0) {
            fprintf(stderr, "03-scatter-gather: digests differ in block %llu\n",
                    (unsigned long long)block);
            return -1;
        }
    }
    digest(whole, digests, job->blocks * DIGEST);
    printf("%s: digests agree\n", sodium_bin2hex(text, sizeof(text), whole, DIGEST));
    return 0;
}

static int run_rank0(struct job *job, struct sluice_context *context, struct sluice_pd *pd,
                     FILE *file)
{
    struct sluice_context_info info = {.size = sizeof(info)};
    struct sluice_multichannel *multichannel;
    struct timespec begin, end;
    double seconds;
    int result;

    if (load(job, pd, file) != 0 || (multichannel = connect_all(job, pd)) == NULL)
        return -1;
    sluice_context_query(context, &info);
    printf("%u processes on device %s (%s), %llu bytes in %llu blocks\n", job->processes,
           info.device, info.transport, (unsigned long long)job->bytes,
           (unsigned long long)job->blocks);
    fflush(stdout);

    clock_gettime(CLOCK_MONOTONIC, &begin);
    result = scatter_and_gather(job, multichannel);
    clock_gettime(CLOCK_MONOTONIC, &end);
    seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    if (result == 0)
        result = await_workers(job, "finish");
    result = workers_end(&job->workers, result);
    if (result == 0)
        printf("scattered, digested and gathered in %.3f s: %.0f MB/s\n", seconds,
               (double)(job->bytes * job->times) / seconds / 1e6);
    sluice_multichannel_close(multichannel);
    return result == 0 ? check(job) : result;
}

static int run(struct job *job, const char *where, FILE *file)
{
    struct sluice_context *context = NULL;
    struct sluice_pd *pd = NULL;
    /* Fork before the device is opened: open objects do not survive a fork. */
    int result = where != NULL ? workers_accept(&job->workers, job->processes, where)
                               : workers_start(&job->workers, job->processes, run_worker);

    if (result == 0) {
        context = sluice_context_open(NULL, NULL);
        pd = context != NULL ? sluice_pd_alloc(context) : NULL;
        result = pd != NULL ? run_rank0(job, context, pd, file) : complain_as(0, "set up");
    }
    result = workers_end(&job->workers, result);
    sluice_mr_deregister(job->own);
    sluice_mr_deregister(job->digests);
    sluice_mr_deregister(job->data);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

static int usage(void)
{
    fprintf(stderr, "usage: 03-scatter-gather [-l ADDRESS:PORT] [-n PROCESSES] [-r TIMES] [FILE]\n"
                    "       03-scatter-gather -c ADDRESS:PORT\n"
                    "PROCESSES is 1 to 64, TIMES is 1 to 1000000\n");
    return 2;
}

/* Opens the file and gets its size; prints why and returns NULL if it cannot. */
static FILE *open_file(const char *name, uint64_t *bytes)
{
    struct stat status;
    FILE *file = fopen(name, "rb");

    if (file != NULL && fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode)) {
        *bytes = (uint64_t)status.st_size;
        return file;
    }
    fprintf(stderr, "03-scatter-gather: %s: %s\n", name,
            file == NULL ? strerror(errno) : "not a regular file");
    if (file != NULL)
        fclose(file);
    return NULL;
}

/* Runs a worker, perhaps on another host. The end of the process closes the socket. */
static int run_as_worker(const char *where)
{
    int socket = worker_connect(where);

    return socket >= 0 ? run_worker(socket) : -1;
}

int main(int argc, char **argv)
{
    struct job job = {.processes = 4, .bytes = 64 << 20, .times = 1};
    const char *passive = NULL, *active = NULL;
    FILE *file = NULL;
    int option, result, options = 0;

    while ((option = getopt(argc, argv, "c:l:n:r:")) != -1) {
        char *rest = NULL;
        unsigned long value = 0;

        options++;
        if (option == 'c') {
            active = optarg;
            continue;
        }
        if (option == 'l') {
            passive = optarg;
            continue;
        }
        if (option != '?')
            value = strtoul(optarg, &rest, 10);
        if (value == 0 || *rest != '\0' || value > (option == 'n' ? MAX_PROCESSES : 1000000))
            return usage();
        if (option == 'n')
            job.processes = (uint32_t)value;
        else
            job.times = value;
    }
    if (argc - optind > (active != NULL ? 0 : 1) || (active != NULL && options > 1))
        return usage();
    if (sodium_init() < 0)
        return EXIT_FAILURE;
    if (active != NULL)
        return run_as_worker(active) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    if (optind < argc && (file = open_file(argv[optind], &job.bytes)) == NULL)
        return EXIT_FAILURE;
    result = run(&job, passive, file);
    if (file != NULL)
        fclose(file);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
