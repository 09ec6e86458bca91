/* SPDX-License-Identifier: MIT */
/*
 * Shared memory between two processes: effects of a peer that writes nonsense into it, leftovers of
 * a killed peer, and the fallback where there is none. SLUICE_TEST_KILLS is the number of killed
 * peers.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../support/fault.h"

#define BIG ((size_t)300000)
#define MAPS_MAX 16

/* Shared memory that this process has mapped and may write to. */
struct shared_map {
    uint8_t *bytes;
    size_t length;
};

static uint32_t find_maps(struct shared_map *maps)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    uint32_t count = 0;

    require(file, "%s", strerror(errno));
    while (fgets(line, sizeof line, file) && count < MAPS_MAX) {
        unsigned long start, end;

        if (strstr(line, "memfd:sluice-shm") && strstr(line, " rw-s ") &&
            sscanf(line, "%lx-%lx", &start, &end) == 2)
            maps[count++] = (struct shared_map){(uint8_t *)start, end - start};
    }
    fclose(file);
    return count;
}

/*
 * Maps present segments once more, as the library may unmap its own at any time. Returns how many
 * there are.
 */
static uint32_t duplicate(struct shared_map *maps, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint8_t *bytes = mremap(maps[i].bytes, 0, maps[i].length, MREMAP_MAYMOVE);

        require(bytes != MAP_FAILED || errno == EFAULT, "%s", strerror(errno));
        if (bytes != MAP_FAILED)
            maps[kept++] = (struct shared_map){bytes, maps[i].length};
    }
    return kept;
}

/* A generator of random numbers for this process. */
static uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Two ranks, each with a channel to the other, and memory that it may use. */
struct end {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_channel *channel;
    struct memory memory;
    struct sluice_remote_mr remote;
};

static void end_prepare(struct end *end)
{
    end->context = open_context();
    end->pd = sluice_pd_alloc(end->context);
    memory_open(&end->memory, end->pd, BIG);
}

static void end_meet(struct end *end, struct rank *rank)
{
    struct sluice_endpoint endpoints[2];
    struct sluice_remote_mr remotes[2];
    struct sluice_prepared_channel *prepared = prepare_channel(end->pd, NULL, &endpoints[0]);

    endpoints[1] = endpoints[0];
    rank_exchange(rank, endpoints, endpoints, sizeof endpoints[0]);
    end->channel = made(sluice_prepared_channel_handshake(prepared, &endpoints[!rank->index]));
    require_ok(sluice_mr_remote(end->memory.mr, &remotes[0]));
    remotes[1] = remotes[0];
    rank_exchange(rank, remotes, remotes, sizeof remotes[0]);
    end->remote = remotes[!rank->index];
    require_ok(sluice_channel_wait_connected(end->channel, DEADLINE));
}

static void end_open(struct end *end, struct rank *rank)
{
    end_prepare(end);
    end_meet(end, rank);
}

static void end_close(struct end *end)
{
    struct shared_map maps[MAPS_MAX];

    sluice_channel_close(end->channel);
    memory_close(&end->memory);
    sluice_pd_free(end->pd);
    sluice_context_close(end->context);
    require_result(find_maps(maps), 0);
}

/* Does one operation of each kind, with a random size. Returns the first failure. */
static int work(struct end *end, const struct rank *rank, uint64_t *state, int64_t deadline)
{
    static const size_t sizes[] = {8, 40, 300, 2000, 5000, 40000, BIG};
    size_t size = sizes[draw(state) % COUNT(sizes)];
    struct sluice_sge sge = memory_sge(&end->memory, 0, size);
    struct sluice_remote_mr remote;
    int result;

    require_ok(sluice_remote_mr_slice(&end->remote, 0, size, &remote));
    result = rank->index == 0 ? sluice_channel_send(end->channel, &sge, 1, deadline)
                              : sluice_channel_receive(end->channel, &sge, 1, deadline, NULL);
    if (result == 0)
        result = sluice_channel_write(end->channel, &sge, 1, &remote, deadline);
    if (result == 0)
        result = sluice_channel_read(end->channel, &sge, 1, &remote, deadline);
    return result;
}

