/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of memory in blocks: the bandwidth of one paged request compared with one
 * write or read of as many contiguous bytes, between two processes.
 *
 *   bench/blocks [-b BYTES] [-r ROUNDS] [WIRE...]    8388608, 31, and all wires
 *
 *   memmove      no wire: memmove(3) within one process, the upper limit of any wire
 *   shm          shared memory, in memory of sluice_mr_alloc()
 *   registered   shared memory, in memory that the program has registered itself
 *   tcp          the loopback
 *
 * The pages have a different order on each side, and all of the memory is moved. A round is one
 * request of each kind, so that drift of the machine affects both equally. The ratio is the
 * median of the rounds, printed with its quartiles. The peer sleeps, as the owner of a cache may.
 * Before a row is measured, its data is verified. The result is 0 if all ratios are within the
 * budget, 1 if one is not or something failed, 2 if the arguments are wrong.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#define BUDGET 0.9
#define DEADLINE SLUICE_S(60)
#define MOST_BLOCK 65536u
#define MOST_BYTES (UINT32_C(1) << 30)
#define MOST_ROUNDS 1001

static const struct wire {
    const char *name, *value; /* of SLUICE_WIRE; NULL: none */
    bool registered;
} wires[] = {{"memmove", NULL, false},
             {"shm", "shm", false},
             {"registered", "shm", true},
             {"tcp", "tcp", false}};

#define WIRES (sizeof wires / sizeof wires[0])

static const uint32_t opcodes[] = {SLUICE_OP_WRITE, SLUICE_OP_READ};
static const uint32_t block_sizes[] = {2048, 4096, 16384, MOST_BLOCK};
#define BLOCK_SIZES (sizeof block_sizes / sizeof block_sizes[0])

/* One of the two processes. */
struct side {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_channel *channel;
    struct sluice_mr *mr;
    struct sluice_mr *far; /* without a wire: stands for the peer's memory */
    void *registered;      /* or NULL */
    struct sluice_remote_mr remote;
    uint32_t bytes;
    int socket; /* to the other process */
};

/* One row: the same bytes in one piece, and by pages. */
struct row {
    struct side *side;
    uint32_t opcode, block, count;
    uint32_t *ours, *theirs;
    struct sluice_blocks blocks;
};

