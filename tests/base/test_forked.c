/* SPDX-License-Identifier: MIT */
/*
 * After fork(2) the child cannot use or damage objects of its parent, whichever system call made
 * the child. It makes objects of its own and ends by exit(3), while the parent's go on.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../exchange/parties.h"
#include "../support/pair.h"
#include "../support/process.h"

#define BYTES 8192
#define FDS 1024

/* One object of each kind. */
struct estate {
    struct pair pair;
    struct sluice_pd *pd;
    struct sluice_mr *mr; /* allocated */
    uint8_t *bytes;
    struct memory memory; /* registered */
    struct sluice_prepared_channel *prepared;
    struct sluice_prepared_multichannel *prepared_many;
    struct sluice_prepared_node *prepared_node;
    struct sluice_multichannel *loop;
    struct sluice_scope *scope;  /* of the multichannel */
    struct sluice_handle handle; /* of the channel */
    struct sluice_exchange *exchange;
    struct sluice_node *node;
    bool foreign[FDS]; /* descriptors that were there before */
};

static const struct sluice_exchange_attr alone = {
    .size = sizeof(alone), .kind = SLUICE_EXCHANGE_TCP, .rank = 0, .ranks = 1};

static void estate_open(struct estate *estate)
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    memset(estate, 0, sizeof(*estate));
    for (int fd = 0; fd < FDS; fd++) {
        estate->foreign[fd] = fcntl(fd, F_GETFD) >= 0;
    }
    pair_open(&estate->pair, NULL);
    estate->pd = estate->pair.sides.pds[0];
    estate->mr = made(sluice_mr_alloc(estate->pd, BYTES, ACCESS_ALL));
    estate->bytes = sluice_mr_addr(estate->mr);
    pattern_fill(estate->bytes, BYTES, 7);
    /* Only memory of the program exists in a child as well. */
    memory_open_at(&estate->memory, estate->pd, BYTES, ACCESS_ALL, 8);
    estate->prepared = made(sluice_channel_prepare(estate->pd, NULL));
    estate->prepared_many = made(sluice_multichannel_prepare(estate->pd, 2, NULL));
    estate->prepared_node = made(sluice_node_prepare(estate->pd, 0, 1, NULL));
    estate->loop = loop_open(estate->pd, 2, NULL);
    estate->scope = made(sluice_multichannel_scope_begin(estate->loop, DEADLINE));
    require_ok(sluice_scope_post_receive(estate->scope, 0, NULL, 0, NULL));
    estate->handle = post(estate->pair.channels[0], &receive);
    estate->exchange = made(sluice_exchange_open(&alone, DEADLINE));
    estate->node = made(sluice_node_open(estate->pd, estate->exchange, NULL, DEADLINE));
}

/* Requires that everything works as before, and closes it. */
static void estate_close(struct estate *estate)
{
    pattern_check(estate->bytes, BYTES, 7);
    require_ok(sluice_channel_send(estate->pair.channels[1], NULL, 0, DEADLINE));
    await(estate->pair.channels[0], estate->handle, SLUICE_CLASS_NONE);
    pair_works(&estate->pair);
    require_ok(sluice_scope_post_send(estate->scope, 1, NULL, 0, NULL));
    require_ok(sluice_scope_end(estate->scope, NULL));
    require_ok(sluice_node_barrier(estate->node, NULL, 0, SLUICE_BARRIER_TREE, DEADLINE));
    require_ok(sluice_exchange_barrier(estate->exchange, DEADLINE));
    sluice_node_close(estate->node);
    sluice_exchange_close(estate->exchange);
    sluice_multichannel_close(estate->loop);
    sluice_prepared_node_free(estate->prepared_node);
    sluice_prepared_multichannel_free(estate->prepared_many);
    sluice_prepared_channel_free(estate->prepared);
    memory_close(&estate->memory);
    require_ok(sluice_mr_deregister(estate->mr));
    pair_close(&estate->pair);
}

static int is_none(const void *made)
{
    return made == NULL ? -errno : 1;
}

