/* SPDX-License-Identifier: MIT */
/*
 * The front of an exchange, on functions of the program: arguments, calls that are composed of
 * allgather, failures and which ranks learn of them, and the locality of ranks.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "../support/suite.h"

#define RANKS 5
#define LONG SLUICE_S(20)

/* Threads that gather through shared memory. */
struct table {
    pthread_barrier_t barrier;
    uint8_t *bytes;
    size_t size; /* the largest gather */
};

struct seat {
    struct table *table;
    uint32_t rank, ranks;
    struct sluice_exchange_provider provider;
    struct sluice_exchange *exchange;
    pthread_t thread;
    void (*function)(struct seat *seat);
    int fails; /* result of the next call */
    unsigned gathers, swaps, barriers, closes;
    size_t bytes;     /* of the last call */
    int64_t deadline; /* of the last call */
};

static int gather(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    struct seat *seat = argument;
    seat->gathers++;
    seat->bytes = bytes;
    seat->deadline = deadline;
    if (seat->fails) {
        return seat->fails;
    }
    if (!seat->table) {
        for (uint32_t i = 0; i < seat->ranks; i++) {
            memcpy((char *)all + i * bytes, own, bytes);
        }
        return 0;
    }
    require(bytes * seat->ranks <= seat->table->size, "%zu bytes", bytes);
    memcpy(seat->table->bytes + seat->rank * bytes, own, bytes);
    pthread_barrier_wait(&seat->table->barrier);
    memcpy(all, seat->table->bytes, bytes * seat->ranks);
    pthread_barrier_wait(&seat->table->barrier);
    return 0;
}

static int swap(void *argument, const void *to, void *from, size_t bytes, int64_t deadline)
{
    struct seat *seat = argument;
    seat->swaps++;
    seat->deadline = deadline;
    memcpy(from, to, bytes * seat->ranks);
    return seat->fails;
}

static int meet(void *argument, int64_t deadline)
{
    struct seat *seat = argument;
    seat->barriers++;
    seat->deadline = deadline;
    return seat->fails;
}

static void leave(void *argument)
{
    struct seat *seat = argument;
    seat->closes++;
}

/* A single rank, which gets its own data as those of all others. */
static struct seat *sit_alone(struct seat *seat, bool whole)
{
    *seat = (struct seat){.rank = 1, .ranks = 3};
    seat->provider.size = sizeof(seat->provider);
    seat->provider.allgather = gather;
    seat->provider.close = leave;
    if (whole) {
        seat->provider.alltoall = swap;
        seat->provider.barrier = meet;
    }
    seat->exchange = made(sluice_exchange_wrap(&seat->provider, seat, seat->rank, seat->ranks));
    return seat;
}

TEST(wrong_providers)
{
    struct sluice_exchange_provider good = {.size = sizeof(good), .allgather = gather};
    struct sluice_exchange_provider bad = good;
    struct {
        struct sluice_exchange_provider known;
        uint64_t more;
    } longer = {good, 1};
    require_null(sluice_exchange_wrap(NULL, NULL, 0, 1), EINVAL, "provider NULL");
    bad.size = 8;
    require_null(sluice_exchange_wrap(&bad, NULL, 0, 1), EINVAL, "size 8");
    bad = good;
    bad.reserved = 7;
    require_null(sluice_exchange_wrap(&bad, NULL, 0, 1), EINVAL, "reserved 7");
    bad = good;
    bad.allgather = NULL;
    require_null(sluice_exchange_wrap(&bad, NULL, 0, 1), EINVAL, "allgather");
    require_null(sluice_exchange_wrap(&good, NULL, 0, 0), EINVAL, "0 ranks");
    require_null(sluice_exchange_wrap(&good, NULL, 0, SLUICE_MAX_RANKS + 1), EINVAL, "65537");
    require_null(sluice_exchange_wrap(&good, NULL, 3, 3), EINVAL, "rank 3");
    longer.known.size = sizeof(longer);
    require_null(sluice_exchange_wrap(&longer.known, NULL, 0, 1), E2BIG, "non-zero");
}

