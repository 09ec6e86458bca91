/* SPDX-License-Identifier: MIT */
/* Threads, locks and conditions. A lock lies where the real one would. */
#include <pthread.h>

#include "calls.h"

struct lock {
    uint32_t locked, waiters;
    struct sim_task *owner;
};

_Static_assert(sizeof(struct lock) <= sizeof(pthread_mutex_t), "a lock lies where a mutex does");

SYS(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
    void *argument)
{
    sim_tick(5000);
    if (sim_fault_is_due("pthread_create")) {
        return EAGAIN;
    }
    *thread = (pthread_t)sim_task_start(sim_task->process, run, argument);
    return 0;
}

SYS(pthread_t, pthread_self, void)
{
    return (pthread_t)sim_task;
}

SYS(int, pthread_join, pthread_t thread, void **result)
{
    struct sim_task *task = (struct sim_task *)thread;
    sim_call();
    while (!task->ended) {
        sim_task->waits_for = task;
        sim_wait(INT64_MAX);
    }
    sim_task->waits_for = NULL;
    task->joined = true;
    if (result != NULL) {
        *result = task->result;
    }
    return 0;
}

/* Only connects over rdma_cm cancel a thread, which no simulated host has. */
SYS(int, pthread_cancel, pthread_t thread)
{
    sim_fail("a thread is cancelled, which is not simulated");
}

SYS(int, pthread_detach, pthread_t thread)
{
    ((struct sim_task *)thread)->detached = true;
    return 0;
}

SYS(int, pthread_setname_np, pthread_t thread, const char *name)
{
    strncpy(((struct sim_task *)thread)->name, name, sizeof sim_task->name - 1);
    ((struct sim_task *)thread)->helps = strcmp(name, "sluice-soft") == 0;
    return 0;
}

/* Wakes one task that waits, chosen at random, or all of them. */
static void wake(const void *what, bool all)
{
    uint64_t waiting = 0, chosen;
    for (struct sim_task *at = sim_task->process->tasks; at != NULL; at = at->next) {
        waiting += at->waits_for == what && at->blocked;
    }
    if (waiting == 0) {
        return;
    }
    chosen = sim_below(SIM_SCHEDULE, waiting);
    for (struct sim_task *at = sim_task->process->tasks; at != NULL; at = at->next) {
        if (at->waits_for == what && at->blocked && (all || chosen-- == 0)) {
            at->waits_for = NULL;
            sim_wake(at);
        }
    }
}

SYS(int, pthread_mutex_init, pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    memset(mutex, 0, sizeof *mutex);
    return 0;
}

SYS(int, pthread_mutex_destroy, pthread_mutex_t *mutex)
{
    sim_require(((struct lock *)(void *)mutex)->locked == 0, "a lock is destroyed that is held");
    return 0;
}

SYS(int, pthread_mutex_lock, pthread_mutex_t *mutex)
{
    struct lock *lock = (struct lock *)(void *)mutex;
    sim_tick(20);
    sim_require(lock->locked == 0 || lock->owner != sim_task, "a thread locks a lock twice");
    while (lock->locked != 0) {
        lock->waiters++;
        sim_task->waits_for = lock;
        sim_wait(INT64_MAX);
        lock->waiters--;
    }
    lock->locked = 1;
    lock->owner = sim_task;
    return 0;
}

SYS(int, pthread_mutex_trylock, pthread_mutex_t *mutex)
{
    struct lock *lock = (struct lock *)(void *)mutex;
    sim_tick(20);
    if (lock->locked != 0) {
        return EBUSY;
    }
    lock->locked = 1;
    lock->owner = sim_task;
    return 0;
}

SYS(int, pthread_mutex_unlock, pthread_mutex_t *mutex)
{
    struct lock *lock = (struct lock *)(void *)mutex;
    sim_require(lock->locked != 0 && lock->owner == sim_task, "a thread unlocks a foreign lock");
    lock->locked = 0;
    if (lock->waiters > 0) {
        wake(lock, false);
    }
    sim_tick(20);
    return 0;
}

SYS(int, pthread_cond_init, pthread_cond_t *condition, const pthread_condattr_t *attr)
{
    memset(condition, 0, sizeof *condition);
    return 0;
}

SYS(int, pthread_cond_destroy, pthread_cond_t *condition)
{
    for (struct sim_task *at = sim_task->process->tasks; at != NULL; at = at->next) {
        sim_require(at->ended || at->waits_for != condition,
                    "a condition is destroyed that a thread waits for");
    }
    return 0;
}

static int wait_for(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until)
{
    bool in_time;
    sim_task->waits_for = condition;
    ((struct lock *)(void *)mutex)->locked = 0;
    if (((struct lock *)(void *)mutex)->waiters > 0) {
        wake(mutex, false);
    }
    in_time = sim_wait(until);
    sim_task->waits_for = NULL;
    sys_pthread_mutex_lock(mutex);
    return in_time ? 0 : ETIMEDOUT;
}

SYS(int, pthread_cond_wait, pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    return wait_for(condition, mutex, INT64_MAX);
}

SYS(int, pthread_cond_timedwait, pthread_cond_t *condition, pthread_mutex_t *mutex,
    const struct timespec *until)
{
    return wait_for(condition, mutex, until->tv_sec * INT64_C(1000000000) + until->tv_nsec);
}

SYS(int, pthread_cond_signal, pthread_cond_t *condition)
{
    wake(condition, false);
    sim_tick(100);
    return 0;
}

SYS(int, pthread_cond_broadcast, pthread_cond_t *condition)
{
    wake(condition, true);
    sim_tick(100);
    return 0;
}

SYS(int, pthread_once, pthread_once_t *once, void (*run)(void))
{
    enum { NEW, RUNS, DONE };
    while (*once == RUNS) {
        sim_tick(100);
        sim_wait(sim_task->now + 1000);
    }
    if (*once == NEW) {
        *once = RUNS;
        run();
        *once = DONE;
    }
    return 0;
}

SYS(int, pthread_key_create, pthread_key_t *key, void (*end)(void *value))
{
    struct sim_process *process = sim_task->process;
    if (process->key_count == SIM_KEYS) {
        return EAGAIN;
    }
    process->key_end[process->key_count] = end;
    *key = process->key_count++;
    return 0;
}

SYS(int, pthread_setspecific, pthread_key_t key, const void *value)
{
    sim_task->keys[key] = value;
    return 0;
}

SYS(int, pthread_setcancelstate, int state, int *old)
{
    if (old != NULL) {
        *old = PTHREAD_CANCEL_ENABLE;
    }
    return 0;
}

SYS(int *, __errno_location, void)
{
    return &sim_task->error;
}

/* Called by compiled code to find a thread-local variable. */
SYS(void *, __tls_get_addr, const uint64_t *module_and_offset)
{
    return sim_thread_variables + module_and_offset[1];
}
