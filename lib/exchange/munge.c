/* SPDX-License-Identifier: MIT */
/*
 * Authentication by munge, on clusters that have it: its daemons share a key, and tell which user
 * made a credential. Rank 0 makes a secret and seals it in a credential that only processes of its
 * own user can open, on any host of the realm. A rank that later proves that it knows the secret is
 * such a process.
 *
 * A credential may be expired or have been opened before: it carries a secret made for one
 * exchange, and knowing the secret is what a rank proves. libmunge is loaded when it is first
 * needed. If there is a daemon, a separate thread calls it, because it may wait longer than the
 * deadline.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/async_call.h"
#include "base/environment.h"
#include "base/library.h"
#include "exchange/tcp.h"

#define LIBRARY "libmunge.so.2"
/* The longest wait for the daemon of this host. */
#define DAEMON_TIME SLUICE_S(5)

/* From munge.h; the values belong to the so-version. */
enum { OPT_CIPHER_TYPE = 0, OPT_SOCKET = 8, OPT_UID_RESTRICTION = 9 };
enum { CIPHER_AES128 = 4 };
enum { SUCCESS = 0, CRED_EXPIRED = 15, CRED_REWOUND = 16, CRED_REPLAYED = 17 };

static struct {
    void *(*create)(void);
    void (*destroy)(void *context);
    int (*get)(void *context, int option, ...);
    int (*set)(void *context, int option, ...);
    int (*encode)(char **credential, void *context, const void *bytes, int count);
    int (*decode)(const char *credential, void *context, void **bytes, int *count, uid_t *user,
                  gid_t *group);
    const char *(*describe)(int error);
} munge;

static const struct slu_symbol symbols[] = {
    {"munge_ctx_create", &munge.create}, {"munge_ctx_destroy", &munge.destroy},
    {"munge_ctx_get", &munge.get},       {"munge_ctx_set", &munge.set},
    {"munge_encode", &munge.encode},     {"munge_decode", &munge.decode},
    {"munge_strerror", &munge.describe},
};

/* A request to the daemon. */
struct request {
    struct slu_async_call call;
    bool seal;
    char socket[108];
    uint8_t secret[SLU_SECRET_BYTES];
    char credential[TCP_CREDENTIAL_BYTES];
};

static int load_library(void)
{
    static struct slu_fork_lock lock = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static bool loaded;
    int error = 0;

    slu_fork_lock(&lock);
    if (!loaded)
        error = slu_library_load("munge", LIBRARY, symbols, sizeof symbols / sizeof symbols[0]);
    loaded = error == 0;
    pthread_mutex_unlock(&lock.lock);
    return error;
}

/* Most hosts have no munge. This is found out here, without a thread or a request. */
static int find_daemon(struct request *request)
{
    int error = load_library();
    void *context = error == 0 ? munge.create() : NULL;
    const char *usual = "";

    if (error < 0)
        return error;
    if (context == NULL)
        return slu_fail(ENOMEM, "munge: no memory to ask its daemon");
    if (request->socket[0] == '\0' && munge.get(context, OPT_SOCKET, &usual) == SUCCESS)
        snprintf(request->socket, sizeof request->socket, "%s", usual);
    munge.destroy(context);
    if (access(request->socket, F_OK) == 0)
        return 0;
    return slu_fail(EOPNOTSUPP, "munge: no daemon is at %s: %s", request->socket,
                    strerrordesc_np(errno));
}

static int seal(struct request *request, void *context)
{
    char *credential = NULL;
    size_t length;
    int error = munge.set(context, OPT_UID_RESTRICTION, geteuid());

    /* The credential is always encrypted, whatever the daemon prefers. */
    if (error == SUCCESS)
        error = munge.set(context, OPT_CIPHER_TYPE, (int)CIPHER_AES128);
    if (error == SUCCESS)
        error = munge.encode(&credential, context, request->secret, sizeof request->secret);
    if (error != SUCCESS)
        return slu_fail(EACCES, "munge: no credential can be made: %s", munge.describe(error));
    length = strlen(credential);
    if (length < sizeof request->credential)
        memcpy(request->credential, credential, length + 1);
    free(credential);
    if (length < sizeof request->credential)
        return 0;
    return slu_fail(EACCES, "munge: a credential has %zu bytes, can have at most %zu", length,
                    sizeof request->credential - 1);
}

static int unseal(struct request *request, void *context)
{
    uid_t user = (uid_t)-1;
    gid_t group;
    void *bytes = NULL;
    int count = 0, result;
    int error = munge.decode(request->credential, context, &bytes, &count, &user, &group);

    if (error != SUCCESS && error != CRED_EXPIRED && error != CRED_REWOUND &&
        error != CRED_REPLAYED)
        result = slu_fail(EACCES, "munge: the credential of rank 0 cannot be opened: %s",
                          munge.describe(error));
    else if (user != geteuid())
        result = slu_fail(EACCES, "munge: rank 0 runs as user %u, this rank as user %u",
                          (unsigned)user, (unsigned)geteuid());
    else if (bytes == NULL || count != (int)sizeof request->secret)
        result = slu_fail(EACCES, "munge: the credential of rank 0 has no secret in it");
    else
        result = 0;
    if (result == 0)
        memcpy(request->secret, bytes, sizeof request->secret);
    if (bytes != NULL)
        explicit_bzero(bytes, (size_t)count);
    free(bytes);
    return result;
}