/* Nonsense. */

enum nonsense {
    ANY_BYTE,
    ANY_WORD,
    FIRST_WORDS,
    ONE_BIT,
    ALL_ZERO,
    ALL_ONES,
    ALMOST_RECORDS,
    ALMOST_WORDS,
    KINDS
};

/* A segment: positions of its reader, words about the writer's requests, and slots. */
#define SEGMENT 4096
#define WORDS 16
#define SLOTS 192
#define SLOT_COUNT 61

/* Forges the next record: of any kind, and with a valid length. */
static void forge_record(uint8_t *segment, uint64_t *state)
{
    uint32_t taken;
    uint64_t record[8];

    memcpy(&taken, segment, sizeof taken);
    for (uint32_t i = 1; i < 8; i++)
        record[i] = draw(state) % 3 == 0 ? draw(state) : 0xfefefefefefefefe;
    record[1] = (uint64_t)(draw(state) % 8) << 32 | draw(state) % 8;
    record[2] = draw(state) % 4 == 0 ? UINT64_MAX : draw(state);
    record[0] = (uint64_t)(taken + 1) << 32 | (draw(state) % 4) << 20 |
                draw(state) % (draw(state) % 2 == 0 ? 40 : 2200);
    segment += SLOTS + (size_t)(taken % SLOT_COUNT) * 64;
    memcpy(segment + 8, &record[1], sizeof record - 8);
    atomic_store((_Atomic uint64_t *)(void *)segment, record[0]);
}

/* Forges words: some more or fewer requests done, or receives posted, than there are. */
static void forge_words(uint8_t *segment, uint64_t *state)
{
    uint32_t words[2];

    memcpy(words, segment + WORDS, sizeof words);
    words[draw(state) % 2] += draw(state) % 5 - 2;
    memcpy(segment + WORDS, words, sizeof words);
}

static void scribble_once(const struct shared_map *map, enum nonsense kind, uint64_t *state)
{
    uint32_t at = draw(state) % (uint32_t)(map->length / 8) * 8;
    uint64_t word = (uint64_t)draw(state) << 32 | draw(state);

    switch (kind) {
    case ANY_BYTE:
        map->bytes[at + draw(state) % 8] = (uint8_t)word;
        break;
    case ANY_WORD:
        memcpy(map->bytes + at, &word, sizeof word);
        break;
    case FIRST_WORDS: /* of lines: positions, flags, heads of records */
        map->bytes[at / 64 * 64 + draw(state) % 8] = (uint8_t)word;
        break;
    case ONE_BIT:
        map->bytes[at + draw(state) % 8] ^= (uint8_t)(1U << word % 8);
        break;
    case ALL_ZERO:
        memset(map->bytes, 0, map->length);
        break;
    case ALMOST_RECORDS:
        if (map->length == SEGMENT)
            forge_record(map->bytes, state);
        break;
    case ALMOST_WORDS:
        if (map->length == SEGMENT)
            forge_words(map->bytes, state);
        break;
    default:
        memset(map->bytes, 0xff, map->length);
    }
}

struct scribbler {
    struct shared_map maps[MAPS_MAX];
    uint32_t count;
    enum nonsense kind;
    uint64_t state;
    atomic_bool stop;
};

static void *scribble(void *argument)
{
    struct scribbler *scribbler = argument;

    while (!atomic_load(&scribbler->stop)) {
        uint32_t map = draw(&scribbler->state) % scribbler->count;

        scribble_once(&scribbler->maps[map], scribbler->kind, &scribbler->state);
        if (draw(&scribbler->state) % 4 == 0)
            let_pass(1000 * (draw(&scribbler->state) % 64));
    }
    return NULL;
}

