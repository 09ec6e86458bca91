/* SPDX-License-Identifier: MIT */
/*
 * One-way latency between two processes of this host: half of the median time
 * from one send to the next.
 *
 *   bench/pingpong [-ps] [-b BYTES] [-n ROUNDS] [GAME]...
 *   bench/pingpong -c           only says how many ticks of pair_ticks() a us has
 *
 *   blocking  a send ends when the other side's device has it in a receive
 *   waited    unpolled sends; the completion of each is waited for before the
 *             answer is, as ib_send_lat does
 *   unpolled  unpolled sends; completions are taken after the answer came
 *   write     blocking: the message, then an 8-byte word that the other side
 *             watches
 *
 * With -p each process stays on a processor of its own; with -s nobody ever
 * sleeps, as perftest does not. Receives are posted beforehand, 512 as ib_send_lat
 * has them. Without a game: 8 bytes and 1 MiB, blocking and write.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

#define LARGE (UINT32_C(1) << 20)
/* The memory: out, in, and a word of each. */
#define WORD_OUT (2 * (size_t)LARGE)
#define WORD_IN (WORD_OUT + 8)
#define MEMORY (WORD_IN + 8)
#define MOST_ROUNDS 100000
#define RECEIVES 512

/* A game of so many rounds; times[round] is when its message was sent. */
struct table {
    struct pair *pair;
    uint32_t bytes;
    uint32_t rounds;
    uint64_t *times;
    uint32_t posted;   /* receives, so far */
    uint32_t received; /* of them */
    struct sluice_handle handles[RECEIVES];
    struct sluice_sge out, in;
};

static int post_receive(struct table *table)
{
    const struct sluice_request receive = {
        .opcode = SLUICE_OP_RECEIVE, .sges = &table->in, .sge_count = 1};

    if (table->posted == table->rounds)
        return 0;
    if (sluice_channel_post(table->pair->channel, &receive, 1, PAIR_DEADLINE,
                            &table->handles[table->posted % RECEIVES]) != 1)
        return pair_complain(table->pair, "post a receive");
    table->posted++;
    return 0;
}

static int wait_for(struct table *table, const struct sluice_handle *handle, const char *what)
{
    struct sluice_completion completion;

    if (sluice_channel_wait(table->pair->channel, handle, PAIR_DEADLINE, &completion) != 0 ||
        completion.error != 0)
        return pair_complain(table->pair, what);
    return 0;
}

static int receive(struct table *table)
{
    if (wait_for(table, &table->handles[table->received++ % RECEIVES], "receive") != 0)
        return -1;
    return post_receive(table);
}

static int post_send(struct table *table, struct sluice_handle *handle)
{
    const struct sluice_request send = {
        .opcode = SLUICE_OP_SEND, .sges = &table->out, .sge_count = 1};

    if (sluice_channel_post(table->pair->channel, &send, 1, PAIR_DEADLINE, handle) != 1)
        return pair_complain(table->pair, "post a send");
    return 0;
}

static int play_blocking(struct table *table)
{
    struct sluice_channel *channel = table->pair->channel;

    for (uint32_t round = 0; round < table->rounds; round++) {
        if (!table->pair->serves && receive(table) != 0)
            return -1;
        table->times[round] = pair_ticks();
        if (sluice_channel_send(channel, &table->out, 1, PAIR_DEADLINE) != 0)
            return pair_complain(table->pair, "send");
        if (table->pair->serves && receive(table) != 0)
            return -1;
    }
    return 0;
}

static int play_waited(struct table *table)
{
    struct sluice_handle sent;

    for (uint32_t round = 0; round < table->rounds; round++) {
        if (!table->pair->serves && receive(table) != 0)
            return -1;
        table->times[round] = pair_ticks();
        if (post_send(table, &sent) != 0 || wait_for(table, &sent, "send") != 0)
            return -1;
        if (table->pair->serves && receive(table) != 0)
            return -1;
    }
    return 0;
}

static int play_unpolled(struct table *table)
{
    struct sluice_handle sent;

    for (uint32_t round = 0; round < table->rounds; round++) {
        if (!table->pair->serves && receive(table) != 0)
            return -1;
        if (!table->pair->serves && round > 0 && wait_for(table, &sent, "send") != 0)
            return -1;
        table->times[round] = pair_ticks();
        if (post_send(table, &sent) != 0)
            return -1;
        if (table->pair->serves && (receive(table) != 0 || wait_for(table, &sent, "send") != 0))
            return -1;
    }
    return table->pair->serves ? 0 : wait_for(table, &sent, "send");
}

/* The message, unless it is the word itself, and then the word. */
static int write_out(const struct table *table, uint64_t word)
{
    struct pair *pair = table->pair;
    struct sluice_sge sges[2];
    struct sluice_request requests[2] = {
        {.opcode = SLUICE_OP_WRITE, .sges = &sges[0], .sge_count = 1},
        {.opcode = SLUICE_OP_WRITE, .sges = &sges[1], .sge_count = 1},
    };
    uint32_t first = table->bytes > sizeof(word) ? 0 : 1;

    *(uint64_t *)((char *)sluice_mr_addr(pair->mr) + WORD_OUT) = word;
    if (sluice_mr_sge(pair->mr, 0, table->bytes, &sges[0]) != 0 ||
        sluice_mr_sge(pair->mr, WORD_OUT, sizeof(word), &sges[1]) != 0 ||
        sluice_remote_mr_slice(&pair->remote, LARGE, table->bytes, &requests[0].remote) != 0 ||
        sluice_remote_mr_slice(&pair->remote, WORD_IN, sizeof(word), &requests[1].remote) != 0 ||
        sluice_channel_submit(pair->channel, requests + first, 2 - first, PAIR_DEADLINE, NULL) != 0)
        return pair_complain(pair, "write");
    return 0;
}