static int run_request(struct request *request)
{
    void *context = munge.create();
    int error = 0;

    if (context == NULL)
        return slu_fail(ENOMEM, "munge: no memory to ask its daemon");
    if (munge.set(context, OPT_SOCKET, request->socket) != SUCCESS)
        error = slu_fail(ENOMEM, "munge: the socket %s cannot be set", request->socket);
    if (error == 0)
        error = request->seal ? seal(request, context) : unseal(request, context);
    munge.destroy(context);
    return error;
}

/* Runs in a thread of its own. */
static int run(struct slu_async_call *call)
{
    slu_fd_unshare();
    return run_request(slu_container_of(call, struct request, call));
}

/* Called when the last reference is dropped, whatever the result. */
static void wipe(struct slu_async_call *call)
{
    struct request *request = slu_container_of(call, struct request, call);

    explicit_bzero(request->secret, sizeof request->secret);
}

/*
 * Makes the daemon handle the caller's request, within DAEMON_TIME. The answer is in the request.
 */
static int call_daemon(struct request *given, int64_t until)
{
    int64_t limit = slu_after(DAEMON_TIME);
    int error = find_daemon(given);
    struct request *request;

    if (error < 0)
        return error;
    request = malloc(sizeof *request);
    if (request == NULL)
        return slu_fail(ENOMEM, "no memory to ask munge");
    *request = *given;
    slu_async_call_init(&request->call);
    request->call.wipe = wipe;
    /*
     * Guards descriptors that are opened before the thread has its own table, or if it gets none.
     */
    slu_fd_guard();
    error = slu_async_call_start(&request->call, run);
    if (error == 0)
        error = slu_async_call_wait(&request->call, slu_earlier(limit, until),
                                    "munge: its daemon does not answer");
    slu_fd_unguard();
    if (error == 0) {
        memcpy(given->secret, request->secret, sizeof given->secret);
        memcpy(given->credential, request->credential, sizeof given->credential);
    }
    slu_async_call_drop(&request->call);
    return error;
}

/*
 * Returns 1 if munge is to be used, with this socket, or the default one if empty; 0 if not; or
 * -EINVAL.
 */
static int read_variable(struct request *request)
{
    const char *value = NULL;
    int error = slu_env_text(SLU_ENV_MUNGE, &value);

    if (error < 0)
        return error;
    if (value != NULL && strcmp(value, "no") == 0)
        return 0;
    if (value != NULL && value[0] != '/')
        return slu_fail(EINVAL, "SLUICE_MUNGE is '%.64s', must be no, or the path of a socket",
                        value);
    snprintf(request->socket, sizeof request->socket, "%s", value != NULL ? value : "");
    return 1;
}

int slu_munge_seal(uint8_t secret[SLU_SECRET_BYTES], char credential[TCP_CREDENTIAL_BYTES],
                   int64_t until)
{
    struct request request = {.seal = true};
    struct slu_text before, why;
    int used = read_variable(&request);
    bool named = request.socket[0] != '\0';
    int error;

    if (used <= 0)
        return used;
    error = slu_random(request.secret, sizeof request.secret);
    if (error < 0) {
        explicit_bzero(request.secret, sizeof request.secret);
        return error;
    }
    slu_text_save(&before);
    error = call_daemon(&request, until);
    if (error == 0) {
        memcpy(secret, request.secret, sizeof request.secret);
        memcpy(credential, request.credential, sizeof request.credential);
    }
    explicit_bzero(request.secret, sizeof request.secret);
    if (error == 0)
        return 1;
    /* The caller's deadline has passed: whether there is munge is not known. */
    if (error == -ETIMEDOUT && slu_is_late(until))
        return error;
    slu_text_save(&why);
    /* If the user named the socket, its failure is an error. Otherwise munge counts as absent. */
    if (named)
        return slu_fail(error == -ENOMEM ? ENOMEM : EACCES, "%s; SLUICE_MUNGE names this socket",
                        why.bytes);
    slu_text_restore(&before);
    slu_log(SLUICE_LOG_INFO, "munge is not used: %s", why.bytes);
    return 0;
}

int slu_munge_unseal(const char credential[TCP_CREDENTIAL_BYTES], uint8_t secret[SLU_SECRET_BYTES],
                     int64_t until)
{
    struct request request = {.seal = false};
    int used = read_variable(&request);
    int error;

    if (used < 0)
        return used;
    if (strnlen(credential, TCP_CREDENTIAL_BYTES) == TCP_CREDENTIAL_BYTES)
        return slu_fail(EACCES, "munge: the credential of rank 0 is not terminated");
    memcpy(request.credential, credential, TCP_CREDENTIAL_BYTES);
    error = call_daemon(&request, until);
    if (error == 0)
        memcpy(secret, request.secret, SLU_SECRET_BYTES);
    explicit_bzero(request.secret, sizeof request.secret);
    return error;
}