/* Requires that each call fails for lack of an object. */
static void try_calls(struct estate *estate)
{
    struct sluice_channel *channel = estate->pair.channels[0];
    struct sluice_completion completion;
    struct sluice_remote_mr remote = {0};
    struct sluice_endpoint endpoints[2];
    struct sluice_sge sge;
    struct sluice_context_info info = {.size = sizeof(info)};
    uint32_t numbers[2];
    require_result(sluice_context_query(estate->pair.sides.contexts[0], &info), -EINVAL);
    require_result(is_none(sluice_pd_alloc(estate->pair.sides.contexts[0])), -EINVAL);
    require_result(is_none(sluice_mr_alloc(estate->pd, 1, 0)), -EINVAL);
    /* The text is not left over from the call before. */
    require(strstr(sluice_last_error(), "domain; what was opened before fork(2) is the parent's"),
            "%s", sluice_last_error());
    require_result(is_none(sluice_channel_prepare(estate->pd, NULL)), -EINVAL);
    require(!sluice_mr_addr(estate->mr) && sluice_mr_length(estate->mr) == 0, "%s", "a region");
    require_result(sluice_mr_sge(estate->memory.mr, 0, 1, &sge), -EINVAL);
    require_result(sluice_mr_deregister(estate->mr), -EINVAL);
    require_result(sluice_prepared_channel_endpoint(estate->prepared, endpoints), -EINVAL);
    require_result(is_none(sluice_prepared_channel_handshake(estate->prepared, endpoints)),
                   -EINVAL);
    require_result(sluice_channel_state(channel), -EINVAL);
    require_error(sluice_channel_send(channel, NULL, 0, DEADLINE), -EINVAL, "not channel fork");
    require_result(sluice_channel_write(channel, NULL, 0, &remote, DEADLINE), -EINVAL);
    require_result(sluice_channel_receive(channel, NULL, 0, DEADLINE, NULL), -EINVAL);
    require_result(sluice_channel_wait(channel, &estate->handle, DEADLINE, &completion), -EINVAL);
    require_result(sluice_channel_cancel(channel, &estate->handle, &completion), -EINVAL);
    require_result(sluice_channel_fd(channel), -EINVAL);
    require_result(sluice_channel_wake(channel), -EINVAL);
    require_result(sluice_channel_shutdown(channel, DEADLINE), -EINVAL);
    require_result(is_none(sluice_channel_reset(channel)), -EINVAL);
    require_result(sluice_multichannel_flush(estate->loop, DEADLINE), -EINVAL);
    require_result(sluice_multichannel_peer_state(estate->loop, 0), -EINVAL);
    require_result(is_none(sluice_multichannel_scope_begin(estate->loop, DEADLINE)), -EINVAL);
    require_result(
        is_none(sluice_prepared_multichannel_handshake(estate->prepared_many, endpoints, 2)),
        -EINVAL);
    require_error(sluice_scope_post_send(estate->scope, 1, NULL, 0, NULL), -EINVAL, "not scope");
    require_result(sluice_scope_poll(estate->scope, &completion, 1), -EINVAL);
    require_result(sluice_scope_end(estate->scope, NULL), -EINVAL);
    require_result(sluice_exchange_barrier(estate->exchange, DEADLINE), -EINVAL);
    require_result(sluice_exchange_locality(estate->exchange, &numbers[0], &numbers[1], DEADLINE),
                   -EINVAL);
    require_result(sluice_node_rank(estate->node), -EINVAL);
    require_result(sluice_node_barrier(estate->node, NULL, 0, SLUICE_BARRIER_TREE, DEADLINE),
                   -EINVAL);
    require_result(is_none(sluice_prepared_node_handshake(estate->prepared_node, NULL, 0)),
                   -EINVAL);
}

/* These return nothing, and do nothing. */
static void try_ends(struct estate *estate)
{
    sluice_node_close(estate->node);
    sluice_prepared_node_free(estate->prepared_node);
    sluice_exchange_close(estate->exchange);
    sluice_multichannel_close(estate->loop);
    sluice_prepared_multichannel_free(estate->prepared_many);
    sluice_prepared_channel_free(estate->prepared);
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(estate->pair.channels[i]);
        sluice_pd_free(estate->pair.sides.pds[i]);
        sluice_context_close(estate->pair.sides.contexts[i]);
    }
}

/* Memory of the library is absent in the child; memory of the program is a copy. */
static void try_memory(struct estate *estate)
{
    int fds[2];
    require_ok(pipe(fds));
    require(write(fds[1], estate->bytes, 1) < 0 && errno == EFAULT, "allocated memory%s", "");
    require(write(fds[1], estate->memory.bytes, 1) == 1, "registered memory: %s", strerror(errno));
    close(fds[0]);
    close(fds[1]);
}

static void try_descriptors(const struct estate *estate)
{
    for (int fd = 0; fd < FDS; fd++) {
        require(estate->foreign[fd] || fcntl(fd, F_GETFD) < 0, "%d is open", fd);
    }
}

