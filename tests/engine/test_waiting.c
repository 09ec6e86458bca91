/* SPDX-License-Identifier: MIT */
/*
 * Waits: each mode ends them, an idle one takes no CPU, another thread or a signal handler wakes
 * those that may be woken, and the others are not interrupted.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../support/pair.h"
#include "../support/process.h"

/* An idle wait, and the CPU time that all threads of the process may take meanwhile. */
#define IDLE SLUICE_MS(300)
#define NEXT_TO_NOTHING (SANITIZED ? SLUICE_MS(60) : SLUICE_MS(20))

static const uint32_t modes[] = {SLUICE_WAIT_ADAPTIVE, SLUICE_WAIT_SPIN, SLUICE_WAIT_EVENT};
static const struct sluice_request receive_nothing = {.opcode = SLUICE_OP_RECEIVE};

static void open_with(struct pair *pair, uint32_t mode)
{
    const struct sluice_channel_attr attr = {.size = sizeof(attr), .wait_mode = mode};
    pair_open(pair, &attr);
}

/* The ways to wait that a wake ends, on a channel whose posted receive stays empty. */
enum way { WAIT, NEXT, FLUSH, SCOPE_WAIT, WAYS };

/* Waits of a channel, with a scope open if that is waited for. */
struct waits {
    struct pair pair;
    enum way way;
    struct sluice_scope *scope;
    struct sluice_handle handle;
};

static void post_receive(struct waits *waits)
{
    if (waits->scope) {
        require_result(sluice_scope_post(waits->scope, &receive_nothing, 1, &waits->handle), 1);
    } else {
        require_result(sluice_channel_post(waits->pair.channels[0], &receive_nothing, 1,
                                           SLUICE_FOREVER, &waits->handle),
                       1);
    }
}

static void waits_open(struct waits *waits, enum way way, uint32_t mode)
{
    open_with(&waits->pair, mode);
    pair_works(&waits->pair);
    waits->way = way;
    waits->scope = NULL;
    if (way == SCOPE_WAIT) {
        waits->scope = made(sluice_channel_scope_begin(waits->pair.channels[0], SLUICE_FOREVER));
    }
    post_receive(waits);
}

static void waits_close(struct waits *waits)
{
    if (waits->scope) {
        require_ok(sluice_channel_send(waits->pair.channels[1], NULL, 0, DEADLINE));
        require_ok(sluice_scope_end(waits->scope, NULL));
    }
    pair_close(&waits->pair);
}

static int wait_for(struct waits *waits, int64_t timeout, struct sluice_completion *completion)
{
    struct sluice_channel *channel = waits->pair.channels[0];
    switch (waits->way) {
    case WAIT:
        return sluice_channel_wait(channel, &waits->handle, timeout, completion);
    case NEXT:
        return sluice_channel_next(channel, timeout, completion);
    case FLUSH:
        return sluice_channel_flush(channel, timeout);
    default:
        return sluice_scope_wait(waits->scope, &waits->handle, timeout, completion);
    }
}

/* Waits in each mode; the partner is a thread. */

static void *echo(void *argument)
{
    struct sluice_channel *channel = argument;
    struct sluice_completion completion;
    do {
        require_ok(sluice_channel_receive(channel, NULL, 0, DEADLINE, &completion));
        require_ok(sluice_channel_send_immediate(channel, NULL, 0, completion.immediate, DEADLINE));
    } while (completion.immediate != 0);
    return NULL;
}

TEST(each_mode_waits, .times = 3)
{
    struct pair pair;
    pthread_t thread;
    open_with(&pair, modes[_i]);
    require_ok(pthread_create(&thread, NULL, echo, pair.channels[1]));
    for (uint32_t left = short_run() ? 50 : 500; left-- > 0;) {
        struct sluice_handle handle = post(pair.channels[0], &receive_nothing);
        require_ok(sluice_channel_send_immediate(pair.channels[0], NULL, 0, left, DEADLINE));
        struct sluice_completion completion = await(pair.channels[0], handle, SLUICE_CLASS_NONE);
        require(completion.immediate == left, "%u", completion.immediate);
    }
    pthread_join(thread, NULL);
    pair_close(&pair);
}