TEST(wrong_arguments_change_nothing)
{
    struct seat seat;
    uint8_t bytes[16] = {0};
    uint8_t all[64];
    uint32_t rank, ranks;
    int64_t no_exchange[16] = {0};
    struct sluice_exchange *none = (struct sluice_exchange *)no_exchange;
    struct sluice_exchange *exchange = sit_alone(&seat, false)->exchange;
    struct sluice_exchange_info info = {.size = 8};

    require_error(sluice_exchange_allgather(NULL, bytes, all, 1, LONG), -EINVAL, "exchange");
    require_error(sluice_exchange_allgather(none, bytes, all, 1, LONG), -EINVAL, "exchange");
    require_error(sluice_exchange_allgather(exchange, NULL, all, 1, LONG), -EINVAL, "NULL");
    require_error(sluice_exchange_allgather(exchange, bytes, NULL, 1, LONG), -EINVAL, "NULL");
    require_error(sluice_exchange_allgather(exchange, bytes, all, 1, -1), -EINVAL, "negative");
    require_error(
        sluice_exchange_allgather(exchange, bytes, all, SLUICE_MAX_EXCHANGE_BYTES + 1, LONG),
        -EINVAL, "1048577 bytes");
    require_error(sluice_exchange_alltoall(NULL, bytes, all, 1, LONG), -EINVAL, "exchange");
    require_error(sluice_exchange_alltoall(exchange, NULL, all, 1, LONG), -EINVAL, "NULL");
    require_error(sluice_exchange_alltoall(exchange, bytes, NULL, 1, LONG), -EINVAL, "NULL");
    require_error(
        sluice_exchange_alltoall(exchange, bytes, all, SLUICE_MAX_EXCHANGE_BYTES + 1, LONG),
        -EINVAL, "1048577 bytes");
    require_error(sluice_exchange_alltoall(exchange, bytes, all, 1, -1), -EINVAL, "negative");
    require_error(sluice_exchange_barrier(none, LONG), -EINVAL, "exchange");
    require_error(sluice_exchange_barrier(exchange, -5), -EINVAL, "negative");
    require_error(sluice_exchange_missing(NULL, &rank, 1), -EINVAL, "exchange");
    require_error(sluice_exchange_missing(exchange, NULL, 1), -EINVAL, "NULL");
    require_error(sluice_exchange_locality(exchange, NULL, &ranks, LONG), -EINVAL, "NULL");
    require_error(sluice_exchange_locality(exchange, &rank, NULL, LONG), -EINVAL, "NULL");
    require_error(sluice_exchange_locality(none, &rank, &ranks, LONG), -EINVAL, "exchange");
    require_error(sluice_exchange_query(exchange, NULL), -EINVAL, "NULL");
    require_error(sluice_exchange_query(exchange, &info), -EINVAL, "size 8");
    info.size = 5000;
    require_error(sluice_exchange_query(exchange, &info), -E2BIG, "5000");
    require(seat.gathers == 0, "a provider was called");

    require_ok(sluice_exchange_allgather(exchange, bytes, all, sizeof(bytes), LONG));
    require(seat.gathers == 1 && seat.bytes == 16 && seat.deadline <= LONG, "%zu", seat.bytes);
    sluice_exchange_close(exchange);
    require(seat.closes == 1, "closed %u times", seat.closes);
    sluice_exchange_close(NULL);
}

TEST(what_it_is)
{
    struct seat seat;
    struct sluice_exchange_info info = {.size = sizeof(info)};
    sit_alone(&seat, false);
    require_ok(sluice_exchange_query(seat.exchange, &info));
    require(info.kind == SLUICE_EXCHANGE_OWN && info.rank == 1 && info.ranks == 3, "kind %u",
            info.kind);
    require(strcmp(info.source, "the program") == 0, "%s", info.source);
    require(info.device[0] == '\0', "%s", info.device);
    sluice_exchange_close(seat.exchange);
}

/* Functions of the program are called if there are any, else allgather; and never with no bytes. */
TEST(functions_that_are_there_are_called)
{
    struct seat seat;
    uint8_t to[3] = {4, 5, 6};
    uint8_t from[3];
    sit_alone(&seat, true);
    require_ok(sluice_exchange_alltoall(seat.exchange, to, from, 1, SLUICE_FOREVER));
    require(seat.swaps == 1 && seat.deadline == SLUICE_FOREVER, "%u", seat.swaps);
    require_ok(sluice_exchange_barrier(seat.exchange, LONG));
    require(seat.barriers == 1 && seat.deadline > 0 && seat.deadline <= LONG, "%lld",
            (long long)seat.deadline);
    require_ok(sluice_exchange_allgather(seat.exchange, NULL, NULL, 0, LONG));
    require_ok(sluice_exchange_alltoall(seat.exchange, NULL, NULL, 0, LONG));
    require(seat.barriers == 3 && seat.gathers == 0, "%u barriers", seat.barriers);
    sluice_exchange_close(seat.exchange);

    sit_alone(&seat, false);
    require_ok(sluice_exchange_allgather(seat.exchange, NULL, NULL, 0, LONG));
    require_ok(sluice_exchange_alltoall(seat.exchange, NULL, NULL, 0, LONG));
    require_ok(sluice_exchange_barrier(seat.exchange, LONG));
    require(seat.gathers == 3 && seat.bytes == 1, "%u gathers of %zu", seat.gathers, seat.bytes);
    sluice_exchange_close(seat.exchange);
}

