/* SPDX-License-Identifier: MIT */
/*
 * An exchange over the launcher's PMIx server. libpmix is loaded when it is first
 * needed: a program that nobody started by PMIx has nothing of it.
 *
 * A call is a put, a commit, a fence that collects, and gets of what is then on
 * this host. Its keys are of no other call, for PMIx keeps all that was put until
 * the end of the job. What PMIx has begun cannot be taken back: past the deadline
 * it is left to itself, a fence in PMIx and what would block here in a thread of
 * ours; the server, which is asked for the same limit, may or may not end it. PMIx
 * does not tell which ranks were missing.
 *
 * It pairs the fences of a process with those of the others by their order alone,
 * so that a process has one exchange over it at a time.
 */
#include "config.h"

#include "awaited.h"
#include "exchange.h"

#ifndef HAVE_PMIX

static int begin_client(int64_t until)
{
    (void)until;
    return slu_fail(EOPNOTSUPP, "PMIx: this library was built without its headers");
}

int slu_pmix_open(struct sluice_exchange *exchange, int64_t until)
{
    (void)exchange;
    return begin_client(until);
}

#else

#include <dlfcn.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Its so-version, and so its structs, have been the same since PMIx 3. */
#define LIBRARY "libpmix.so.2"

/* The server gives up a little later than we do, whose word it is. */
#define GRACE 2
#define NANOSECONDS INT64_C(1000000000)

static struct {
    __typeof__(PMIx_Commit) *commit;
    __typeof__(PMIx_Error_string) *error_string;
    __typeof__(PMIx_Fence_nb) *fence_nb;
    __typeof__(PMIx_Finalize) *finalize;
    __typeof__(PMIx_Get) *get;
    __typeof__(PMIx_Init) *init;
    __typeof__(PMIx_Put) *put;
} pmix;

static const struct {
    const char *name;
    void *function;
} symbols[] = {
    {"PMIx_Commit", &pmix.commit},     {"PMIx_Error_string", &pmix.error_string},
    {"PMIx_Fence_nb", &pmix.fence_nb}, {"PMIx_Finalize", &pmix.finalize},
    {"PMIx_Get", &pmix.get},           {"PMIx_Init", &pmix.init},
    {"PMIx_Put", &pmix.put},
};

/*
 * Of the process: one client, which stays until it exits. A rank that ended its
 * client with one exchange and began it again with the next would be missing in
 * between, and some servers then hold a fence without it.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t asker; /* the process that asked first, which alone takes the lock */
static void *library;
static bool client;                   /* it is there */
static struct slu_awaited *beginning; /* PMIx_Init() under way */
static bool open_now;                 /* there is an exchange */
static uint32_t exchanges;            /* opened so far, in all ranks the same */
static pmix_proc_t self;
static _Atomic uint32_t asking; /* threads of ours that ask the server */

struct pmix_state {
    pmix_proc_t all; /* ranks of this job */
    uint32_t number; /* of the exchange */
    uint32_t calls;
};

/* What each rank puts before its bytes, so that ranks that disagree are found out. */
struct part {
    uint32_t operation;
    uint32_t reserved;
    uint64_t bytes;
};

enum operation { ALLGATHER = 1, ALLTOALL = 2 };

/* A fence under way: held by the caller, and by PMIx until it calls back. */
struct fence {
    struct slu_awaited awaited;
    pmix_info_t infos[2];
};

/* What is asked of the server, in a thread of ours. */
struct question {
    struct slu_awaited awaited;
    int (*run)(struct question *question);
    pmix_proc_t proc;
    int64_t until;
    uint32_t ranks; /* of the job: told, or asked for */

    /* Of each rank, bytes from offset of what it put, which must be of this call. */
    char key[48];
    struct part expected;
    size_t offset, bytes;
    uint8_t *all; /* the caller's, until it leaves */
};

/* A text of PMIx's own words. */
static int fail_status(const char *what, pmix_status_t status)
{
    int error = ECONNRESET;

    if (status == PMIX_ERR_TIMEOUT)
        error = ETIMEDOUT;
    else if (status == PMIX_ERR_NOMEM)
        error = ENOMEM;
    else if (status == PMIX_ERR_NOT_FOUND)
        error = EPROTO;
    return slu_fail(error, "PMIx: %s: %s (%d)", what, pmix.error_string(status), status);
}

