/* SPDX-License-Identifier: MIT */
/*
 * A safe GET: ranks read values of another rank, one-sided, while that rank changes them all the
 * time, and never accept a value that is half old and half new.
 *
 *   sluice-launch -n 3 18-get [-r GETS] [-s]
 *
 *   -r GETS   how many values each reader gets, 1 to 1000000000, default 20000
 *   -s        use a single read for each value, which is not safe, and count wrong values
 *
 * Rank 0 has the values and a thread that changes them; all others read. If there is only one
 * rank, it reads its own values.
 *
 * Each value has a version, which is odd while the value is changed. A GET is one list of three
 * reads, of the version, the value and the version again, the last two with SLUICE_FENCE, so that
 * each begins after the one before it has completed. If both versions are equal and even, no
 * change began before the value was read completely. sluice_memory(7) explains why one read is
 * not enough.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#define ITEMS 4
#define WORDS 510 /* makes an item 4 KiB */
#define BURST 64  /* changes in a row */
#define DEADLINE SLUICE_S(60)

/* An item of rank 0. The last word is used by the single read only: it is a version as well. */
struct item {
    _Atomic uint64_t version;
    _Atomic uint64_t value[WORDS];
    _Atomic uint64_t again;
};

/* The copy of a reader: the version before, the value, and the version after. */
struct copy {
    uint64_t before;
    uint64_t value[WORDS];
    uint64_t after;
};

struct job {
    struct sluice_node *node;
    struct sluice_mr *items, *copy; /* the items of rank 0, and what was read last */
    struct sluice_peer_remote_mr *remotes;
    uint64_t gets;
    uint32_t rank, ranks;
    bool single;
    atomic_bool done; /* the writer must end */
};

static int complain(const char *what)
{
    fprintf(stderr, "18-get: %s: %s\n", what, sluice_last_error());
    return -1;
}

/* The words of a value, which show whether all of it is of one version. */
static uint64_t word_of(uint64_t version, uint64_t i)
{
    return (version + i) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/*
 * Writes a value as its owner. The fence orders the new value after the odd version, and the
 * release store orders the even version after the value, for local and remote readers.
 */
static void put(struct item *item, uint64_t version)
{
    atomic_store_explicit(&item->version, version - 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    for (uint64_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&item->value[i], word_of(version, i), memory_order_relaxed);
    atomic_store_explicit(&item->again, version, memory_order_release);
    atomic_store_explicit(&item->version, version, memory_order_release);
}

/* Changes one item after the other in bursts, with pauses in which a slow reader succeeds. */
static void *run_writer(void *argument)
{
    struct job *job = argument;
    struct item *items = sluice_mr_addr(job->items);
    uint64_t state = 88172645463325252u;

    while (!atomic_load_explicit(&job->done, memory_order_relaxed)) {
        for (int i = 0; i < BURST; i++) {
            struct item *item = &items[next_random(&state) % ITEMS];

            put(item, atomic_load_explicit(&item->version, memory_order_relaxed) + 2);
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)(next_random(&state) % 200000)}, NULL);
    }
    return NULL;
}

/* Makes the list of a GET: the three reads, or the single one. */
static int name_reads(const struct job *job, size_t item, struct sluice_request reads[3])
{
    static const struct {
        size_t offset, length;
    } parts[] = {{0, 8}, {8, sizeof(struct copy) - 16}, {0, 8}};
    const struct sluice_remote_mr *remote = &job->remotes[0].remote;
    size_t at = 0, of = item * sizeof(struct item);
    int error = 0;

    for (int i = 0; i < 3; i++) {
        reads[i] = (struct sluice_request){
            .opcode = SLUICE_OP_READ, .sge_count = 1, .flags = i > 0 ? SLUICE_FENCE : 0};
        error |= sluice_mr_sge(job->copy, at, parts[i].length, &reads[i].sge);
        error |=
            sluice_remote_mr_slice(remote, of + parts[i].offset, parts[i].length, &reads[i].remote);
        at += parts[i].length;
    }
    if (job->single) {
        error |= sluice_mr_sge(job->copy, 0, sizeof(struct copy), &reads[0].sge);
        error |= sluice_remote_mr_slice(remote, of, sizeof(struct item), &reads[0].remote);
    }
    return error;
}