static int call_number_within(struct sluice_exchange *exchange, int number, int64_t deadline)
{
    uint8_t to[3] = {0};
    uint8_t from[3];
    uint32_t rank, ranks;
    switch (number) {
    case 0:
        return sluice_exchange_allgather(exchange, to, from, 1, deadline);
    case 1:
        return sluice_exchange_alltoall(exchange, to, from, 1, deadline);
    case 2:
        return sluice_exchange_barrier(exchange, deadline);
    default:
        return sluice_exchange_locality(exchange, &rank, &ranks, deadline);
    }
}

static int call_number(struct sluice_exchange *exchange, int number)
{
    return call_number_within(exchange, number, LONG);
}

/* A call without time left does not begin what other ranks would wait for, so nothing breaks. */
TEST(deadlines_of_zero)
{
    const struct sluice_exchange_attr attr = {.size = sizeof(attr), .ranks = 1};
    struct seat seat;
    int64_t no_exchange[16] = {0};
    for (int whole = 0; whole < 2; whole++) {
        sit_alone(&seat, whole);
        for (int number = 0; number < 4; number++) {
            require_error(call_number_within(seat.exchange, number, 0), -ETIMEDOUT, "deadline 0");
            require_result(call_number_within((struct sluice_exchange *)no_exchange, number, 0),
                           -EINVAL);
        }
        require(seat.gathers + seat.swaps + seat.barriers == 0, "a provider was called");
        for (int number = 0; number < 4; number++) {
            require_ok(call_number(seat.exchange, number));
        }
        sluice_exchange_close(seat.exchange);
    }
    require_null(sluice_exchange_open(&attr, 0), ETIMEDOUT, "deadline 0");
}

TEST(a_failure_is_for_good)
{
    struct seat seat;
    for (int number = 0; number < 4; number++) {
        for (int whole = 0; whole < 2; whole++) {
            sit_alone(&seat, whole);
            seat.fails = -EHOSTDOWN;
            require_error(call_number(seat.exchange, number), -EHOSTDOWN, "provider failed down");
            seat.fails = 0;
            unsigned calls = seat.gathers + seat.swaps + seat.barriers;
            for (int later = 0; later < 4; later++) {
                require_error(call_number(seat.exchange, later), -ENOTCONN, "failed before");
            }
            require(seat.gathers + seat.swaps + seat.barriers == calls, "it was called");
            require_result(sluice_exchange_missing(seat.exchange, NULL, 0), 0);
            sluice_exchange_close(seat.exchange);
        }
    }
    sit_alone(&seat, false);
    seat.fails = 3;
    require_error(sluice_exchange_barrier(seat.exchange, LONG), -EINVAL, "allgather returned 3");
    sluice_exchange_close(seat.exchange);
}

/* Other ranks do not notice such a call: the next call works as if it had not been made. */
TEST(call_without_time_has_no_effect)
{
    struct seat seat;
    uint8_t to[3] = {0}, from[3];
    uint32_t rank, ranks;
    for (int whole = 0; whole < 2; whole++) {
        struct sluice_exchange *exchange = sit_alone(&seat, whole)->exchange;
        require_error(sluice_exchange_allgather(exchange, to, from, 1, 0), -ETIMEDOUT, "0 no rank");
        require_error(sluice_exchange_allgather(exchange, NULL, NULL, 0, 0), -ETIMEDOUT, "0");
        require_error(sluice_exchange_alltoall(exchange, to, from, 1, 0), -ETIMEDOUT, "0");
        require_error(sluice_exchange_barrier(exchange, 0), -ETIMEDOUT, "0");
        require_error(sluice_exchange_locality(exchange, &rank, &ranks, 0), -ETIMEDOUT, "0");
        require(seat.gathers + seat.swaps + seat.barriers == 0, "it was called");
        require_result(sluice_exchange_missing(exchange, NULL, 0), 0);
        /* Wrong arguments are reported all the same. */
        require_error(sluice_exchange_allgather(exchange, NULL, from, 1, 0), -EINVAL, "NULL");
        require_ok(sluice_exchange_barrier(exchange, LONG));
        require_ok(sluice_exchange_allgather(exchange, to, from, 1, LONG));
        sluice_exchange_close(exchange);
    }
}