static int load_library(void)
{
    void *loaded;

    if (library != NULL)
        return 0;
    loaded = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (loaded == NULL)
        return slu_fail(EOPNOTSUPP, "PMIx: %s", dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = dlsym(loaded, symbols[i].name);

        if (found == NULL) {
            dlclose(loaded);
            return slu_fail(EOPNOTSUPP, "PMIx: %s has no %s", LIBRARY, symbols[i].name);
        }
        memcpy(symbols[i].function, &found, sizeof found);
    }
    library = loaded; /* for good, for it has threads */
    return 0;
}

/*
 * Who exits without it looks as if it had crashed to the launcher. A forked child has no
 * client, and with a question open PMIx cannot be ended.
 */
static void end_client(void)
{
    if (asker == getpid() && client && asking == 0)
        pmix.finalize(NULL, 0);
}

/* In a thread of its own, for PMIx_Init() knows no limit; PMIx's threads get no signals either. */
static int run_init(struct slu_awaited *awaited)
{
    pmix_proc_t proc;
    pmix_status_t status = pmix.init(&proc, NULL, 0);

    (void)awaited;
    pthread_mutex_lock(&lock);
    client = status == PMIX_SUCCESS;
    if (client)
        self = proc;
    beginning = NULL;
    pthread_mutex_unlock(&lock);
    if (status == PMIX_SUCCESS)
        return 0;
    return slu_fail(ENOENT,
                    "PMIx: no server answers: %s (%d); start the program by a launcher "
                    "that has one, such as mpirun or srun --mpi=pmix",
                    pmix.error_string(status), status);
}

/* With the lock. */
static int start_init(void)
{
    static bool registered;
    struct slu_awaited *awaited;
    int error = load_library();

    if (error < 0)
        return error;
    awaited = calloc(1, sizeof *awaited);
    if (awaited == NULL)
        return slu_fail(ENOMEM, "no memory to ask PMIx");
    slu_awaited_init(awaited);
    beginning = awaited;
    error = slu_awaited_start(awaited, run_init);
    if (error < 0) {
        beginning = NULL;
        slu_awaited_drop(awaited);
        return error;
    }
    if (!registered)
        registered = atexit(end_client) == 0;
    return 0;
}

/* Its threads, and what its lock was about, are those of the process that has it. */
static int check_process(void)
{
    pid_t none = 0;

    if (atomic_compare_exchange_strong(&asker, &none, getpid()) || none == getpid())
        return 0;
    if (!client && beginning == NULL)
        return slu_fail(ENOENT, "PMIx: no server answered process %d, of which this is a child",
                        (int)none);
    return slu_fail(ENOTCONN,
                    "PMIx: its client is process %d, of which this is a child that fork() made: "
                    "open the exchange there, or over TCP",
                    (int)none);
}

/* 0, and there is a client; who comes while it begins waits for the same. */
static int begin_client(int64_t until)
{
    struct slu_awaited *awaited = NULL;
    int error = check_process();

    if (error < 0)
        return error;
    pthread_mutex_lock(&lock);
    if (!client) {
        awaited = beginning;
        if (awaited != NULL)
            slu_awaited_hold(awaited);
        else
            error = start_init();
        awaited = error == 0 ? beginning : NULL;
    }
    pthread_mutex_unlock(&lock);
    if (awaited == NULL)
        return error;
    error = slu_awaited_wait(awaited, until, "PMIx: its server did not answer before the deadline");
    slu_awaited_drop(awaited);
    return error;
}

static void load_info(pmix_info_t *info, const char *key, pmix_data_type_t type)
{
    memset(info, 0, sizeof *info);
    snprintf(info->key, sizeof info->key, "%s", key);
    info->value.type = type;
}

/* In whole seconds, as PMIx counts; 0: for ever. */
static int server_limit(int64_t until)
{
    int64_t left = until - slu_now();

    if (until == INT64_MAX || left / NANOSECONDS > INT32_MAX / 2)
        return 0;
    return (int)(left > 0 ? left / NANOSECONDS : 0) + GRACE;
}

/* In a thread of PMIx. */
static void end_fence(pmix_status_t status, void *argument)
{
    struct fence *fence = argument;
    int error = 0;

    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        error = fail_status("not all ranks came", status);
    slu_awaited_end(&fence->awaited, error);
}

static struct fence *make_fence(int64_t until)
{
    struct fence *fence = calloc(1, sizeof *fence);