static int complain(const char *what)
{
    fprintf(stderr, "blocks: %s: %s\n", what, sluice_last_error());
    return -1;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Sends and receives the same number of bytes. */
static int swap(int socket, const void *ours, void *theirs, size_t size)
{
    if (send(socket, ours, size, MSG_NOSIGNAL) == (ssize_t)size &&
        recv(socket, theirs, size, MSG_WAITALL) == (ssize_t)size)
        return 0;
    fprintf(stderr, "blocks: the other process is gone\n");
    return -1;
}

static int make_memory(struct side *side, bool registered)
{
    const uint32_t access =
        SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ;

    if (registered)
        side->registered = aligned_alloc(4096, side->bytes);
    if (registered && side->registered != NULL)
        side->mr = sluice_mr_register(side->pd, side->registered, side->bytes, access);
    else if (!registered)
        side->mr = sluice_mr_alloc(side->pd, side->bytes, access);
    if (side->mr == NULL)
        return complain("memory");
    memset(sluice_mr_addr(side->mr), 1, side->bytes);
    return 0;
}

static int connect_sides(struct side *side)
{
    const struct sluice_channel_attr attr = {.size = sizeof attr, .read_depth = 128};
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(side->pd, &attr);
    struct sluice_endpoint ours, theirs;
    struct sluice_remote_mr remote;
    uint8_t packed[2][SLUICE_REMOTE_MR_BYTES];

    if (prepared == NULL || sluice_prepared_channel_endpoint(prepared, &ours) != 0 ||
        swap(side->socket, &ours, &theirs, sizeof ours) != 0) {
        sluice_prepared_channel_free(prepared);
        return complain("prepare");
    }
    side->channel = sluice_prepared_channel_handshake(prepared, &theirs);
    if (side->channel == NULL || sluice_channel_wait_connected(side->channel, DEADLINE) != 0)
        return complain("connect");
    sluice_mr_remote(side->mr, &remote);
    sluice_remote_mr_pack(&remote, packed[0]);
    if (swap(side->socket, packed[0], packed[1], sizeof packed[0]) != 0)
        return -1;
    return sluice_remote_mr_unpack(packed[1], &side->remote) == 0 ? 0 : complain("memory");
}

static int open_side(struct side *side, const struct wire *wire)
{
    if (wire->value != NULL)
        setenv("SLUICE_WIRE", wire->value, 1);
    side->context = sluice_context_open("soft", NULL);
    side->pd = side->context != NULL ? sluice_pd_alloc(side->context) : NULL;
    if (side->pd == NULL)
        return complain("open the device");
    if (make_memory(side, wire->registered) != 0)
        return -1;
    if (wire->value != NULL)
        return connect_sides(side);
    side->far = sluice_mr_alloc(side->pd, side->bytes, SLUICE_ACCESS_LOCAL_WRITE);
    return side->far != NULL ? 0 : complain("memory");
}

static void close_side(struct side *side)
{
    sluice_channel_close(side->channel);
    sluice_mr_deregister(side->mr);
    sluice_mr_deregister(side->far);
    free(side->registered);
    sluice_pd_free(side->pd);
    sluice_context_close(side->context);
    close(side->socket);
}

/* Runs the peer: owns memory until the other process has ended. */
static int own(struct side *side, const struct wire *wire)
{
    int result = open_side(side, wire);
    char end;

    if (result == 0)
        recv(side->socket, &end, 1, 0);
    close_side(side);
    return result;
}

static uint32_t choose(uint64_t *seed, uint32_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

static uint32_t *shuffle(uint32_t count, uint64_t seed)
{
    uint32_t *indices = malloc(count * sizeof *indices);

    for (uint32_t i = 0; indices != NULL && i < count; i++) {
        uint32_t at = choose(&seed, i + 1);

        indices[i] = indices[at];
        indices[at] = i;
    }
    return indices;
}

static int row_open(struct row *row, struct side *side, uint32_t opcode, uint32_t block)
{
    const struct sluice_layout paged = {
        .kind = SLUICE_LAYOUT_PAGED, .count = side->bytes / block, .bytes = block};

    *row = (struct row){.side = side,
                        .opcode = opcode,
                        .block = block,
                        .count = paged.count,
                        .ours = shuffle(paged.count, 1),
                        .theirs = shuffle(paged.count, 2),
                        .blocks = {.size = sizeof row->blocks, .local = paged, .remote = paged}};
    row->blocks.local.indices = row->ours;
    row->blocks.remote.indices = row->theirs;
    if (row->ours != NULL && row->theirs != NULL)
        return 0;
    fprintf(stderr, "blocks: no memory\n");
    return -1;
}

static void row_close(struct row *row)
{
    free(row->ours);
    free(row->theirs);
}

static void copy(const struct row *row, uint32_t opcode, bool paged)
{
    bool writes = opcode == SLUICE_OP_WRITE;
    char *to = sluice_mr_addr(writes ? row->side->far : row->side->mr);
    const char *from = sluice_mr_addr(writes ? row->side->mr : row->side->far);
    const uint32_t *to_pages = writes ? row->theirs : row->ours;
    const uint32_t *from_pages = writes ? row->ours : row->theirs;

    if (!paged)
        memmove(to, from, row->side->bytes);
    for (uint32_t i = 0; paged && i < row->count; i++)
        memmove(to + (size_t)to_pages[i] * row->block, from + (size_t)from_pages[i] * row->block,
                row->block);
}

/* Moves all of the memory, in one piece or by pages. Returns the seconds it took, or -1. */
static double move(const struct row *row, uint32_t opcode, bool paged)
{
    struct side *side = row->side;
    struct sluice_request request = {.opcode = opcode,
                                     .sge_count = 1,
                                     .remote = side->remote,
                                     .blocks = paged ? &row->blocks : NULL};
    double begin = now();

    if (side->channel == NULL)
        copy(row, opcode, paged);
    else if (sluice_mr_sge(side->mr, 0, side->bytes, &request.sge) != 0 ||
             sluice_channel_submit(side->channel, &request, 1, DEADLINE, NULL) != 0)
        return complain(paged ? "blocks" : "one transfer");
    return now() - begin;
}

/* Returns the content of page i before it is moved. */
static uint64_t content(const struct row *row, uint32_t i)
{
    return (uint64_t)row->opcode << 48 | (uint64_t)row->block << 24 | i;
}

static void fill(const struct row *row)
{
    uint64_t *words = sluice_mr_addr(row->side->mr);

    for (uint32_t i = 0; i < row->count; i++)
        for (uint32_t end = row->block / 8; end > 0; end--)
            *words++ = content(row, i);
}

/* Verifies the data: written by pages and read in one piece, and the other way round. */
static int check(const struct row *row)
{
    bool writes = row->opcode == SLUICE_OP_WRITE;
    const uint32_t *from = writes ? row->ours : row->theirs;
    const uint32_t *to = writes ? row->theirs : row->ours;
    uint64_t *words = sluice_mr_addr(row->side->mr);

    fill(row);
    if (move(row, SLUICE_OP_WRITE, writes) < 0)
        return -1;
    memset(words, 0, row->side->bytes);
    if (move(row, SLUICE_OP_READ, !writes) < 0)
        return -1;
    for (uint32_t i = 0; i < row->count; i++)
        for (uint32_t at = 0; at < row->block / 8; at++)
            if (words[(uint64_t)to[i] * (row->block / 8) + at] != content(row, from[i])) {
                fprintf(stderr, "blocks: page %u of %u bytes has other bytes\n", to[i], row->block);
                return -1;
            }
    return 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Measures a row. The order of the two requests alternates between rounds. */
static int measure(const struct row *row, const char *wire, int rounds)
{
    static const char *const verdicts[] = {"not met", "met", "without a budget"};
    static double whole[MOST_ROUNDS], paged[MOST_ROUNDS], ratios[MOST_ROUNDS];
    double mib = (double)row->side->bytes / (1 << 20);
    bool met;

    for (int i = 0; i < rounds; i++) {
        double *times[2] = {&whole[i], &paged[i]};

        for (int j = 0; j < 2; j++) {
            bool is_paged = (i + j) % 2 == 1;

            *times[is_paged] = move(row, row->opcode, is_paged);
            if (*times[is_paged] < 0)
                return -1;
        }
        ratios[i] = whole[i] / paged[i];
    }
    qsort(whole, (size_t)rounds, sizeof *whole, compare);
    qsort(paged, (size_t)rounds, sizeof *paged, compare);
    qsort(ratios, (size_t)rounds, sizeof *ratios, compare);
    met = row->side->channel == NULL || ratios[rounds / 2] >= BUDGET;
    printf("%-10s %-6s %7u %10.0f %10.0f %8.2f [%.2f, %.2f]  %s\n", wire,
           row->opcode == SLUICE_OP_WRITE ? "write" : "read", row->block, mib / whole[rounds / 2],
           mib / paged[rounds / 2], ratios[rounds / 2], ratios[rounds / 4], ratios[rounds * 3 / 4],
           verdicts[row->side->channel == NULL ? 2 : met]);
    fflush(stdout);
    return met ? 0 : 1;
}

/* Measures all rows of a wire. Returns 1 if a row misses the budget. */
static int lead(struct side *side, const struct wire *wire, int rounds)
{
    int result = open_side(side, wire), worst = 0;

    for (size_t i = 0; i < 2 * BLOCK_SIZES && result >= 0; i++) {
        struct row row;

        result = row_open(&row, side, opcodes[i / BLOCK_SIZES], block_sizes[i % BLOCK_SIZES]);
        if (result == 0)
            result = check(&row);
        if (result == 0)
            result = measure(&row, wire->name, rounds);
        row_close(&row);
        worst = result > worst ? result : worst;
    }
    close_side(side);
    return result < 0 ? result : worst;
}

/* Runs a wire in two new processes, because open objects do not survive a fork. */
static int run_wire(const struct wire *wire, uint32_t bytes, int rounds)
{
    int sockets[2], status[2] = {1, 1};
    pid_t pids[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct side side = {.bytes = bytes, .socket = sockets[i]};

            close(sockets[1 - i]);
            exit((i == 0 ? lead(&side, wire, rounds) : own(&side, wire)) == 0 ? 0 : 1);
        }
    }
    close(sockets[0]);
    close(sockets[1]);
    for (int i = 0; i < 2; i++)
        if (pids[i] < 0 || waitpid(pids[i], &status[i], 0) != pids[i])
            status[i] = 1;
    return status[0] == 0 && status[1] == 0 ? 0 : -1;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: blocks [-b BYTES] [-r ROUNDS] [memmove] [shm] [registered] [tcp]\n"
            "BYTES is a multiple of %u up to %u, ROUNDS 1 to %d\n",
            MOST_BLOCK, MOST_BYTES, MOST_ROUNDS);
    return 2;
}

static const struct wire *find_wire(const char *name)
{
    for (size_t i = 0; i < WIRES; i++)
        if (strcmp(wires[i].name, name) == 0)
            return &wires[i];
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned long bytes = 8 << 20;
    long rounds = 31;
    int option, result = 0;

    while ((option = getopt(argc, argv, "b:r:")) != -1) {
        if (option == 'b')
            bytes = strtoul(optarg, NULL, 10);
        else if (option == 'r')
            rounds = strtol(optarg, NULL, 10);
        else
            return usage();
    }
    for (int i = optind; i < argc; i++)
        if (find_wire(argv[i]) == NULL)
            return usage();
    if (bytes == 0 || bytes > MOST_BYTES || bytes % MOST_BLOCK != 0 || rounds < 1 ||
        rounds > MOST_ROUNDS)
        return usage();
    printf("%-10s %-6s %7s %10s %10s %8s [quartiles]   budget %.1f\n", "wire", "", "block", "MiB/s",
           "blocks", "ratio", BUDGET);
    fflush(stdout);
    for (size_t i = 0; i < WIRES; i++) {
        bool chosen = optind == argc;

        for (int j = optind; j < argc; j++)
            chosen = chosen || find_wire(argv[j]) == &wires[i];
        if (chosen && run_wire(&wires[i], (uint32_t)bytes, (int)rounds) != 0)
            result = 1;
    }
    return result;
}