/* Works until it fails, or for long enough. A message that was overwritten counts as missing. */
static void suffer(struct end *end, struct rank *rank, uint64_t *state)
{
    for (int i = 0; i < 200; i++) {
        int result = work(end, rank, state, SLUICE_MS(300));

        require(result == 0 || result == -EPROTO || result == -ECONNRESET || result == -ETIMEDOUT ||
                    result == -EACCES || result == -EMSGSIZE || result == -EREMOTEIO ||
                    result == -EIO || result == -ECANCELED,
                "%d: %s", result, sluice_last_error());
        if (result != 0)
            return;
    }
}

/* The library of this process uses both maps as well, and must trust neither. */
static void meet_nonsense(struct rank *rank)
{
    const int *kind = rank->argument;
    uint64_t state = (uint64_t)(*kind + 1);

    for (int round = 0; round < (short_run() ? 4 : 12); round++) {
        struct scribbler scribbler = {.kind = (enum nonsense) * kind, .state = state};
        struct memory apart;
        struct end end;
        pthread_t thread;
        uint64_t sizes = state; /* both ranks draw the same */

        end_open(&end, rank);
        memory_open_at(&apart, end.pd, 65536, SLUICE_ACCESS_LOCAL_WRITE, 0);
        pattern_fill(apart.bytes, apart.length, 1);
        require_ok(work(&end, rank, &sizes, DEADLINE));
        require_ok(work(&end, rank, &sizes, DEADLINE));
        scribbler.count = duplicate(scribbler.maps, find_maps(scribbler.maps));
        require(scribbler.count >= 2, "%u maps", scribbler.count);
        rank_barrier(rank);
        if (rank->index == 1)
            require(pthread_create(&thread, NULL, scribble, &scribbler) == 0, "%d", round);
        suffer(&end, rank, &sizes);
        if (rank->index == 1) {
            atomic_store(&scribbler.stop, true);
            pthread_join(thread, NULL);
        }
        for (uint32_t i = 0; i < scribbler.count; i++)
            munmap(scribbler.maps[i].bytes, scribbler.maps[i].length);
        pattern_check(apart.bytes, apart.length, 1);
        memory_close(&apart);
        rank_barrier(rank);
        end_close(&end);
        draw(&state);
    }
}

TEST(nonsense_harms_no_other_channel, .times = KINDS)
{
    group_run(2, meet_nonsense, &_i, 90);
}

/* Death. */

#define FLIGHTS 6

static uint32_t kills(void)
{
    const char *value = getenv("SLUICE_TEST_KILLS");

    return value ? (uint32_t)strtoul(value, NULL, 10) : short_run() ? 5 : 20;
}

static void be_killed(struct end *end, struct rank *rank, uint64_t *state)
{
    while (work(end, rank, state, DEADLINE) == 0)
        ;
    rank_await_death(rank);
}

/* One request of each kind is in flight, and the peer dies somewhere among them. */
static void fly(struct end *end, struct rank *rank, uint64_t *state)
{
    static const uint32_t opcodes[] = {SLUICE_OP_SEND, SLUICE_OP_WRITE, SLUICE_OP_READ};
    struct sluice_request requests[FLIGHTS];
    struct sluice_sge sge = memory_sge(&end->memory, 0, BIG);
    struct tally tally;
    uint64_t sizes = *state;
    int64_t killed;

    for (uint32_t i = 0, rounds = draw(state) % 20; i < rounds; i++)
        require_ok(work(end, rank, &sizes, DEADLINE));
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        requests[i] = request_of(opcodes[i % 3], 0, &sge);
        requests[i].user_data = i;
        requests[i].remote =
            opcodes[i % 3] == SLUICE_OP_SEND ? (struct sluice_remote_mr){0} : end->remote;
    }
    tally_open(&tally, 0, FLIGHTS);
    require_result(sluice_channel_post(end->channel, requests, FLIGHTS, DEADLINE, NULL), FLIGHTS);
    let_pass(1000 * (draw(state) % 512));
    rank_kill(rank, 1);
    killed = fair_now();
    tally_channel(&tally, end->channel, FLIGHTS, DEADLINE);
    require(fair_now() - killed < NOTICE, "%lld ms", (long long)(fair_now() - killed) / 1000000);
    tally_close_channel(&tally, end->channel);
}

