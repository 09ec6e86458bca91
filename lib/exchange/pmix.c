/* SPDX-License-Identifier: MIT */
/*
 * An exchange over the launcher's PMIx server.
 *
 * A call consists of a put, a commit, a fence that collects, and gets of what is then on this host.
 * Each call has keys of its own, because PMIx keeps all values until the end of the job. An
 * operation of PMIx cannot be cancelled. After the deadline a fence continues within PMIx, and a
 * blocking get in a thread of this library; the server gets the same limit, but may ignore it. PMIx
 * does not tell which ranks were missing.
 *
 * PMIx matches the fences of processes by their order alone, so a process can have only one
 * exchange over it at a time.
 */
#include "config.h"

#include "endpoint/versions.h"
#include "exchange/pmix.h"

#ifndef HAVE_PMIX

int slu_pmix_open(struct sluice_exchange *exchange, int64_t until)
{
    (void)exchange;
    return slu_pmix_begin(until);
}

#else

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY_BYTES 48

/* The server's limit is this many seconds longer, so that this side times out first. */
#define GRACE 2
#define NANOSECONDS INT64_C(1000000000)

/* State of the process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool open_now;      /* an exchange is open */
static uint32_t exchanges; /* opened so far, equal in all ranks */

struct pmix_state {
    pmix_proc_t all; /* the ranks of this job */
    uint32_t number; /* of the exchange */
    uint32_t calls;
    struct fence *spare; /* for a call without memory */
};

/*
 * A header before the bytes of each rank, by which ranks that disagree are detected. The first
 * version of this form is 0.
 */
struct part {
    uint32_t operation;
    uint16_t written, readable; /* by version; from version on */
    uint64_t bytes;
};
#define VERSION (0 + SLU_VERSIONS_NEXT)
#define READABLE 0

/* NO_MEMORY: the rank cannot take part. */
enum operation { ALLGATHER = 1, ALLTOALL = 2, NO_MEMORY = 3 };

/* A fence in progress, referenced by the caller, and by PMIx until it calls back. */
struct fence {
    struct slu_async_call call;
    pmix_info_t infos[2];
};

/* A query of the server, which runs in a thread of this library. */
struct query {
    struct slu_async_call call;
    int (*run)(struct query *query);
    pmix_proc_t proc;
    int64_t until;
    uint32_t ranks; /* of the job: given, or the answer */

    /* From each rank, bytes from offset of what it put, which must be of this call. */
    char key[KEY_BYTES];
    struct part expected;
    size_t offset, bytes;
    uint8_t *all; /* the caller's, valid while it waits */
};

static void load_info(pmix_info_t *info, const char *key, pmix_data_type_t type)
{
    memset(info, 0, sizeof *info);
    snprintf(info->key, sizeof info->key, "%s", key);
    info->value.type = type;
}

/* Returns the time left in whole seconds, as PMIx counts; 0: for ever. */
static int server_limit(int64_t until)
{
    int64_t left = until - slu_now();

    if (until == INT64_MAX || left / NANOSECONDS > INT32_MAX / 2)
        return 0;
    return (int)(left > 0 ? left / NANOSECONDS : 0) + GRACE;
}

/* Called in a thread of PMIx. */
static void end_fence(pmix_status_t status, void *argument)
{
    struct fence *fence = argument;
    int error = 0;

    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        error = slu_pmix_fail("not all ranks came", status);
    slu_async_call_end(&fence->call, error);
}

static struct fence *make_fence(struct pmix_state *state, int64_t until)
{
    struct fence *fence = calloc(1, sizeof *fence);

    if (fence == NULL) {
        fence = state->spare;
        state->spare = NULL;
    }
    if (fence == NULL)
        return slu_fail_null(ENOMEM, "no memory for a fence");
    slu_async_call_init(&fence->call);
    load_info(&fence->infos[0], PMIX_COLLECT_DATA, PMIX_BOOL);
    fence->infos[0].value.data.flag = true;
    load_info(&fence->infos[1], PMIX_TIMEOUT, PMIX_INT);
    fence->infos[1].value.data.integer = server_limit(until);
    return fence;
}