    if (fence == NULL)
        return slu_fail_null(ENOMEM, "no memory for a fence");
    slu_awaited_init(&fence->awaited);
    load_info(&fence->infos[0], PMIX_COLLECT_DATA, PMIX_BOOL);
    fence->infos[0].value.data.flag = true;
    load_info(&fence->infos[1], PMIX_TIMEOUT, PMIX_INT);
    fence->infos[1].value.data.integer = server_limit(until);
    return fence;
}

static int meet(const struct pmix_state *state, int64_t until)
{
    struct fence *fence = make_fence(until);
    pmix_status_t status;
    int error;

    if (fence == NULL)
        return -ENOMEM;
    status = pmix.fence_nb(&state->all, 1, fence->infos, 2, end_fence, fence);
    if (status != PMIX_SUCCESS)
        end_fence(status, fence); /* PMIx does not call back then */
    error =
        slu_awaited_wait(&fence->awaited, until, "PMIx: not all ranks came before the deadline");
    slu_awaited_drop(&fence->awaited);
    return error;
}

static int publish(const char *key, enum operation operation, const void *own, size_t bytes)
{
    struct part part = {.operation = operation, .bytes = bytes};
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    char *whole = malloc(sizeof part + bytes);
    pmix_status_t status;

    if (whole == NULL)
        return slu_fail(ENOMEM, "no memory for %zu bytes", bytes);
    memcpy(whole, &part, sizeof part);
    if (bytes > 0)
        memcpy(whole + sizeof part, own, bytes);
    value.data.bo.bytes = whole;
    value.data.bo.size = sizeof part + bytes;
    status = pmix.put(PMIX_GLOBAL, key, &value);
    if (status == PMIX_SUCCESS)
        status = pmix.commit();
    free(whole);
    return status == PMIX_SUCCESS ? 0 : fail_status("a value cannot be put", status);
}

static pmix_status_t get_value(const pmix_proc_t *proc, const char *key, int64_t until,
                               pmix_value_t **value)
{
    pmix_info_t limit;

    load_info(&limit, PMIX_TIMEOUT, PMIX_INT);
    limit.value.data.integer = server_limit(until);
    *value = NULL;
    return pmix.get(proc, key, &limit, 1, value);
}

static struct question *make_question(const struct pmix_state *state,
                                      int (*run)(struct question *question), int64_t until)
{
    struct question *question = calloc(1, sizeof *question);

    if (question == NULL)
        return slu_fail_null(ENOMEM, "no memory to ask PMIx");
    slu_awaited_init(&question->awaited);
    question->run = run;
    question->proc = state->all;
    question->until = until;
    return question;
}

static int count_and_run(struct slu_awaited *awaited)
{
    struct question *question = slu_container_of(awaited, struct question, awaited);
    int error = question->run(question);

    asking--;
    return error;
}

/* In a thread, for PMIx_Get() knows but whole seconds, and need not heed them. */
static int ask(struct question *question)
{
    int error;

    asking++;
    error = slu_awaited_start(&question->awaited, count_and_run);
    if (error < 0)
        asking--;
    else
        error = slu_awaited_wait(&question->awaited, question->until,
                                 "PMIx: its server did not answer before the deadline");
    return error;
}

/* The caller's buffer is there as long as it waits. */
static void hand_over(struct question *question, const pmix_value_t *value)
{
    const char *given = value->data.bo.bytes + sizeof question->expected + question->offset;

    pthread_mutex_lock(&question->awaited.lock);
    if (!question->awaited.left && question->bytes > 0)
        memcpy(question->all + question->proc.rank * question->bytes, given, question->bytes);
    pthread_mutex_unlock(&question->awaited.lock);
}

static int collect(struct question *question)
{
    const struct part *expected = &question->expected;
    pmix_value_t *value;
    pmix_status_t status = get_value(&question->proc, question->key, question->until, &value);
    int error = 0;

    if (status != PMIX_SUCCESS)
        return fail_status("a rank did not give its part", status);
    if (value->type != PMIX_BYTE_OBJECT ||
        value->data.bo.size != sizeof *expected + expected->bytes ||
        memcmp(value->data.bo.bytes, expected, sizeof *expected) != 0)
        error = slu_fail(EPROTO, "rank %u made another call, or gave another number of bytes",
                         question->proc.rank);
    else
        hand_over(question, value);
    if (value->type == PMIX_BYTE_OBJECT)
        free(value->data.bo.bytes);
    free(value);
    return error;
}