/* Gets the remaining time as its deadline; if none is left, the smallest positive one. */
static int take_time(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    require(deadline > 0, "%lld", (long long)deadline);
    usleep(1000);
    return gather(argument, own, all, bytes, deadline);
}

TEST(functions_are_never_given_a_deadline_of_0)
{
    struct seat seat = {.rank = 1, .ranks = 3};
    const struct sluice_exchange_provider provider = {.size = sizeof(provider),
                                                      .allgather = take_time};
    static uint8_t to[3 * SLUICE_MAX_EXCHANGE_BYTES], from[sizeof(to)];
    struct sluice_exchange *exchange = made(sluice_exchange_wrap(&provider, &seat, 1, 3));
    require_ok(
        sluice_exchange_alltoall(exchange, to, from, SLUICE_MAX_EXCHANGE_BYTES, SLUICE_US(1)));
    require_result(seat.gathers, 3);
    sluice_exchange_close(exchange);
}

TEST(errno_is_kept)
{
    struct seat seat;
    uint32_t rank, ranks;
    errno = 77;
    sit_alone(&seat, false);
    require_ok(sluice_exchange_barrier(seat.exchange, LONG));
    require_ok(sluice_exchange_locality(seat.exchange, &rank, &ranks, LONG));
    sluice_exchange_close(seat.exchange);
    require(errno == 77, "%d", errno);
}

static void *run_seat(void *argument)
{
    struct seat *seat = argument;
    seat->exchange = made(sluice_exchange_wrap(&seat->provider, seat, seat->rank, seat->ranks));
    seat->function(seat);
    sluice_exchange_close(seat->exchange);
    return NULL;
}

/* Runs all ranks in threads, with only an allgather. */
static void run_table(uint32_t ranks, size_t size, void (*function)(struct seat *seat))
{
    struct seat seats[RANKS] = {0};
    struct table table = {.size = size};
    table.bytes = calloc(1, size);
    require(table.bytes, "no memory");
    pthread_barrier_init(&table.barrier, NULL, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        seats[i].table = &table;
        seats[i].rank = i;
        seats[i].ranks = ranks;
        seats[i].function = function;
        seats[i].provider.size = sizeof(seats[i].provider);
        seats[i].provider.allgather = gather;
        require(pthread_create(&seats[i].thread, NULL, run_seat, &seats[i]) == 0, "no thread");
    }
    for (uint32_t i = 0; i < ranks; i++) {
        pthread_join(seats[i].thread, NULL);
    }
    pthread_barrier_destroy(&table.barrier);
    free(table.bytes);
}

static uint8_t byte_of(uint32_t from, size_t to, size_t offset)
{
    return (uint8_t)(from * 7 + to * 31 + offset * 13 + offset / 251);
}

static void swap_blocks(struct seat *seat, size_t bytes)
{
    uint8_t *to = calloc(seat->ranks, bytes);
    uint8_t *from = calloc(seat->ranks, bytes);
    require(to && from, "no memory");
    for (size_t i = 0; i < seat->ranks * bytes; i++) {
        to[i] = byte_of(seat->rank, i / bytes, i % bytes);
    }
    require_ok(sluice_exchange_alltoall(seat->exchange, to, from, bytes, LONG));
    for (size_t i = 0; i < seat->ranks * bytes; i++) {
        require(from[i] == byte_of((uint32_t)(i / bytes), seat->rank, i % bytes), "byte %zu", i);
    }
    free(to);
    free(from);
}

