/* SPDX-License-Identifier: MIT */
/*
 * One-sided requests that the initiator executes in mapped memory of the peer: they have the same
 * effects as if the peer had executed them, in their order, with its rights and no others.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "direct.h"

/* Random operations. */

/* A model of the peer's region is compared with it. */
static void do_anything(struct end *end, uint8_t *model, uint64_t *state)
{
    static const size_t sizes[] = {1, 8, 9, 63, 200, 257, 4097, 70001, MIB};
    size_t size = sizes[draw(state) % COUNT(sizes)];
    size_t at = draw(state) % (REGION - size);
    uint32_t count = 1 + draw(state) % 4;
    struct sluice_remote_mr remote = slice(&end->remote, at, size);
    struct sluice_sge sges[4];
    struct sluice_sge result = own_sge(end, 0, 8);
    uint64_t before, word;

    for (uint32_t i = 0; i < count; i++)
        sges[i] =
            own_sge(end, size / count * i, i < count - 1 ? size / count : size - size / count * i);
    switch (draw(state) % 4) {
    case 0:
        pattern_fill(end->mine, size, *state);
        memcpy(model + at, end->mine, size);
        require_ok(sluice_channel_write(end->channel, sges, count, &remote, DEADLINE));
        break;
    case 1:
        memset(end->mine, 0, size);
        require_ok(sluice_channel_read(end->channel, sges, count, &remote, DEADLINE));
        require(memcmp(end->mine, model + at, size) == 0, "%zu bytes at %zu", size, at);
        break;
    default:
        at = at / 8 * 8;
        at = at > REGION - 8 ? REGION - 8 : at;
        remote = slice(&end->remote, at, 8);
        memcpy(&before, model + at, 8);
        if (*state % 3 == 0)
            require_ok(sluice_channel_fetch_add(end->channel, &result, &remote, 7, DEADLINE));
        else
            require_ok(sluice_channel_compare_swap(
                end->channel, &result, &remote, *state % 3 == 1 ? before : ~before, 99, DEADLINE));
        memcpy(&word, end->mine, 8);
        require(word == before, "%#llx", (unsigned long long)word);
        before = *state % 3 == 0 ? before + 7 : *state % 3 == 1 ? 99 : before;
        memcpy(model + at, &before, 8);
    }
}

static void work_on(struct rank *rank)
{
    struct end end;
    uint64_t state = 3;
    uint8_t *model = calloc(1, REGION);

    end_open(&end, rank);
    for (int i = 0; rank->index == 0 && i < (short_run() ? 600 : 3000); i++)
        do_anything(&end, model, &state);
    if (rank->index == 0)
        use_until_known(&end);
    rank_exchange(rank, &(uint64_t[2]){state, state}, &(uint64_t[2]){0}, 8);
    if (rank->index == 0)
        require_result((int)atomic_load(&mapped), 1);
    rank_barrier(rank);
    end_close(&end);
    free(model);
}

TEST(direct_access_does_what_the_peer_would_do)
{
    group_run(2, work_on, NULL, 60);
}

/* The owner sees what the peer wrote, and the peer sees what the owner wrote. */
static void count_together(struct rank *rank)
{
    enum { ROUNDS = 20000 };
    struct sluice_remote_mr remote;
    struct sluice_sge result;
    struct end end;

    end_open(&end, rank);
    remote = slice(&end.remote, 0, 8);
    result = own_sge(&end, 0, 8);
    if (rank->index == 0)
        use_until_known(&end);
    rank_barrier(rank);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (rank->index == 0)
            require_ok(sluice_channel_fetch_add(end.channel, &result, &remote, 1, DEADLINE));
        else
            atomic_fetch_add((_Atomic uint64_t *)(void *)end.bytes, 1);
    }
    rank_barrier(rank);
    if (rank->index == 1)
        require(atomic_load((_Atomic uint64_t *)(void *)end.bytes) == 2 * ROUNDS, "%llu",
                (unsigned long long)*(uint64_t *)(void *)end.bytes);
    rank_barrier(rank);
    end_close(&end);
}

TEST(direct_atomics_are_atomic_against_the_owner)
{
    group_run(2, count_together, NULL, 60);
}

/* Order. */