static int collect_all(struct question *question)
{
    int error = 0;

    for (uint32_t i = 0; error == 0 && i < question->ranks; i++) {
        question->proc.rank = i;
        error = collect(question);
    }
    return error;
}

/* Each rank gives so many bytes; of those of each, the ones from offset are taken. */
static int exchange_parts(struct sluice_exchange *exchange, enum operation operation,
                          const void *own, size_t given, size_t offset, void *all, size_t bytes,
                          int64_t until)
{
    struct pmix_state *state = exchange->state;
    struct question *question;
    int error = check_process();

    if (error < 0)
        return error;
    question = make_question(state, collect_all, until);
    if (question == NULL)
        return -ENOMEM;
    question->ranks = exchange->ranks;
    question->expected = (struct part){.operation = operation, .bytes = given};
    question->offset = offset;
    question->bytes = bytes;
    question->all = all;
    snprintf(question->key, sizeof question->key, "sluice.%u.%u", state->number, state->calls++);
    error = publish(question->key, operation, own, given);
    if (error == 0)
        error = meet(state, until);
    if (error < 0) {
        slu_awaited_drop(&question->awaited); /* nobody was asked */
        slu_awaited_drop(&question->awaited);
        return error;
    }
    error = ask(question);
    slu_awaited_drop(&question->awaited);
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
    int error = check_process();

    return error < 0 ? error : meet(exchange->state, until);
}

static void leave(struct pmix_state *state)
{
    if (asker == getpid()) {
        pthread_mutex_lock(&lock);
        open_now = false;
        pthread_mutex_unlock(&lock);
    }
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
    .close = pmix_close,
};

/* How many ranks the job has, which only the server says. */
static int read_ranks(struct question *question)
{
    pmix_value_t *value;
    pmix_status_t status = get_value(&question->proc, PMIX_JOB_SIZE, question->until, &value);

    if (status != PMIX_SUCCESS)
        return fail_status("the server does not tell how many ranks there are", status);
    question->ranks = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
    free(value);
    if (question->ranks == 0 || question->ranks > SLUICE_MAX_RANKS || self.rank >= question->ranks)
        return slu_fail(EINVAL, "PMIx: rank %u of %u, can be of 1 to %u", self.rank,
                        question->ranks, SLUICE_MAX_RANKS);
    return 0;
}

static int ask_ranks(const struct pmix_state *state, uint32_t *ranks, int64_t until)
{
    struct question *question = make_question(state, read_ranks, until);
    int error;

    if (question == NULL)
        return -ENOMEM;
    error = ask(question);
    if (error == 0)
        *ranks = question->ranks;
    slu_awaited_drop(&question->awaited);
    return error;
}

/* The one exchange of the process, and its number. */
static int enter(struct pmix_state *state)
{
    bool busy;

    pthread_mutex_lock(&lock);
    busy = open_now;
    open_now = true;
    if (!busy)
        state->number = exchanges++;
    pthread_mutex_unlock(&lock);
    state->all = self;
    state->all.rank = PMIX_RANK_WILDCARD;
    if (busy)
        return slu_fail(EBUSY, "PMIx: this process has an exchange over it already, which is to "
                               "be closed first, and one at a time is all that it can have");
    return 0;
}

int slu_pmix_open(struct sluice_exchange *exchange, int64_t until)
{
    struct pmix_state *state;
    uint32_t ranks = 0;
    int error = begin_client(until);

    if (error < 0)
        return error;
    state = calloc(1, sizeof *state);
    if (state == NULL)
        return slu_fail(ENOMEM, "no memory for an exchange over PMIx");
    error = enter(state);
    if (error < 0) {
        free(state);
        return error;
    }
    error = ask_ranks(state, &ranks, until);
    if (error == 0)
        error = meet(state, until);
    if (error < 0) {
        leave(state);
        return error;
    }
    exchange->rank = self.rank;
    exchange->ranks = ranks;
    snprintf(exchange->source, sizeof exchange->source, "PMIx");
    exchange->provider = &provider;
    exchange->state = state;
    return 0;
}

#endif

int slu_pmix_answers(int64_t until)
{
    int error = begin_client(until);

    if (error == -ENOENT || error == -EOPNOTSUPP)
        slu_log(SLUICE_LOG_WARN, "%s; PMIX_RANK is set, but this rank goes over TCP",
                sluice_last_error());
    return error;
}