/* A spinning thread uses the CPU that the other modes spare, so the measurement works. */
TEST_WITH(waits, spinning_uses_the_cpu, (WAIT, SLUICE_WAIT_SPIN))
{
    struct sluice_completion completion;
    int64_t begun = cpu_used(), used = 0, since = clock_now();
    /* The spinning thread gets only the time that other programs leave. */
    while (used < NEXT_TO_NOTHING && clock_now() - since < DEADLINE) {
        require_result(wait_for(waits, IDLE, &completion), -ETIMEDOUT);
        used = cpu_used() - begun;
    }
    require(used >= NEXT_TO_NOTHING, "%lld ns", (long long)used);
}

static _Thread_local unsigned yields;

/* Counts the yields of waits. */
int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

/* Waits in vain until the spins of this many waits in a row have yielded, or have not. */
static void wait_until_spins(struct waits *waits, bool spins, int times)
{
    struct sluice_completion completion;
    int64_t until = fair_now() + DEADLINE;
    for (int row = 0; row < times;) {
        yields = 0;
        require_result(wait_for(waits, SLUICE_MS(5), &completion), -ETIMEDOUT);
        row = (yields > 0) == spins ? row + 1 : 0;
        require(fair_now() < until, "%u yields", yields);
    }
}

/*
 * If spins bring nothing, most waits sleep at once, but one in some 30 still spins. A spin ends in
 * a sleep, or with the time of its wait. On a device, a spin does not yield.
 */
TEST(waits_in_vain_spin_no_more, .times = 2)
{
    const struct sluice_channel_attr attr = {.size = sizeof(attr),
                                             .spin_time = _i == 0 ? 0 : SLUICE_S(1)};
    struct waits waits = {.way = WAIT};
    if (!device_is_soft()) {
        return;
    }
    pair_open(&waits.pair, &attr);
    post_receive(&waits);
    wait_until_spins(&waits, true, 1);
    wait_until_spins(&waits, false, 10);
    wait_until_spins(&waits, true, 1);
    waits_close(&waits);
}

static void require_idle(int64_t begun, int64_t used)
{
    int64_t took = clock_now() - begun;
    used = cpu_used() - used;
    require(took >= IDLE, "it took %lld ns only", (long long)took);
    require(used < NEXT_TO_NOTHING, "%lld ns of CPU in %lld ns", (long long)used, (long long)took);
}

TEST_WITH(waits, idle_waits_take_no_cpu,
          ((enum way)(_i / 2), _i % 2 ? SLUICE_WAIT_EVENT : SLUICE_WAIT_ADAPTIVE),
          .times = 2 * WAYS)
{
    struct sluice_completion completion;
    int64_t used = cpu_used(), begun = clock_now();
    require_result(wait_for(waits, IDLE, &completion), -ETIMEDOUT);
    require_idle(begun, used);
}

/* The receive fails its channel; the remaining wake must not keep the thread busy. */
TEST(an_idle_receive_takes_no_cpu, .times = 2)
{
    struct pair pair;
    open_with(&pair, SLUICE_WAIT_ADAPTIVE);
    pair_works(&pair);
    if (_i > 0) {
        require_ok(sluice_channel_wake(pair.channels[0]));
    }
    int64_t used = cpu_used(), begun = clock_now();
    require_result(sluice_channel_receive(pair.channels[0], NULL, 0, IDLE, NULL), -ETIMEDOUT);
    require_idle(begun, used);
    pair_close(&pair);
}

