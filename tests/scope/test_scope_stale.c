/* SPDX-License-Identifier: MIT */
/*
 * Scopes that have ended: later calls with one fail with that reason, and affect no other scope, of
 * the same channel or another, whether or not the channel still exists.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../support/pair.h"
#include "../support/process.h"

#define LENGTH 100
/* More scopes than have places from the start. */
#define CROWD 150

/* Two pairs, and writes of the first. */
struct fixture {
    struct pair pair, other;
    struct memory near, far;
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
    struct sluice_scope_report report;
};

static void fixture_open(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    pair_open(&fixture->pair, NULL);
    pair_open(&fixture->other, NULL);
    memory_open(&fixture->near, fixture->pair.sides.pds[0], LENGTH);
    memory_open(&fixture->far, fixture->pair.sides.pds[1], LENGTH);
    fixture->sge = memory_sge(&fixture->near, 0, LENGTH);
    fixture->remote = memory_remote(&fixture->far, 0, LENGTH);
    fixture->report.size = sizeof(fixture->report);
}

static void fixture_close(struct fixture *fixture)
{
    memory_close(&fixture->near);
    memory_close(&fixture->far);
    pair_close(&fixture->other);
    pair_close(&fixture->pair);
}

static struct sluice_scope *begin(struct sluice_channel *channel)
{
    return made(sluice_channel_scope_begin(channel, DEADLINE));
}

/* Hides from the compiler that the scope has ended. */
static struct sluice_scope *begin_and_end(struct sluice_channel *channel)
{
    struct sluice_scope *scope = begin(channel);
    struct sluice_scope *volatile kept = scope;
    require_ok(sluice_scope_end(scope, NULL));
    return kept;
}

/* Requires that each call refuses the scope with this error. */
static void check_refused(struct fixture *fixture, struct sluice_scope *volatile scope, int error)
{
    const char *words = error == -ESTALE ? "scope has ended" : "not a scope";
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, NULL);
    struct sluice_handle handle = {.id = 77};
    struct sluice_completion completion;
    struct sluice_scope_report report = {.size = sizeof(report), .said = -EDOM, .posted = 7};
    require_error(sluice_scope_post(scope, &send, 1, &handle), error, words);
    require_error(sluice_scope_post_send(scope, 0, NULL, 0, &handle), error, words);
    require_error(sluice_scope_post_write(scope, 0, &fixture->sge, 1, &fixture->remote, &handle),
                  error, words);
    require_error(sluice_scope_post_scatter_send(scope, &send, 1, &handle), error, words);
    require_error(sluice_scope_post_multicast_send(scope, &send, &send.peer, 1, &handle), error,
                  words);
    require(handle.id == 77, "a handle was written: %llu", (unsigned long long)handle.id);
    require_error(sluice_scope_poll(scope, &completion, 1), error, words);
    require_error(sluice_scope_wait(scope, &handle, 0, &completion), error, words);
    require_error(sluice_scope_end(scope, &report), error, words);
    require_error(sluice_scope_end(scope, NULL), error, words);
    require(report.posted == 7 && report.error == 0, "%u posted", report.posted);
    require_null(sluice_scope_attach(scope, &report), -error, words);
    require(report.error == error && report.posted == 0, "%d", report.error);
}

/* Requires that the scope is open and has posted nothing; a write posted now is done at its end. */
static void check_untouched(struct fixture *fixture, struct sluice_scope *scope)
{
    require_ok(sluice_scope_post_write(scope, 0, &fixture->sge, 1, &fixture->remote, NULL));
    require_ok(sluice_scope_end(scope, &fixture->report));
    require_equal(fixture->report.posted, 1, fixture->report.unseen, 1);
}

TEST_WITH(fixture, ended_twice_on_one_channel, ())
{
    struct sluice_scope *old = begin_and_end(fixture->pair.channels[0]);
    check_refused(fixture, old, -ESTALE);
    struct sluice_scope *scope = begin(fixture->pair.channels[0]);
    require(scope != old, "%p", (void *)old);
    check_refused(fixture, old, -ESTALE);
    check_untouched(fixture, scope);
    pair_works(&fixture->pair);
}

TEST_WITH(fixture, ended_twice_beside_another_channel, ())
{
    struct sluice_scope *first = begin(fixture->pair.channels[0]);
    struct sluice_scope *old = begin_and_end(fixture->other.channels[0]);
    struct sluice_scope *second = begin(fixture->pair.channels[1]);
    check_refused(fixture, old, -ESTALE);
    check_untouched(fixture, first);
    require_ok(sluice_scope_end(second, NULL));
    pair_works(&fixture->pair);
}

