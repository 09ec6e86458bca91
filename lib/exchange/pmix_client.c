/* SPDX-License-Identifier: MIT */
/*
 * Loads libpmix when it is first needed; a program that PMIx did not start has no need of it. Waits
 * for PMIx_Init() until a deadline.
 */
#include "config.h"

#include "exchange/pmix.h"

#ifndef HAVE_PMIX

int slu_pmix_begin(int64_t until)
{
    (void)until;
    return slu_fail(EOPNOTSUPP, "PMIx: this library was built without its headers");
}

#else

#include <stdlib.h>
#include <unistd.h>

#include "base/library.h"

/* The so-version, and with it the structs, have been the same since PMIx 3. */
#define LIBRARY "libpmix.so.2"

/*
 * The one client of the process, which stays until the process exits. If a client ended with one
 * exchange and began again with the next, the rank would be missing in between, and some servers
 * then complete a fence without it.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t owner;              /* the process that began; only it takes the lock */
static bool loaded;                      /* for good, since libpmix has threads */
static bool client;                      /* PMIx_Init() has succeeded */
static struct slu_async_call *beginning; /* PMIx_Init() in progress, or NULL */
pmix_proc_t slu_pmix_self;
_Atomic uint32_t slu_pmix_queries;
struct slu_pmix_functions slu_pmix;

static const struct slu_symbol symbols[] = {
    {"PMIx_Commit", &slu_pmix.commit},     {"PMIx_Error_string", &slu_pmix.error_string},
    {"PMIx_Fence_nb", &slu_pmix.fence_nb}, {"PMIx_Finalize", &slu_pmix.finalize},
    {"PMIx_Get", &slu_pmix.get},           {"PMIx_Init", &slu_pmix.init},
    {"PMIx_Put", &slu_pmix.put},
};

#define SYMBOLS (sizeof symbols / sizeof symbols[0])

int slu_pmix_fail(const char *what, pmix_status_t status)
{
    int error = ECONNRESET;

    if (status == PMIX_ERR_TIMEOUT)
        error = ETIMEDOUT;
    else if (status == PMIX_ERR_NOMEM)
        error = ENOMEM;
    else if (status == PMIX_ERR_NOT_FOUND)
        error = EPROTO;
    return slu_fail(error, "PMIx: %s: %s (%d)", what, slu_pmix.error_string(status), status);
}

/*
 * Without PMIx_Finalize() the exit looks like a crash to the launcher. A forked child has no
 * client, and PMIx cannot be finalized during a query.
 */
static void end_client(void)
{
    if (slu_pmix_is_ours() && client && slu_pmix_queries == 0)
        slu_pmix.finalize(NULL, 0);
}

/*
 * Runs in a thread of its own, because PMIx_Init() has no timeout. PMIx's threads inherit the
 * blocked signals.
 */
static int run_init(struct slu_async_call *call)
{
    pmix_proc_t proc;
    pmix_status_t status;

    (void)call;
    status = slu_pmix.init(&proc, NULL, 0);
    pthread_mutex_lock(&lock);
    client = status == PMIX_SUCCESS;
    if (client)
        slu_pmix_self = proc;
    beginning = NULL;
    pthread_mutex_unlock(&lock);
    if (status == PMIX_SUCCESS)
        return 0;
    return slu_fail(ENOENT,
                    "PMIx: no server answers: %s (%d); start the program by a launcher "
                    "that has one, such as mpirun or srun --mpi=pmix",
                    slu_pmix.error_string(status), status);
}

/* The lock is held. */
static int start_init(void)
{
    static bool registered;
    struct slu_async_call *call;
    int error = loaded ? 0 : slu_library_load("PMIx", LIBRARY, symbols, SYMBOLS);

    loaded = error == 0;
    if (error < 0)
        return error;
    call = calloc(1, sizeof *call);
    if (call == NULL)
        return slu_fail(ENOMEM, "no memory to ask PMIx");
    slu_async_call_init(call);
    beginning = call;
    error = slu_async_call_start(call, run_init);
    if (error < 0) {
        beginning = NULL;
        slu_async_call_drop(call);
        return error;
    }
    if (!registered)
        registered = atexit(end_client) == 0;
    return 0;
}

bool slu_pmix_is_ours(void)
{
    return owner == getpid();
}

/* The threads of libpmix, and what the lock protects, belong to the process that began. */
int slu_pmix_check_process(void)
{
    pid_t none = 0;

    if (atomic_compare_exchange_strong(&owner, &none, getpid()) || none == getpid())
        return 0;
    if (!client && beginning == NULL)
        return slu_fail(ENOENT, "PMIx: no server answered process %d, of which this is a child",
                        (int)none);
    return slu_fail(ENOTCONN,
                    "PMIx: its client is process %d, of which this is a child that fork() made: "
                    "open the exchange there, or over TCP",
                    (int)none);
}

/* A caller that comes while PMIx_Init() is in progress waits for the same one. */
static int await_client(int64_t until)
{
    struct slu_async_call *call = NULL;
    int error = 0;

    pthread_mutex_lock(&lock);
    if (!client) {
        call = beginning;
        if (call != NULL)
            slu_async_call_hold(call);
        else
            error = start_init();
        call = error == 0 ? beginning : NULL;
    }
    pthread_mutex_unlock(&lock);
    if (call == NULL)
        return error;
    error = slu_async_call_wait(call, until, "PMIx: its server did not answer before the deadline");
    slu_async_call_drop(call);
    return error;
}

/*
 * The waiting caller holds the guard for descriptors that PMIx_Init() opens. The thread that runs
 * it does not: it may never end, and its guard would keep 0, 1 and 2 from the program.
 */
int slu_pmix_begin(int64_t until)
{
    int error = slu_pmix_check_process();

    if (error < 0)
        return error;
    slu_fd_guard();
    error = await_client(until);
    slu_fd_unguard();
    return error;
}

#endif

int slu_pmix_answers(int64_t until)
{
    int error = slu_pmix_begin(until);

    if (error == -ENOENT || error == -EOPNOTSUPP)
        slu_log(SLUICE_LOG_WARN, "%s; PMIX_RANK is set, but this rank uses TCP",
                sluice_last_error());
    return error;
}