static void begin_fence(const struct pmix_state *state, struct fence *fence)
{
    pmix_status_t status = slu_pmix.fence_nb(&state->all, 1, fence->infos, 2, end_fence, fence);

    if (status != PMIX_SUCCESS)
        end_fence(status, fence); /* PMIx does not call back then */
}

static int meet(struct pmix_state *state, int64_t until)
{
    struct fence *fence = make_fence(state, until);
    int error;

    if (fence == NULL)
        return -ENOMEM;
    begin_fence(state, fence);
    error =
        slu_async_call_wait(&fence->call, until, "PMIx: not all ranks came before the deadline");
    slu_async_call_drop(&fence->call);
    return error;
}

static pmix_status_t put(const char *key, void *bytes, size_t count)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    pmix_status_t status;

    value.data.bo.bytes = bytes;
    value.data.bo.size = count;
    status = slu_pmix.put(PMIX_GLOBAL, key, &value);
    return status == PMIX_SUCCESS ? slu_pmix.commit() : status;
}

static void name_key(const struct pmix_state *state, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "sluice.%u.%u", state->number, state->calls);
}

static int publish(const char *key, enum operation operation, const void *own, size_t bytes)
{
    struct part part = {
        .operation = operation, .written = VERSION, .readable = READABLE, .bytes = bytes};
    char *whole = malloc(sizeof part + bytes);
    pmix_status_t status;

    if (whole == NULL)
        return slu_fail(ENOMEM, "no memory for %zu bytes", bytes);
    memcpy(whole, &part, sizeof part);
    if (bytes > 0)
        memcpy(whole + sizeof part, own, bytes);
    status = put(key, whole, sizeof part + bytes);
    free(whole);
    return status == PMIX_SUCCESS ? 0 : slu_pmix_fail("a value cannot be put", status);
}

/*
 * The others learn of it in this call; or if it is a barrier, which reads no values, in the next
 * call that is not a barrier. This rank does not wait for the fence, and no deadline ends it.
 */
static void pmix_abandon(struct sluice_exchange *exchange)
{
    struct pmix_state *state = exchange->state;
    struct part part = {.operation = NO_MEMORY, .written = VERSION, .readable = READABLE};
    struct fence *fence = NULL;
    char key[KEY_BYTES];

    if (!slu_pmix_is_ours())
        return;
    name_key(state, key);
    if (put(key, &part, sizeof part) == PMIX_SUCCESS)
        fence = make_fence(state, INT64_MAX);
    if (fence == NULL)
        return;
    begin_fence(state, fence);
    slu_async_call_drop(&fence->call);
}

static pmix_status_t get_value(const pmix_proc_t *proc, const char *key, int64_t until,
                               pmix_value_t **value)
{
    pmix_info_t limit;

    load_info(&limit, PMIX_TIMEOUT, PMIX_INT);
    limit.value.data.integer = server_limit(until);
    *value = NULL;
    return slu_pmix.get(proc, key, &limit, 1, value);
}

static struct query *make_query(const struct pmix_state *state, int (*run)(struct query *query),
                                int64_t until)
{
    struct query *query = calloc(1, sizeof *query);

    if (query == NULL)
        return slu_fail_null(ENOMEM, "no memory to ask PMIx");
    slu_async_call_init(&query->call);
    query->run = run;
    query->proc = state->all;
    query->until = until;
    return query;
}

static int count_and_run(struct slu_async_call *call)
{
    struct query *query = slu_container_of(call, struct query, call);
    int error = query->run(query);

    slu_pmix_queries--;
    return error;
}

/* Starts a thread, because PMIx_Get() takes its timeout in whole seconds, and may ignore it. */
static int start_query(struct query *query)
{
    int error;

    slu_pmix_queries++;
    error = slu_async_call_start(&query->call, count_and_run);
    if (error < 0)
        slu_pmix_queries--;
    return error;
}

static int await_answer(struct query *query)
{
    return slu_async_call_wait(&query->call, query->until,
                               "PMIx: its server did not answer before the deadline");
}