/* Both sides sent messages without receives: from the system's view they have arrived. */
TEST(waiting_messages_take_no_cpu)
{
    const struct sluice_channel_attr attr = {.size = sizeof(attr), .rnr_timer = 31};
    struct pair pair;
    struct memory memories[2];
    struct sluice_handle handle = {0};
    struct sluice_completion completion;
    pair_open(&pair, &attr);
    pair_works(&pair);
    for (int i = 0; i < 2; i++) {
        memory_open(&memories[i], pair.sides.pds[i], 1 << 20);
        struct sluice_sge sge = memory_sge(&memories[i], 0, memories[i].length);
        handle = post_of(pair.channels[i], SLUICE_OP_SEND, &sge);
    }
    require_result(sluice_channel_wait(pair.channels[1], &handle, SLUICE_MS(20), &completion),
                   -ETIMEDOUT);
    int64_t used = cpu_used(), begun = clock_now();
    require_result(sluice_channel_wait(pair.channels[1], &handle, IDLE, &completion), -ETIMEDOUT);
    require_idle(begun, used);
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(pair.channels[i]);
        memory_close(&memories[i]);
    }
    sides_close(&pair.sides);
}

/* Waking, by a thread. */

TEST_WITH(waits, a_wake_ends_the_next_wait_once, ((enum way)(_i % WAYS), modes[_i / WAYS]),
          .times = 3 * WAYS)
{
    struct sluice_completion completion;
    struct sluice_channel *channel = waits->pair.channels[0];
    require_ok(sluice_channel_wake(channel));
    require_ok(sluice_channel_wake(channel));
    require_error(wait_for(waits, SLUICE_FOREVER, &completion), -EINTR, "wake");
    require_result(wait_for(waits, SLUICE_MS(5), &completion), -ETIMEDOUT);
}

/* A wake does not interrupt a wait for a result that is ready; it stays for the next wait. */
TEST_WITH(waits, a_wake_interrupts_nothing_that_is_ready, ((enum way)(_i % WAYS), modes[_i / WAYS]),
          .times = 3 * WAYS)
{
    struct sluice_completion completion;
    require_ok(sluice_channel_send(waits->pair.channels[1], NULL, 0, DEADLINE));
    require_ok(sluice_channel_wake(waits->pair.channels[0]));
    require_ok(wait_for(waits, DEADLINE, &completion));
    post_receive(waits);
    require_result(wait_for(waits, SLUICE_FOREVER, &completion), -EINTR);
}

TEST_WITH(waits, a_poll_takes_a_wake_back, ((enum way)_i, SLUICE_WAIT_ADAPTIVE), .times = WAYS)
{
    struct sluice_completion completion;
    require_ok(sluice_channel_wake(waits->pair.channels[0]));
    require_result(waits->scope ? sluice_scope_poll(waits->scope, &completion, 1)
                                : sluice_channel_poll(waits->pair.channels[0], &completion, 1),
                   0);
    require_result(wait_for(waits, SLUICE_MS(5), &completion), -ETIMEDOUT);
}

/* The peer is prepared, but not connected. */
TEST_WITH(sides, a_wake_ends_the_wait_for_a_peer, (), .times = 3)
{
    const struct sluice_channel_attr attr = {.size = sizeof(attr), .wait_mode = modes[_i]};
    struct halves halves;
    halves_prepare(&halves, sides, &attr, &attr);
    struct sluice_channel *near =
        made(sluice_prepared_channel_handshake(halves.prepared[0], &halves.endpoints[1]));
    require_ok(sluice_channel_wake(near));
    require_error(sluice_channel_wait_connected(near, DEADLINE), -EINTR, "wake");
    require_error(sluice_channel_wait_connected(near, SLUICE_MS(5)), -ETIMEDOUT,
                  "has not answered within 5 ms");
    struct sluice_channel *far =
        made(sluice_prepared_channel_handshake(halves.prepared[1], &halves.endpoints[0]));
    require_ok(sluice_channel_wait_connected(near, DEADLINE));
    require_ok(sluice_channel_wake(near));
    require_ok(sluice_channel_wait_connected(near, DEADLINE));
    sluice_channel_close(near);
    sluice_channel_close(far);
}