/* Reads until the versions agree, and counts the retries. */
static int get(const struct job *job, size_t item, uint64_t *vain)
{
    struct sluice_multichannel *all = sluice_node_multichannel(job->node);
    const struct copy *copy = sluice_mr_addr(job->copy);
    struct sluice_request reads[3];

    if (name_reads(job, item, reads) != 0)
        return complain("name the reads");
    while (true) {
        if (sluice_multichannel_submit(all, reads, job->single ? 1 : 3, DEADLINE, NULL) < 0)
            return complain("read");
        if (copy->before == copy->after && copy->before % 2 == 0)
            return 0;
        ++*vain;
    }
}

static bool is_torn(const struct copy *copy)
{
    for (uint64_t i = 0; i < WORDS; i++)
        if (copy->value[i] != word_of(copy->before, i))
            return true;
    return false;
}

static int read_all(const struct job *job)
{
    uint64_t state = 362436069 + job->rank, vain = 0, torn = 0;

    for (uint64_t i = 0; i < job->gets; i++) {
        if (get(job, next_random(&state) % ITEMS, &vain) != 0)
            return -1;
        torn += is_torn(sluice_mr_addr(job->copy));
    }
    printf(
        "rank %" PRIu32 " got %" PRIu64 " values by %s, read again %" PRIu64 ", torn %" PRIu64 "\n",
        job->rank, job->gets, job->single ? "a single read each" : "three reads each", vain, torn);
    return job->single || torn == 0 ? 0 : -1;
}

/* Runs the rank; the writer ends when all readers are done. */
static int work(struct job *job)
{
    bool owner = job->rank == 0;
    pthread_t writer;
    int result = 0;

    if (sluice_node_share_mr(job->node, job->items, job->remotes, DEADLINE) != 0)
        return complain("share the items");
    if (owner && pthread_create(&writer, NULL, run_writer, job) != 0)
        return complain("start the writer");
    if (!owner || job->ranks == 1)
        result = read_all(job);
    fflush(stdout);
    /* Shut down first: closing at once would break the connections for ranks still at work. */
    if (result == 0 && sluice_node_shutdown(job->node, SLUICE_S(600)) != 0)
        result = complain("shut down");
    if (owner) {
        atomic_store_explicit(&job->done, true, memory_order_relaxed);
        pthread_join(writer, NULL);
    }
    return result;
}

static bool allocate(struct job *job)
{
    struct sluice_pd *pd = sluice_node_pd(job->node);
    size_t bytes;

    job->rank = sluice_node_rank(job->node);
    job->ranks = sluice_node_ranks(job->node);
    bytes = job->rank == 0 ? ITEMS * sizeof(struct item) : 0;
    job->remotes = calloc(job->ranks, sizeof(*job->remotes));
    job->copy = sluice_mr_alloc(pd, sizeof(struct copy), SLUICE_ACCESS_LOCAL_WRITE);
    if (bytes > 0)
        job->items = sluice_mr_alloc(pd, bytes, SLUICE_ACCESS_REMOTE_READ);
    if (job->remotes == NULL || job->copy == NULL || (bytes > 0 && job->items == NULL))
        return false;
    for (size_t i = 0; i < bytes / sizeof(struct item); i++)
        put((struct item *)sluice_mr_addr(job->items) + i, 2);
    return true;
}

static bool parse(struct job *job, int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "r:s")) != -1) {
        if (option == 'r')
            job->gets = strtoull(optarg, NULL, 10);
        job->single = job->single || option == 's';
        if (option == '?' || job->gets < 1 || job->gets > 1000000000)
            return false;
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    struct job job = {.gets = 20000};
    int result = -1;

    if (!parse(&job, argc, argv))
        return fprintf(stderr, "usage: 18-get [-r GETS] [-s]\n"), 2;
    job.node = sluice_node_open(NULL, NULL, NULL, DEADLINE);
    if (job.node == NULL)
        return complain("join the other ranks") != 0;
    if (!allocate(&job))
        complain("allocate memory");
    else
        result = work(&job);
    sluice_mr_deregister(job.copy);
    sluice_mr_deregister(job.items);
    sluice_node_close(job.node);
    free(job.remotes);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