/* The channel is gone, and the next one may have its memory. */
TEST_WITH(fixture, ended_before_the_close, ())
{
    for (int closed_first = 0; closed_first < 2; closed_first++) {
        struct sluice_scope *scope = begin(fixture->other.channels[0]);
        struct sluice_scope *volatile old = scope;
        if (!closed_first) {
            require_ok(sluice_scope_end(scope, NULL));
        }
        sluice_channel_close(fixture->other.channels[0]);
        if (closed_first) {
            require_ok(sluice_scope_end(scope, NULL));
        }
        sluice_channel_close(fixture->other.channels[1]);
        check_refused(fixture, old, -ESTALE);
        pair_connect(&fixture->other, NULL);
        check_refused(fixture, old, -ESTALE);
        struct sluice_scope *next[] = {begin(fixture->other.channels[0]),
                                       begin(fixture->other.channels[1])};
        check_refused(fixture, old, -ESTALE);
        require_ok(sluice_scope_end(next[0], NULL));
        require_ok(sluice_scope_end(next[1], NULL));
    }
}

/* A stale scope is distinct from all that come after it, not only from the last few. */
TEST_WITH(fixture, ended_long_ago, ())
{
    /* Ids do not depend on the wire. */
    const int scopes = short_run() || current_wire() != WIRE_SELF ? 2000 : 300000;
    struct sluice_scope *old = begin_and_end(fixture->pair.channels[0]);
    for (int i = 0; i < scopes; i++) {
        struct sluice_scope *scope = begin(fixture->pair.channels[i % 2]);
        require(scope != old, "after %d", i);
        require_ok(sluice_scope_end(scope, NULL));
    }
    struct sluice_scope *scope = begin(fixture->pair.channels[0]);
    check_refused(fixture, old, -ESTALE);
    check_untouched(fixture, scope);
}

TEST_WITH(fixture, pointers_that_were_never_a_scope, ())
{
    struct sluice_scope *scope = begin(fixture->pair.channels[0]);
    void *others[] = {fixture,   fixture->pair.channels[0], (void *)1,
                      (void *)8, (void *)UINTPTR_MAX,       (char *)fixture + 1};
    for (size_t i = 0; i < COUNT(others); i++) {
        check_refused(fixture, others[i], -EINVAL);
    }
    require_error(sluice_scope_poll(NULL, NULL, 0), -EINVAL, "not a scope");
    check_untouched(fixture, scope);
}

/* All of them are open at once, and places of closed ones are reused. */
TEST_WITH(fixture, scopes_of_a_crowd, ())
{
    struct sluice_multichannel *loops[CROWD];
    struct sluice_scope *scopes[CROWD];
    struct sluice_scope *volatile old[CROWD];
    struct sluice_channel_attr attr = {.size = sizeof(attr), .send_depth = 2, .receive_depth = 2};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < CROWD; i++) {
            loops[i] = loop_open(fixture->pair.sides.pds[0], 2, &attr);
            scopes[i] = made(sluice_multichannel_scope_begin(loops[i], DEADLINE));
            require_ok(sluice_scope_post_receive(scopes[i], 1, NULL, 0, NULL));
        }
        for (int i = 0; i < CROWD; i++) {
            if (round > 0) {
                require_error(sluice_scope_end(old[i], NULL), -ESTALE, "ended");
            }
            require_ok(sluice_scope_post_send(scopes[i], 0, NULL, 0, NULL));
        }
        for (int i = 0; i < CROWD; i++) {
            old[i] = scopes[i];
            require_ok(sluice_scope_end(scopes[i], &fixture->report));
            require(fixture->report.posted == 2, "%d: %u posted", i, fixture->report.posted);
            require_error(sluice_scope_end(old[i], NULL), -ESTALE, "ended");
            sluice_multichannel_close(loops[i]);
        }
    }
}

struct worker {
    pthread_t thread;
    struct sluice_channel *channel;
    _Atomic(struct sluice_scope *) ended; /* its last one */
    struct worker *other;
};

/* Opens scopes, and calls with scopes that another thread has ended meanwhile. */
static void *ask_for_others(void *argument)
{
    struct worker *worker = argument;
    for (int i = 0; i < (short_run() ? 500 : 5000); i++) {
        atomic_store_explicit(&worker->ended, begin_and_end(worker->channel), memory_order_relaxed);
        struct sluice_scope *scope = begin(worker->channel);
        struct sluice_scope *old =
            atomic_load_explicit(&worker->other->ended, memory_order_relaxed);
        if (old) {
            require_error(sluice_scope_end(old, NULL), -ESTALE, "ended");
        }
        require_ok(sluice_scope_end(scope, NULL));
    }
    return NULL;
}

TEST_WITH(fixture, ended_by_other_threads, ())
{
    struct worker workers[2] = {{.channel = fixture->pair.channels[0], .other = &workers[1]},
                                {.channel = fixture->other.channels[0], .other = &workers[0]}};
    for (int i = 0; i < 2; i++) {
        require(pthread_create(&workers[i].thread, NULL, ask_for_others, &workers[i]) == 0, "%d",
                i);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(workers[i].thread, NULL);
    }
}

int main(void)
{
    return run_tests("scope_stale", 60);
}