/* Copies a part, unless the caller has timed out: its buffer is valid only while it waits. */
static void copy_part(struct query *query, const pmix_value_t *value)
{
    const char *given = value->data.bo.bytes + sizeof query->expected + query->offset;

    pthread_mutex_lock(&query->call.lock);
    if (!query->call.abandoned && query->bytes > 0)
        memcpy(query->all + query->proc.rank * query->bytes, given, query->bytes);
    pthread_mutex_unlock(&query->call.lock);
}

/* Checks what a rank gave. Returns 0, or an error with a text. */
static int check_part(const struct query *query, const pmix_value_t *value)
{
    const struct part *expected = &query->expected;
    struct part part = {0};
    bool whole = value->type == PMIX_BYTE_OBJECT && value->data.bo.size >= sizeof part;

    if (whole)
        memcpy(&part, value->data.bo.bytes, sizeof part);
    if (whole && part.readable > VERSION)
        return slu_fail(EPROTO,
                        "rank %u speaks version %u of the exchange over PMIx, readable from "
                        "version %u on; this library speaks version %d",
                        query->proc.rank, part.written, part.readable, VERSION);
    if (whole && part.operation == NO_MEMORY)
        return slu_fail(ENOMEM, "rank %u has no memory to take part", query->proc.rank);
    if (!whole || value->data.bo.size != sizeof part + part.bytes ||
        part.operation != expected->operation || part.bytes != expected->bytes)
        return slu_fail(EPROTO, "rank %u made another call, or gave another number of bytes",
                        query->proc.rank);
    return 0;
}

static int collect(struct query *query)
{
    pmix_value_t *value;
    pmix_status_t status = get_value(&query->proc, query->key, query->until, &value);
    int error;

    if (status != PMIX_SUCCESS)
        return slu_pmix_fail("a rank did not give its part", status);
    error = check_part(query, value);
    if (error == 0)
        copy_part(query, value);
    if (value->type == PMIX_BYTE_OBJECT)
        free(value->data.bo.bytes);
    free(value);
    return error;
}

static int collect_all(struct query *query)
{
    int error = 0;

    for (uint32_t i = 0; error == 0 && i < query->ranks; i++) {
        query->proc.rank = i;
        error = collect(query);
    }
    return error;
}

/* If this rank has no memory, reports it to the others, which wait for it. */
static int report_to_others(struct sluice_exchange *exchange, int error)
{
    struct slu_text text;

    if (error != -ENOMEM)
        return error;
    slu_text_save(&text);
    pmix_abandon(exchange);
    slu_text_restore(&text);
    return error;
}

/* Puts the part of this rank, meets the others in a fence, and gets their parts. */
static int run_query(struct sluice_exchange *exchange, struct query *query, const void *own)
{
    const struct part *given = &query->expected;
    struct pmix_state *state = exchange->state;
    int error;

    name_key(state, query->key);
    error = report_to_others(exchange, publish(query->key, given->operation, own, given->bytes));
    state->calls++;
    if (error == 0)
        error = meet(state, query->until);
    if (error < 0) {
        slu_async_call_drop(&query->call); /* the query is not started */
        return error;
    }
    error = report_to_others(exchange, start_query(query));
    return error == 0 ? await_answer(query) : error;
}

/* Each rank gives `given` bytes. Of those of each, `bytes` from offset on are copied. */
static int exchange_parts(struct sluice_exchange *exchange, enum operation operation,
                          const void *own, size_t given, size_t offset, void *all, size_t bytes,
                          int64_t until)
{
    struct query *query;
    int error = slu_pmix_check_process();

    if (error < 0)
        return error;
    query = make_query(exchange->state, collect_all, until);
    if (query == NULL)
        return report_to_others(exchange, -ENOMEM);
    query->ranks = exchange->ranks;
    query->expected = (struct part){.operation = operation, .bytes = given};
    query->offset = offset;
    query->bytes = bytes;
    query->all = all;
    error = run_query(exchange, query, own);
    slu_async_call_drop(&query->call);
    return error;
}

static int pmix_allgather(struct sluice_exchange *exchange, const void *own, void *all,
                          size_t bytes, int64_t until)
{
    return exchange_parts(exchange, ALLGATHER, own, bytes, 0, all, bytes, until);
}