/* The other channels of the same context wait on. */
TEST(wake_wakes_no_other_channel, .times = 3)
{
    struct pair pair;
    struct sluice_completion completion;
    open_with(&pair, modes[_i]);
    struct sluice_handle handle = post(pair.channels[1], &receive_nothing);
    require_ok(sluice_channel_wake(pair.channels[0]));
    require_result(sluice_channel_wait(pair.channels[1], &handle, SLUICE_MS(20), &completion),
                   -ETIMEDOUT);
    pair_close(&pair);
}

/* A thread that waits, again and again, and counts what it gets. */
struct waiter {
    struct waits waits;
    pthread_t thread;
    bool with_messages; /* its partner is another thread */
    uint32_t rounds;    /* ends after this many wakes and, if there are any, as many messages */
    sem_t woken;        /* posted for each wake */
};

/* A pause of up to 30 us, so that a wake comes before, at the start of, and during a wait. */
static void linger(uint32_t *random)
{
    *random = *random * 1103515245 + 12345;
    for (volatile uint32_t i = *random >> 16 & 0x1fff; i > 0 && *random & 0x800; i--) {
        ;
    }
}

static void *wait_again_and_again(void *argument)
{
    struct waiter *waiter = argument;
    struct waits *waits = &waiter->waits;
    uint32_t messages = waiter->with_messages ? waiter->rounds : 0;
    uint32_t random = 1;
    for (uint32_t woken = 0, received = 0; woken < waiter->rounds || received < messages;) {
        struct sluice_completion completion;
        int result = wait_for(waits, DEADLINE, &completion);
        if (result == -EINTR) {
            woken++;
            sem_post(&waiter->woken);
        } else {
            require_ok(result);
            post_receive(waits);
            received++;
        }
        linger(&random);
    }
    return NULL;
}

static void await_wake(struct waiter *waiter, uint32_t round)
{
    struct timespec end;
    int more;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 10;
    require(sem_timedwait(&waiter->woken, &end) == 0, "wake %u was lost", round);
    sem_getvalue(&waiter->woken, &more);
    require(more == 0, "wake %u ended more than one wait", round);
}

/* Each wake ends one wait, and no message beside it is lost. */
static void wake_again_and_again(enum way way, uint32_t mode, bool with_messages)
{
    bool often = way == WAIT && !with_messages && !short_run();
    struct waiter waiter = {.rounds = often ? 10000 : 1000, .with_messages = with_messages};
    uint32_t random = 2;
    sem_init(&waiter.woken, 0, 0);
    waits_open(&waiter.waits, way, mode);
    struct sluice_channel *channel = waiter.waits.pair.channels[0];
    struct sluice_channel *partner = waiter.waits.pair.channels[1];
    require_ok(pthread_create(&waiter.thread, NULL, wait_again_and_again, &waiter));
    for (uint32_t round = 1; round <= waiter.rounds; round++) {
        linger(&random);
        require_ok(sluice_channel_wake(channel));
        if (with_messages) {
            linger(&random);
            require_ok(sluice_channel_send(partner, NULL, 0, DEADLINE));
        }
        await_wake(&waiter, round);
    }
    pthread_join(waiter.thread, NULL);
    sem_destroy(&waiter.woken);
    waits_close(&waiter.waits);
}

TEST(no_wake_is_lost, .times = 3 * WAYS)
{
    wake_again_and_again((enum way)(_i / 3), modes[_i % 3], false);
}

TEST(wakes_and_messages_do_not_disturb_each_other, .times = 3)
{
    wake_again_and_again(WAIT, modes[_i], true);
}

/* Many threads wake one that waits, which ends after the last wake. */
static void *wake_often(void *argument)
{
    for (int i = 0; i < 1000; i++) {
        require_ok(sluice_channel_wake(argument));
    }
    return NULL;
}