/* A send without a receive holds back a write behind it. */
static void keep_order(struct rank *rank)
{
    struct end end;

    end_open(&end, rank);
    if (rank->index == 0)
        use_until_known(&end);
    rank_barrier(rank);
    for (uint32_t round = 1; round <= 200; round++) {
        struct sluice_sge sge = own_sge(&end, 0, 8);
        struct sluice_request requests[3] = {request_of(SLUICE_OP_SEND, 0, &sge),
                                             request_of(SLUICE_OP_WRITE, 0, &sge),
                                             request_of(SLUICE_OP_SEND, 0, &sge)};
        struct sluice_completion completions[3];

        requests[1].remote = slice(&end.remote, 0, 8);
        if (rank->index == 0) {
            *(uint64_t *)(void *)end.mine = round;
            require_result(sluice_channel_post(end.channel, requests, 3, DEADLINE, NULL), 3);
        }
        rank_barrier(rank);
        if (rank->index == 1) {
            require(*(uint64_t *)(void *)end.bytes == round - 1, "the write was first");
            require_ok(sluice_channel_receive(end.channel, &sge, 1, DEADLINE, NULL));
            require_ok(sluice_channel_receive(end.channel, &sge, 1, DEADLINE, NULL));
            require(*(uint64_t *)(void *)end.bytes == round, "the second send was first");
        } else {
            for (int i = 0; i < 3; i++) {
                require_ok(sluice_channel_next(end.channel, DEADLINE, &completions[i]));
                require(completions[i].opcode == requests[i].opcode, "%u", completions[i].opcode);
            }
        }
        rank_barrier(rank);
    }
    end_close(&end);
}

TEST(earlier_requests_are_done_first)
{
    group_run(2, keep_order, NULL, 60);
}

/* Memory. */

/* Returns the resident bytes of the tables of peers, which are mapped for reading alone. */
static size_t resident_tables(void)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    bool is_table = false;
    size_t sum = 0, kilobytes;
    char line[512], rights[8];

    require(maps != NULL, "%s", strerror(errno));
    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%*x-%*x %7s", rights) == 1)
            is_table = strcmp(rights, "r--s") == 0 && strstr(line, "/memfd:sluice-shm") != NULL;
        else if (is_table && sscanf(line, "Rss: %zu kB", &kilobytes) == 1)
            sum += 1024 * kilobytes;
    fclose(maps);
    return sum;
}

static void use_little(struct rank *rank)
{
    struct end end;

    atomic_store(&mapped, 0);
    end_open(&end, rank);
    if (rank->index == 0) {
        use_until_known(&end);
        require_ok(read_word(&end, 0));
        require(resident_tables() <= (size_t)sysconf(_SC_PAGESIZE), "%zu bytes", resident_tables());
    }
    rank_barrier(rank);
    end_close(&end);
}

TEST(one_page_of_the_table_of_a_peer_is_resident)
{
    group_run(2, use_little, NULL, 60);
}

/* Lists. */

/* Two lists that name many regions ask for all of them, not only for that of the first request. */
static void use_many(struct rank *rank)
{
    enum { PARTS = 24, PART = 64 };
    struct sluice_request requests[PARTS];
    struct sluice_mr *parts[PARTS];
    struct end end;

    atomic_store(&mapped, 0);
    end_open(&end, rank);
    for (int i = 0; i < PARTS; i++) {
        parts[i] = alloc(&end, PART, SLUICE_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS);
        memset(sluice_mr_addr(parts[i]), i + 1, PART);
        requests[i] = (struct sluice_request){.opcode = SLUICE_OP_READ,
                                              .sge_count = 1,
                                              .sge = own_sge(&end, (size_t)i * PART, PART),
                                              .remote = share(&end, parts[i])};
    }
    for (int list = 0; rank->index == 0 && list < 2; list++)
        require_ok(sluice_channel_submit(end.channel, requests, PARTS, DEADLINE, NULL));
    for (int64_t until = fair_now() + DEADLINE; rank->index == 0 && atomic_load(&mapped) < PARTS;) {
        require(fair_now() < until, "%u of %d regions are mapped", atomic_load(&mapped), PARTS);
        require_result(sluice_channel_poll(end.channel, NULL, 0), 0);
    }
    for (int i = 0; rank->index == 0 && i < PARTS; i++)
        value_check(end.mine + (size_t)i * PART, PART, i + 1);
    rank_barrier(rank);
    for (int i = 0; i < PARTS; i++)
        require_ok(sluice_mr_deregister(parts[i]));
    end_close(&end);
}

TEST(a_list_asks_for_all_of_its_regions)
{
    group_run(2, use_many, NULL, 60);
}

/* Rights. */

struct case_of_rights {
    uint32_t region, channel;
    bool maps;
    const char *how; /* as /proc/self/maps has it */
};

static const struct case_of_rights rights[] = {
    {REMOTE_RIGHTS, 0, true, "rw-s"},
    {SLUICE_ACCESS_REMOTE_READ, 0, true, "r--s"},
    {SLUICE_ACCESS_REMOTE_READ, SLUICE_ACCESS_REMOTE_READ, true, "r--s"},
    /* Mapping it would permit to write to it. */
    {SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE, SLUICE_ACCESS_REMOTE_READ, false, ""},
};