/* The other side is not asked for anything, so there is no call to wait with. */
static int watch(const struct table *table, uint64_t word)
{
    const uint64_t *place = (const uint64_t *)((char *)sluice_mr_addr(table->pair->mr) + WORD_IN);
    double begin = 0;

    for (uint32_t spins = 1; sluice_load_acquire64(place) != word; spins++) {
        if (spins % 1024 != 0)
            continue;
        sched_yield();
        if (begin == 0)
            begin = pair_clock().seconds;
        if (pair_clock().seconds - begin > 30) {
            fprintf(stderr, "pingpong: nothing was written for 30 s\n");
            return -1;
        }
    }
    return 0;
}

static int play_write(struct table *table)
{
    for (uint32_t round = 0; round < table->rounds; round++) {
        uint64_t word = (uint64_t)table->bytes << 32 | (round + 1);

        if (!table->pair->serves && watch(table, word) != 0)
            return -1;
        table->times[round] = pair_ticks();
        if (write_out(table, word) != 0)
            return -1;
        if (table->pair->serves && watch(table, word) != 0)
            return -1;
    }
    return 0;
}

static const struct game {
    const char *name;
    int (*play)(struct table *table);
    uint32_t receives;
} games[] = {
    {"blocking", play_blocking, RECEIVES},
    {"waited", play_waited, RECEIVES},
    {"unpolled", play_unpolled, RECEIVES},
    {"write", play_write, 0},
};
#define GAMES (sizeof(games) / sizeof(games[0]))

static int play(struct pair *pair, const struct game *game, uint32_t bytes, uint32_t rounds)
{
    static struct table table;
    static uint64_t times[MOST_ROUNDS];
    struct pair_clock begin = pair_clock(), end;
    uint64_t median;
    double tick;

    table = (struct table){.pair = pair, .bytes = bytes, .rounds = rounds, .times = times};
    if (sluice_mr_sge(pair->mr, 0, bytes, &table.out) != 0 ||
        sluice_mr_sge(pair->mr, LARGE, bytes, &table.in) != 0)
        return pair_complain(pair, "name the message");
    for (uint32_t i = 0; i < game->receives; i++)
        if (post_receive(&table) != 0)
            return -1;
    if (pair_meet(pair) != 0 || game->play(&table) != 0 || pair_meet(pair) != 0)
        return -1;
    end = pair_clock();
    for (uint32_t i = 0; i + 1 < rounds; i++)
        times[i] = times[i + 1] - times[i];
    tick = pair_tick(&begin, &end) * 1e6 / 2;
    median = pair_median(times, rounds - 1);
    if (pair->serves)
        printf("%-8s %8u bytes  %9.3f us one way  (median of %u, the least is %.3f)\n", game->name,
               bytes, (double)median * tick, rounds - 1, (double)times[0] * tick);
    return 0;
}

/* What was asked for; 0 games: the usual ones. */
static const struct game *wanted[16];
static uint32_t wanted_count;
static uint32_t wanted_bytes = 8, wanted_rounds = 10000;

static int play_all(struct pair *pair)
{
    static const uint32_t usual[][3] = {
        {0, 8, 10000}, {0, LARGE, 500}, {3, 8, 2000}, {3, LARGE, 500}};

    for (uint32_t i = 0; i < wanted_count; i++)
        if (play(pair, wanted[i], wanted_bytes, wanted_rounds) != 0)
            return -1;
    for (uint32_t i = 0; i < 4 && wanted_count == 0; i++)
        if (play(pair, &games[usual[i][0]], usual[i][1], usual[i][2]) != 0)
            return -1;
    return 0;
}

static int add_game(const char *name)
{
    for (uint32_t i = 0; i < GAMES && wanted_count < 16; i++)
        if (strcmp(name, games[i].name) == 0) {
            wanted[wanted_count++] = &games[i];
            return 0;
        }
    return -1;
}

static int tell_clock(void)
{
    const struct timespec half = {.tv_nsec = 500000000};
    struct pair_clock begin = pair_clock(), end;

    nanosleep(&half, NULL);
    end = pair_clock();
    printf("clock %.4f ticks a us\n", 1e-6 / pair_tick(&begin, &end));
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct sluice_channel_attr attr = {
        .size = sizeof(attr), .receive_depth = RECEIVES, .max_sge = 1};
    int option, right = 1;

    while ((option = getopt(argc, argv, "b:cn:ps")) != -1) {
        if (option == 'c')
            return tell_clock();
        if (option == 'b')
            wanted_bytes = pair_number("pingpong", 'b', optarg, LARGE);
        else if (option == 'p')
            pair_pinned = 1;
        else if (option == 's')
            attr.wait_mode = SLUICE_WAIT_SPIN;
        else if (option == 'n')
            wanted_rounds = pair_number("pingpong", 'n', optarg, MOST_ROUNDS);
        else
            right = 0;
    }
    for (; optind < argc; optind++)
        if (add_game(argv[optind]) != 0)
            right = 0;
    if (!right || wanted_rounds < 2) {
        fprintf(stderr,
                "usage: pingpong [-ps] [-b BYTES] [-n ROUNDS] [blocking|waited|unpolled|write]"
                "...\n2 to %d rounds\n",
                MOST_ROUNDS);
        return 2;
    }
    return pair_run("pingpong", &attr, MEMORY, play_all);
}