static void use_own(void)
{
    struct pair pair;
    struct memory memory;
    pair_open(&pair, NULL);
    pair_works(&pair);
    memory_open(&memory, pair.sides.pds[0], BYTES);
    struct sluice_mr *mr = made(sluice_mr_alloc(pair.sides.pds[0], BYTES, ACCESS_ALL));
    struct sluice_exchange *exchange = made(sluice_exchange_open(&alone, DEADLINE));
    struct sluice_node *node = made(sluice_node_open(pair.sides.pds[0], exchange, NULL, DEADLINE));
    require_ok(sluice_node_barrier(node, NULL, 0, SLUICE_BARRIER_TREE, DEADLINE));
    struct sluice_scope *scope = made(sluice_channel_scope_begin(pair.channels[0], DEADLINE));
    require_ok(sluice_scope_end(scope, NULL));
    sluice_node_close(node);
    sluice_exchange_close(exchange);
    require_ok(sluice_mr_deregister(mr));
    memory_close(&memory);
    pair_close(&pair);
}

static void await_child(pid_t pid)
{
    int status = 0;
    require(pid > 0, "%s", strerror(errno));
    require(waitpid(pid, &status, 0) == pid, "%s", strerror(errno));
    require(WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child ended with %#x", status);
}

/*
 * Exits without exit(3) under sanitizers: the parent's objects are unreachable in a child, which
 * they would report as a leak.
 */
static _Noreturn void leave(void)
{
    if (SANITIZED) {
        _exit(7);
    }
    exit(7);
}

TEST(objects_of_the_parent_are_refused)
{
    struct estate estate;
    estate_open(&estate);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        try_calls(&estate);
        try_descriptors(&estate);
        try_memory(&estate);
        try_ends(&estate);
        try_calls(&estate);
        leave();
    }
    await_child(pid);
    estate_close(&estate);
}

/* Handlers of pthread_atfork(3) are not called in this case. */
TEST(so_they_are_without_handlers)
{
    struct estate estate;
    estate_open(&estate);
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        try_calls(&estate);
        try_memory(&estate);
        try_ends(&estate);
        _exit(7);
    }
    await_child(pid);
    estate_close(&estate);
}

/*
 * Calls on the parent's objects fail before and after the child makes its own, whose addresses and
 * memory are not confused with the parent's.
 */
TEST(a_child_makes_its_own)
{
    struct estate estate;
    estate_open(&estate);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct estate own;
        estate_open(&own);
        try_calls(&estate);
        use_own();
        pid = fork();
        if (pid == 0) {
            try_calls(&own);
            try_calls(&estate);
            try_ends(&own);
            use_own();
            leave();
        }
        await_child(pid);
        try_ends(&estate);
        estate_close(&own);
        leave();
    }
    await_child(pid);
    estate_close(&estate);
}

static atomic_bool stopped;

static void *open_and_close(void *argument)
{
    (void)argument;
    while (!atomic_load(&stopped)) {
        struct sluice_context *context = sluice_context_open(test_device(), NULL);
        struct sluice_pd *pd = sluice_pd_alloc(context);
        struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
        sluice_prepared_channel_free(prepared);
        sluice_pd_free(pd);
        sluice_context_close(context);
    }
    return NULL;
}

/* Each of these calls locks the list of domains briefly. */
static void *make_domains(void *argument)
{
    struct sluice_context *context = sluice_context_open(test_device(), NULL);
    (void)argument;
    while (!atomic_load(&stopped)) {
        sluice_pd_free(sluice_pd_alloc(context));
    }
    sluice_context_close(context);
    return NULL;
}

static void log_nothing(uint32_t level, const char *line, void *user)
{
    (void)level;
    (void)line;
    (void)user;
}

/* The pretend device, and malloc() of sanitizers, have locks that a child cannot release. */
static bool has_other_locks(void)
{
    return device_is_pretend() || SANITIZED;
}

/*
 * Locks that other threads hold at the fork do not block the child. The pretend device has locks of
 * its own, which may.
 */
TEST(locks_are_free_in_a_child, .unless = has_other_locks)
{
    static void *(*const works[])(void *) = {open_and_close, open_and_close, make_domains};
    pthread_t threads[COUNT(works)];
    require_ok(sluice_log_set(SLUICE_LOG_DEBUG, log_nothing, NULL));
    atomic_store(&stopped, false);
    for (size_t i = 0; i < COUNT(threads); i++) {
        require_ok(pthread_create(&threads[i], NULL, works[i], NULL));
    }
    for (int i = 0; i < (short_run() ? 5 : 30); i++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            use_own();
            _exit(7);
        }
        await_child(pid);
    }
    atomic_store(&stopped, true);
    for (size_t i = 0; i < COUNT(threads); i++) {
        require_ok(pthread_join(threads[i], NULL));
    }
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
}

int main(void)
{
    return run_tests("forked", device_is_soft() ? 60 : 300);
}