static void keep_rights(struct rank *rank)
{
    const struct case_of_rights *is = rank->argument;
    uint32_t before;
    struct end end;
    int result;

    end_open_with(&end, rank, is->region, is->channel);
    before = count_maps("");
    if (rank->index == 0) {
        struct sluice_sge sge = own_sge(&end, 0, 8);
        struct sluice_remote_mr remote = slice(&end.remote, 8, 8);
        bool may_write = (is->region & SLUICE_ACCESS_REMOTE_WRITE) != 0 && is->channel == 0;

        use_until_known(&end);
        require_result((int)atomic_load(&mapped), is->maps);
        require_result((int)(count_maps("") - before), is->maps);
        if (is->maps && strcmp(is->how, "r--s") == 0)
            require_result((int)count_maps("r--s"), 1);
        memset(end.mine, 0x11, 8);
        result = sluice_channel_write(end.channel, &sge, 1, &remote, DEADLINE);
        require((result == 0) == may_write, "%d", result);
        require(may_write || strstr(sluice_last_error(), "access"), "%s", sluice_last_error());
    }
    rank_barrier(rank);
    if (rank->index == 1)
        value_check(end.bytes + 8, 8,
                    (is->region & SLUICE_ACCESS_REMOTE_WRITE) != 0 && is->maps ? 0x11 : 0);
    end_close(&end);
}

TEST(peers_get_no_more_than_their_rights, .times = COUNT(rights))
{
    group_run(2, keep_rights, &rights[_i], 60);
}

static uint32_t count_writable(void)
{
    uint32_t count = 0;

    for (int fd = 3; fd < 1024; fd++) {
        char path[64], name[64] = "";
        void *map;
        int again;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, name, sizeof name - 1) < 0 ||
            strcmp(name, "/memfd:sluice (deleted)") != 0)
            continue;
        again = open(path, O_RDWR | O_CLOEXEC);
        map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
        require(map != MAP_FAILED || errno == EPERM, "%s", strerror(errno));
        require(map != MAP_FAILED || write(again, "x", 1) < 0, "it was written to %s", path);
        if (map != MAP_FAILED)
            munmap(map, 4096);
        close(again);
        count += map != MAP_FAILED;
    }
    return count;
}

/* A process that has the descriptor, or opens it anew, cannot write where peers may not. */
TEST(descriptor_gives_no_more_than_the_rights)
{
    static const uint32_t access[] = {SLUICE_ACCESS_LOCAL_WRITE,
                                      SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ,
                                      SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE,
                                      SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC};
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);

    for (size_t i = 0; i < COUNT(access); i++) {
        struct sluice_mr *mr = made(sluice_mr_alloc(pd, 4096, access[i]));

        memset(sluice_mr_addr(mr), 1, 4096);
        require_result((int)count_writable(), i >= 2);
        require_ok(sluice_mr_deregister(mr));
    }
    sluice_pd_free(pd);
    sluice_context_close(context);
}

/* Ranges beyond its end, or before it, are refused as ever, and nothing is accessed. */
static void reach_beyond(struct rank *rank)
{
    static const int64_t from[] = {-8, (int64_t)REGION - 4, (int64_t)REGION, INT64_MAX, INT64_MIN};

    for (size_t i = 0; i < COUNT(from); i++) {
        struct end end;

        atomic_store(&mapped, 0);
        end_open(&end, rank);
        if (rank->index == 0) {
            struct sluice_sge sge = own_sge(&end, 0, 8);
            struct sluice_remote_mr remote = end.remote;

            use_until_known(&end);
            remote.addr += (uint64_t)from[i];
            remote.length = 8;
            require(sluice_channel_write(end.channel, &sge, 1, &remote, DEADLINE) < 0, "%zu", i);
        }
        rank_barrier(rank);
        end_close(&end);
    }
}

TEST(nothing_beyond_the_region_is_touched)
{
    group_run(2, reach_beyond, NULL, 60);
}

/*
 * Bytes that one pass copies itself are bounded, as other peers and deadlines wait meanwhile.
 * Without the bound all of this would take many seconds.
 */
static void copy_for_long(struct rank *rank)
{
    enum { REQUESTS = 20000, LONG = 16 * MIB };
    struct sluice_request *requests = calloc(REQUESTS, sizeof *requests);
    struct sluice_remote_mr remote;
    struct sluice_mr *mr;
    struct end end;

    require(requests, "%s", strerror(errno));
    end_open(&end, rank);
    mr = alloc(&end, LONG, SLUICE_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS);
    remote = share(&end, mr);
    if (rank->index == 0) {
        int64_t begun;

        for (size_t i = 0; i < REQUESTS; i++) {
            requests[i] = (struct sluice_request){
                .opcode = SLUICE_OP_WRITE, .sge_count = 1, .remote = remote};
            require_ok(sluice_mr_sge(mr, 0, LONG, &requests[i].sge));
        }
        while (atomic_load(&mapped) == 0)
            require_ok(sluice_channel_submit(end.channel, requests, 1, DEADLINE, NULL));
        begun = fair_now();
        require_result(sluice_channel_submit(end.channel, requests, REQUESTS, SLUICE_MS(10), NULL),
                       -ETIMEDOUT);
        require(fair_now() - begun < NOTICE, "%lld ms", (long long)(fair_now() - begun) / 1000000);
    }
    rank_barrier(rank);
    sluice_channel_close(end.channel);
    end.channel = NULL;
    require_ok(sluice_mr_deregister(mr));
    end_close(&end);
    free(requests);
}