static int pmix_alltoall(struct sluice_exchange *exchange, const void *to, void *from, size_t bytes,
                         int64_t until)
{
    return exchange_parts(exchange, ALLTOALL, to, bytes * exchange->ranks, exchange->rank * bytes,
                          from, bytes, until);
}

static int pmix_barrier(struct sluice_exchange *exchange, int64_t until)
{
    int error = slu_pmix_check_process();

    return error < 0 ? error : meet(exchange->state, until);
}

static void leave(struct pmix_state *state)
{
    if (slu_pmix_is_ours()) {
        pthread_mutex_lock(&lock);
        open_now = false;
        pthread_mutex_unlock(&lock);
    }
    free(state->spare);
    free(state);
}

static void pmix_close(struct sluice_exchange *exchange)
{
    leave(exchange->state);
}

static const struct slu_exchange_provider provider = {
    .kind = SLUICE_EXCHANGE_PMIX,
    .allgather = pmix_allgather,
    .alltoall = pmix_alltoall,
    .barrier = pmix_barrier,
    .abandon = pmix_abandon,
    .close = pmix_close,
};

/* Reads the number of ranks of the job, which only the server knows. */
static int read_ranks(struct query *query)
{
    pmix_value_t *value;
    pmix_status_t status = get_value(&query->proc, PMIX_JOB_SIZE, query->until, &value);

    if (status != PMIX_SUCCESS)
        return slu_pmix_fail("the server does not tell how many ranks there are", status);
    query->ranks = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
    free(value);
    if (query->ranks == 0 || query->ranks > SLUICE_MAX_RANKS || slu_pmix_self.rank >= query->ranks)
        return slu_fail(EINVAL, "PMIx: rank %u of %u: there must be 1 to %u ranks",
                        slu_pmix_self.rank, query->ranks, SLUICE_MAX_RANKS);
    return 0;
}

static int query_ranks(const struct pmix_state *state, uint32_t *ranks, int64_t until)
{
    struct query *query = make_query(state, read_ranks, until);
    int error;

    if (query == NULL)
        return -ENOMEM;
    error = start_query(query);
    if (error == 0)
        error = await_answer(query);
    if (error == 0)
        *ranks = query->ranks;
    slu_async_call_drop(&query->call);
    return error;
}

/* Fails if the process has an exchange over PMIx already. */
static int enter(struct pmix_state *state)
{
    bool busy;

    pthread_mutex_lock(&lock);
    busy = open_now;
    open_now = true;
    pthread_mutex_unlock(&lock);
    state->all = slu_pmix_self;
    state->all.rank = PMIX_RANK_WILDCARD;
    if (busy)
        return slu_fail(EBUSY, "PMIx: this process has an exchange over PMIx already, and can have "
                               "only one at a time: close it first");
    return 0;
}

/*
 * Numbers the exchange. All ranks that get here meet; an earlier failure is counted by none of
 * them.
 */
static int meet_first(struct pmix_state *state, int64_t until)
{
    pthread_mutex_lock(&lock);
    state->number = exchanges++;
    pthread_mutex_unlock(&lock);
    return meet(state, until);
}

static struct pmix_state *make_state(void)
{
    struct pmix_state *state = calloc(1, sizeof *state);

    if (state != NULL)
        state->spare = calloc(1, sizeof *state->spare);
    if (state != NULL && state->spare != NULL)
        return state;
    free(state);
    return slu_fail_null(ENOMEM, "no memory for an exchange over PMIx");
}

int slu_pmix_open(struct sluice_exchange *exchange, int64_t until)
{
    struct pmix_state *state;
    uint32_t ranks = 0;
    int error = slu_pmix_begin(until);

    if (error < 0)
        return error;
    state = make_state();
    if (state == NULL)
        return -ENOMEM;
    error = enter(state);
    if (error < 0) {
        free(state->spare);
        free(state);
        return error;
    }
    error = query_ranks(state, &ranks, until);
    if (error == 0)
        error = meet_first(state, until);
    if (error < 0) {
        leave(state);
        return error;
    }
    exchange->rank = slu_pmix_self.rank;
    exchange->ranks = ranks;
    snprintf(exchange->source, sizeof exchange->source, "PMIx");
    exchange->provider = &provider;
    exchange->state = state;
    return 0;
}

#endif
