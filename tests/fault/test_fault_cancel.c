/* SPDX-License-Identifier: MIT */
/*
 * Threads that are cancelled: no call is a cancellation point, so a thread ends after its current
 * call, and the objects that it used still work.
 */
#include <pthread.h>
#include <sched.h>

#include "../support/memory.h"
#include "../support/pair.h"
#include "../support/process.h"

#define BYTES ((size_t)100000)
/* Most threads sleep by then; the others are cancelled while they spin. */
#define BEFORE SLUICE_MS(50)

struct waiter {
    struct pair pair;
    struct memory memory[2];
    struct sluice_sge sges[2];
    bool in_call, ended;
};

static void *receive(void *argument)
{
    struct waiter *waiter = argument;
    __atomic_store_n(&waiter->in_call, true, __ATOMIC_RELEASE);
    int error =
        sluice_channel_receive(waiter->pair.channels[1], &waiter->sges[1], 1, DEADLINE, NULL);
    require(error == 0, "%d, %s", error, sluice_last_error());
    waiter->ended = true;
    pthread_testcancel();
    return NULL;
}

static void wait_a_little(void)
{
    int64_t until = clock_now() + BEFORE;
    while (clock_now() < until) {
        sched_yield();
    }
}

static void waiter_open(struct waiter *waiter)
{
    *waiter = (struct waiter){.ended = false};
    pair_open(&waiter->pair, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        memory_open(&waiter->memory[i], waiter->pair.sides.pds[i], BYTES);
        waiter->sges[i] = memory_sge(&waiter->memory[i], 0, BYTES);
    }
}

static void waiter_close(struct waiter *waiter)
{
    pair_works(&waiter->pair);
    for (uint32_t i = 0; i < 2; i++) {
        sluice_channel_close(waiter->pair.channels[i]);
        waiter->pair.channels[i] = NULL;
        memory_close(&waiter->memory[i]);
    }
    sides_close(&waiter->pair.sides);
}

TEST(a_wait)
{
    struct waiter waiter;
    pthread_t thread;
    void *result;
    waiter_open(&waiter);
    require(pthread_create(&thread, NULL, receive, &waiter) == 0, "no thread");
    while (!__atomic_load_n(&waiter.in_call, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
    wait_a_little();
    require(pthread_cancel(thread) == 0, "cancel");
    require_ok(sluice_channel_send(waiter.pair.channels[0], &waiter.sges[0], 1, DEADLINE));
    pthread_join(thread, &result);
    require(waiter.ended && result == PTHREAD_CANCELED, "it ended in the call");
    waiter_close(&waiter);
}

static void exchange_alone(void)
{
    const struct sluice_exchange_attr attr = {
        .size = sizeof(attr), .kind = SLUICE_EXCHANGE_TCP, .rank = SLUICE_ZERO, .ranks = 1};
    struct sluice_exchange *exchange = made(sluice_exchange_open(&attr, DEADLINE));
    require_ok(sluice_exchange_barrier(exchange, DEADLINE));
    struct sluice_node *node = made(sluice_node_open(NULL, exchange, NULL, DEADLINE));
    require_ok(sluice_node_barrier(node, NULL, 0, 0, DEADLINE));
    require_ok(sluice_node_shutdown(node, DEADLINE));
    sluice_node_close(node);
    sluice_exchange_close(exchange);
}

static void listen_and_leave(struct sluice_pd *pd)
{
    const struct sluice_listen_attr attr = {.size = sizeof(attr), .secret_file = ""};
    const struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    char address[64];
    struct sluice_listener *listener = made(sluice_listen("127.0.0.1:0", &attr));
    require(sluice_listener_address(listener, address, sizeof(address)) > 0, "address");
    require_null(sluice_accept(listener, pd, NULL, SLUICE_MS(5)), ETIMEDOUT, "");
    require_null(sluice_connect(address, pd, NULL, &options, SLUICE_MS(20)), ETIMEDOUT, "");
    sluice_listener_close(listener);
}

/* Runs both ends in one thread, which has a cancellation pending from the beginning. */
static void *live(void *argument)
{
    bool *ended = argument;
    struct waiter waiter;
    struct sluice_completion completion;
    pthread_cancel(pthread_self());
    waiter_open(&waiter);
    struct sluice_channel *const *channels = waiter.pair.channels;
    struct sluice_remote_mr remote = memory_remote(&waiter.memory[1], 0, BYTES);
    for (uint32_t i = 0; i < 3; i++) {
        struct sluice_request request = request_of(SLUICE_OP_RECEIVE, 0, &waiter.sges[1]);
        struct sluice_handle handle = post(channels[1], &request);
        require_ok(sluice_channel_send(channels[0], &waiter.sges[0], 1, DEADLINE));
        await(channels[1], handle, SLUICE_CLASS_NONE);
        require_ok(sluice_channel_write(channels[0], &waiter.sges[0], 1, &remote, DEADLINE));
        require_ok(sluice_channel_read(channels[0], &waiter.sges[0], 1, &remote, DEADLINE));
    }
    /* A wait that sleeps. */
    struct sluice_request request = request_of(SLUICE_OP_RECEIVE, 0, &waiter.sges[1]);
    struct sluice_handle handle = post(channels[1], &request);
    require_result(sluice_channel_wait(channels[1], &handle, SLUICE_MS(20), &completion),
                   -ETIMEDOUT);
    require_ok(sluice_channel_cancel(channels[1], &handle, &completion));
    pair_reset(&waiter.pair);
    exchange_alone();
    listen_and_leave(waiter.pair.sides.pds[0]);
    waiter_close(&waiter);
    *ended = true;
    pthread_testcancel();
    return NULL;
}

/* Providers, and the pretend device, make system calls of their own. */
static bool on_a_device(void)
{
    return !device_is_soft();
}

TEST(a_whole_life, .unless = on_a_device)
{
    bool ended = false;
    pthread_t thread;
    void *result;
    require(pthread_create(&thread, NULL, live, &ended) == 0, "no thread");
    pthread_join(thread, &result);
    require(ended && result == PTHREAD_CANCELED, "it ended in a call");
}

int main(void)
{
    return run_tests("fault_cancel", 60);
}