static void lose_one(struct rank *rank)
{
    const uint64_t *seed = rank->argument;
    uint64_t state = *seed;
    int fds = count_fds();
    struct end end;

    end_open(&end, rank);
    if (rank->index == 1)
        be_killed(&end, rank, &state);
    fly(&end, rank, &state);
    end_close(&end);
    require(settle_fds(fds) <= fds, "%d descriptors, then %d", fds, count_fds());
}

TEST(killed_peers_leave_nothing)
{
    for (uint64_t seed = 1; seed <= kills(); seed++)
        group_run(2, lose_one, &seed, 50);
}

/* Rings for large messages are released after some time without any. */

#define RING ((size_t)1 << 18)

static uint32_t count_rings(void)
{
    struct shared_map maps[MAPS_MAX];
    uint32_t count = find_maps(maps), rings = 0;

    for (uint32_t i = 0; i < count; i++)
        rings += maps[i].length == RING;
    return rings;
}

/*
 * Sends in both directions, with a size that goes through the ring. Returns the most rings at a
 * time.
 */
static uint32_t pass_large(struct end *end, const struct rank *rank)
{
    struct sluice_sge sge = memory_sge(&end->memory, 0, 20000);
    uint32_t most = 0;

    for (uint32_t i = 0; i < 8; i++) {
        if ((i + rank->index) % 2 == 0)
            require_ok(sluice_channel_send(end->channel, &sge, 1, DEADLINE));
        else
            require_ok(sluice_channel_receive(end->channel, &sge, 1, DEADLINE, NULL));
        most = count_rings() > most ? count_rings() : most;
    }
    return most;
}

/* A program that is busy elsewhere, and one that sleeps in the library. */
static void idle(struct end *end, struct rank *rank, bool inside)
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_completion completion;
    struct sluice_handle handle;
    int64_t end_of_patience = fair_now() + SLUICE_S(30);

    if (inside && rank->index == 1) {
        handle = post(end->channel, &receive);
        require_ok(sluice_channel_wait(end->channel, &handle, DEADLINE * 3, &completion));
    } else {
        while (count_rings() > 0 && fair_now() < end_of_patience)
            let_pass(SLUICE_MS(20));
        if (inside)
            require_ok(sluice_channel_send(end->channel, NULL, 0, DEADLINE));
    }
    require_result((int)count_rings(), 0);
}

static void use_now_and_then(struct rank *rank)
{
    struct end end;
    uint32_t rings = 0;

    end_open(&end, rank);
    for (int round = 0; round < 4; round++) {
        rings += pass_large(&end, rank);
        rank_barrier(rank);
        idle(&end, rank, round % 2 != 0);
        rank_barrier(rank);
    }
    require(rings > 0, "there was none%s", "");
    end_close(&end);
}

TEST(rings_go_back)
{
    group_run(2, use_now_and_then, NULL, 100);
}

/* Without memory. */

static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};

    require(setrlimit(RLIMIT_FSIZE, &limit) == 0, "%s", strerror(errno));
}

/* Neither rank may make a file of a page, so there are no segments: the leading rank makes them. */
static void go_without(struct rank *rank)
{
    struct shared_map maps[MAPS_MAX];
    uint64_t state = 7;
    struct end end;

    end_prepare(&end);
    limit_files(2048);
    end_meet(&end, rank);
    for (int i = 0; i < 20; i++)
        require_ok(work(&end, rank, &state, DEADLINE));
    require_result(find_maps(maps), 0);
    rank_barrier(rank);
    end_close(&end);
    /* A build with counters writes them when the process ends. */
    limit_files(RLIM_INFINITY);
}

TEST(without_memory_a_socket_will_do)
{
    group_run(2, go_without, NULL, 50);
}

int main(void)
{
    return RUN_ON_SOFT("shared", {"shm", WIRE_SHM, 200});
}