/* Exchanges in one round, in rounds of two blocks, of one, and of parts of blocks. */
static void swap_all(struct seat *seat)
{
    swap_blocks(seat, 320);
    require(seat->gathers == 1, "%u gathers", seat->gathers);
    swap_blocks(seat, SLUICE_MAX_EXCHANGE_BYTES / 2);
    require(seat->gathers == 4, "%u gathers", seat->gathers);
    swap_blocks(seat, SLUICE_MAX_EXCHANGE_BYTES);
    require(seat->gathers == 9, "%u gathers", seat->gathers);
    swap_blocks(seat, 700001);
    require(seat->gathers == 13, "%u gathers", seat->gathers);
    require_ok(sluice_exchange_barrier(seat->exchange, LONG));
}

TEST(alltoall_of_allgathers)
{
    run_table(RANKS, (size_t)RANKS * SLUICE_MAX_EXCHANGE_BYTES, swap_all);
}

static void find_locality(struct seat *seat)
{
    uint32_t rank = 99;
    uint32_t ranks = 99;
    require_ok(sluice_exchange_locality(seat->exchange, &rank, &ranks, LONG));
    require(rank == seat->rank && ranks == seat->ranks, "%u of %u", rank, ranks);
}

TEST(ranks_of_one_host)
{
    run_table(RANKS, 4096, find_locality);
}

/* Odd ranks claim another host. */
static int gather_from_afar(void *argument, const void *own, void *all, size_t bytes,
                            int64_t deadline)
{
    const struct seat *seat = argument;
    (void)deadline;
    for (uint32_t i = 0; i < seat->ranks; i++) {
        memcpy((char *)all + i * bytes, own, bytes);
        if (i % 2 != seat->rank % 2) {
            ((uint8_t *)all)[i * bytes] ^= 1;
        }
    }
    return 0;
}

TEST(ranks_of_two_hosts)
{
    struct seat seat = {.rank = 3, .ranks = 7};
    struct sluice_exchange_provider provider = {.size = sizeof(provider),
                                                .allgather = gather_from_afar};
    uint32_t rank, ranks;
    struct sluice_exchange *exchange = made(sluice_exchange_wrap(&provider, &seat, 3, 7));
    require_ok(sluice_exchange_locality(exchange, &rank, &ranks, LONG));
    require(rank == 1 && ranks == 3, "%u of %u", rank, ranks);
    sluice_exchange_close(exchange);
}

static struct sluice_exchange_attr lone_attr(void)
{
    return (struct sluice_exchange_attr){
        .size = sizeof(struct sluice_exchange_attr), .kind = SLUICE_EXCHANGE_TCP, .ranks = 2};
}

TEST(wrong_attributes)
{
    static const char *const roots[] = {"host",  "host:", "host:0", "host:65536", ":123",
                                        "1:2:3", "[::1]", "[::1:5", "host:12x"};
    struct sluice_exchange_attr attr = lone_attr();
    char name[80];
    struct {
        struct sluice_exchange_attr known;
        uint64_t more;
    } longer = {lone_attr(), 1};
    require_null(sluice_exchange_open(&attr, -1), EINVAL, "negative");
    attr.size = 4;
    require_null(sluice_exchange_open(&attr, LONG), EINVAL, "size 4");
    longer.known.size = sizeof(longer);
    require_null(sluice_exchange_open(&longer.known, LONG), E2BIG, "non-zero");
    attr = lone_attr();
    attr.kind = SLUICE_EXCHANGE_OWN;
    require_null(sluice_exchange_open(&attr, LONG), EINVAL, "kind 3");
    attr = lone_attr();
    attr.rank = 2;
    require_null(sluice_exchange_open(&attr, LONG), EINVAL, "rank 2");
    attr = lone_attr();
    attr.ranks = SLUICE_MAX_RANKS + 1;
    require_null(sluice_exchange_open(&attr, LONG), EINVAL, "65537");
    attr = lone_attr();
    require_null(sluice_exchange_open(&attr, LONG), EINVAL, "where rank 0");
    for (size_t i = 0; i < COUNT(roots); i++) {
        attr.root = roots[i];
        require_null(sluice_exchange_open(&attr, LONG), EINVAL, "host:port");
    }
    attr.root = "127.0.0.1:9";
    memset(name, 'j', sizeof(name));
    name[64] = '\0';
    attr.job = name;
    require_null(sluice_exchange_open(&attr, LONG), EINVAL, "job 64");
}

int main(void)
{
    const struct tests cases[] = {{"own", WIRE_SELF, 30}};
    /* Variables of a launcher under which the tests run must not count. */
    unsetenv("SLUICE_ROOT");
    unsetenv("SLUICE_HOST_FILE");
    return run_groups("exchange", cases, COUNT(cases));
}