TEST(a_deadline_is_kept_while_much_is_copied)
{
    group_run(2, copy_for_long, NULL, 60);
}

/*
 * Tests a write and a read behind it: if rank 1 changes the word that is read and then looks for
 * the write, either it finds the write, or the read finds its change. Offsets of words in the
 * region of rank 1, a cache line each.
 */
enum { WRITTEN = 0, READ = 64, GO = 128, SEEN = 192 };

static _Atomic uint64_t *word_at(uint8_t *bytes, size_t offset)
{
    return (_Atomic uint64_t *)(void *)(bytes + offset);
}

#define LAST_ROUND UINT64_MAX

static void answer_rounds(struct end *end)
{
    uint64_t round, last = 0;

    for (unsigned time = 1; (round = atomic_load(word_at(end->bytes, GO))) != LAST_ROUND; time++) {
        if (time % 1000 == 0)
            sched_yield();
        if (round == last)
            continue;
        last = round;
        atomic_store_explicit(word_at(end->bytes, READ), round, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        round |= atomic_load_explicit(word_at(end->bytes, WRITTEN), memory_order_relaxed) << 32;
        atomic_store(word_at(end->bytes, SEEN), round);
    }
}

static void go(struct end *end, uint64_t round)
{
    const struct sluice_sge sge = own_sge(end, GO, 8);
    const struct sluice_remote_mr remote = slice(&end->remote, GO, 8);

    atomic_store(word_at(end->mine, GO), round);
    require_ok(sluice_channel_write(end->channel, &sge, 1, &remote, DEADLINE));
}

/* Waits until rank 1 has answered. Returns the written value that it found. */
static uint64_t await_answer(struct end *end, uint64_t round)
{
    const struct sluice_sge sge = own_sge(end, SEEN, 8);
    const struct sluice_remote_mr remote = slice(&end->remote, SEEN, 8);
    uint64_t answer;

    for (unsigned time = 1;; time++) {
        require_ok(sluice_channel_read(end->channel, &sge, 1, &remote, DEADLINE));
        answer = atomic_load(word_at(end->mine, SEEN));
        if ((uint32_t)answer == round)
            return answer >> 32;
        if (time % 1000 == 0)
            sched_yield();
    }
}

static void ask_round(struct end *end, uint64_t round)
{
    const struct sluice_request pair[2] = {{.opcode = SLUICE_OP_WRITE,
                                            .sge_count = 1,
                                            .sge = own_sge(end, WRITTEN, 8),
                                            .remote = slice(&end->remote, WRITTEN, 8)},
                                           {.opcode = SLUICE_OP_READ,
                                            .sge_count = 1,
                                            .sge = own_sge(end, READ, 8),
                                            .remote = slice(&end->remote, READ, 8)}};

    atomic_store(word_at(end->mine, WRITTEN), round);
    go(end, round);
    for (volatile uint64_t spin = 0; spin < round % 97; spin++)
        ;
    require_ok(sluice_channel_submit(end->channel, pair, 2, DEADLINE, NULL));
    require(await_answer(end, round) == round || atomic_load(word_at(end->mine, READ)) == round,
            "round %llu: neither has seen the other", (unsigned long long)round);
}

static void look_at_each_other(struct rank *rank)
{
    uint64_t rounds = short_run() ? 20000 : 100000;
    int64_t until = clock_now() + SLUICE_S(short_run() ? 2 : 10);
    struct end end;

    end_open(&end, rank);
    if (rank->index == 0)
        use_until_known(&end);
    rank_barrier(rank);
    if (rank->index == 1)
        answer_rounds(&end);
    for (uint64_t i = 1; rank->index == 0 && i <= rounds && clock_now() < until; i++)
        ask_round(&end, i);
    if (rank->index == 0)
        go(&end, LAST_ROUND);
    rank_barrier(rank);
    end_close(&end);
}

TEST(a_read_does_not_pass_the_write_before_it)
{
    group_run(2, look_at_each_other, NULL, 100);
}

int main(void)
{
    return RUN_ON_SOFT("direct", {"shm", WIRE_SHM, 200});
}