TEST_WITH(waits, many_threads_wake_at_once, (WAIT, modes[_i]), .times = 3)
{
    struct sluice_completion completion;
    pthread_t threads[3];
    for (size_t i = 0; i < COUNT(threads); i++) {
        require_ok(pthread_create(&threads[i], NULL, wake_often, waits->pair.channels[0]));
    }
    for (int i = 0; i < 10; i++) {
        int result = wait_for(waits, SLUICE_MS(1), &completion);
        require(result == -EINTR || result == -ETIMEDOUT, "%d", result);
    }
    for (size_t i = 0; i < COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    require_ok(sluice_channel_wake(waits->pair.channels[0]));
    require_result(wait_for(waits, DEADLINE, &completion), -EINTR);
    require_result(wait_for(waits, SLUICE_MS(5), &completion), -ETIMEDOUT);
}

/* Signals. */

static struct sluice_channel *_Atomic to_wake;
static atomic_uint alarms;

static void on_alarm(int number)
{
    struct sluice_channel *channel = atomic_load(&to_wake);
    (void)number;
    atomic_fetch_add(&alarms, 1);
    if (channel) {
        sluice_channel_wake(channel);
    }
}

/* A SIGALRM every millisecond that restarts no system call, and wakes the channel unless NULL. */
static timer_t start_storm(struct sluice_channel *channel)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    atomic_store(&to_wake, channel);
    atomic_store(&alarms, 0);
    sigaction(SIGALRM, &action, NULL);
    require(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "%s", strerror(errno));
    timer_settime(timer, 0, &every, NULL);
    return timer;
}

/* A busy host delivers fewer of them than milliseconds. */
#define MANY_ALARMS 20

static void end_storm(timer_t timer)
{
    timer_delete(timer);
    signal(SIGALRM, SIG_IGN);
    require(atomic_load(&alarms) >= MANY_ALARMS, "%u alarms", atomic_load(&alarms));
}

TEST_WITH(waits, a_signal_handler_wakes, ((enum way)(_i % WAYS), modes[_i / WAYS]),
          .times = 3 * WAYS)
{
    struct sluice_completion completion;
    timer_t storm = start_storm(waits->pair.channels[0]);
    for (int i = 0; i < 100; i++) {
        errno = 77;
        require_result(wait_for(waits, DEADLINE, &completion), -EINTR);
        require(errno == 77, "%d", errno);
    }
    end_storm(storm);
}

TEST_WITH(waits, signals_alone_end_no_wait, ((enum way)(_i % WAYS), modes[_i / WAYS]),
          .times = 3 * WAYS)
{
    struct sluice_completion completion;
    timer_t storm = start_storm(NULL);
    while (atomic_load(&alarms) < MANY_ALARMS) {
        int64_t begun = clock_now();
        require_result(wait_for(waits, SLUICE_MS(50), &completion), -ETIMEDOUT);
        require(clock_now() - begun >= SLUICE_MS(50), "it ended too early%s", "");
    }
    end_storm(storm);
}

static void *send_late(void *argument)
{
    while (atomic_load(&alarms) < MANY_ALARMS) {
        let_pass(SLUICE_MS(1));
    }
    require_ok(sluice_channel_send_immediate(argument, NULL, 0, 5, DEADLINE));
    return NULL;
}

/* Blocking calls end neither by signals nor by the wakes of a signal handler. */
TEST(blocking_calls_are_not_interrupted, .times = 6)
{
    struct waits waits;
    pthread_t thread;
    struct sluice_completion completion;
    open_with(&waits.pair, modes[_i % 3]);
    struct sluice_channel *channel = waits.pair.channels[0];
    waits.way = WAIT;
    waits.scope = NULL;
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    require_ok(pthread_create(&thread, NULL, send_late, waits.pair.channels[1]));
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    timer_t storm = start_storm(channel);
    if (_i < 3) {
        require_ok(sluice_channel_receive(channel, NULL, 0, DEADLINE, &completion));
    } else {
        require_ok(sluice_channel_submit(channel, &receive_nothing, 1, DEADLINE, &completion));
    }
    end_storm(storm);
    require(completion.immediate == 5, "%u", completion.immediate);
    pthread_join(thread, NULL);
    /* Signals do not consume the wake either. */
    post_receive(&waits);
    require_result(wait_for(&waits, DEADLINE, &completion), -EINTR);
    waits_close(&waits);
}

int main(void)
{
    return run_tests("waiting", 120);
}
