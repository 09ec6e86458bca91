/* SPDX-License-Identifier: MIT */
/*
 * Turns at atomic operations. A module that was compiled for a thread sanitizer calls a function
 * for each of them: here it does the operation, before and after which others may have a turn. So
 * the schedule decides what a task finds that looks at memory of another one meanwhile.
 */
#include "calls.h"

enum { COST = 4 };

#define OPERATIONS(bits)                                                                        \
    SYS(uint##bits##_t, __tsan_atomic##bits##_load, const uint##bits##_t *at, int order)        \
    {                                                                                           \
        sim_tick(COST);                                                                         \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                           \
    }                                                                                           \
    SYS(void, __tsan_atomic##bits##_store, uint##bits##_t *at, uint##bits##_t value, int order) \
    {                                                                                           \
        sim_tick(COST);                                                                         \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                          \
        sim_tick(COST);                                                                         \
    }                                                                                           \
    CHANGE(bits, exchange, __atomic_exchange_n)                                                 \
    CHANGE(bits, fetch_add, __atomic_fetch_add)                                                 \
    CHANGE(bits, fetch_sub, __atomic_fetch_sub)                                                 \
    CHANGE(bits, fetch_and, __atomic_fetch_and)                                                 \
    CHANGE(bits, fetch_or, __atomic_fetch_or)                                                   \
    CHANGE(bits, fetch_xor, __atomic_fetch_xor)                                                 \
    SYS(uint##bits##_t, __tsan_atomic##bits##_compare_exchange_val, uint##bits##_t *at,         \
        uint##bits##_t expected, uint##bits##_t value, int order, int failing)                  \
    {                                                                                           \
        sim_tick(COST);                                                                         \
        __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST,              \
                                    __ATOMIC_SEQ_CST);                                          \
        sim_tick(COST);                                                                         \
        return expected;                                                                        \
    }

#define CHANGE(bits, name, operation)                                                           \
    SYS(uint##bits##_t, __tsan_atomic##bits##_##name, uint##bits##_t *at, uint##bits##_t value, \
        int order)                                                                              \
    {                                                                                           \
        uint##bits##_t old;                                                                     \
        sim_tick(COST);                                                                         \
        old = operation(at, value, __ATOMIC_SEQ_CST);                                           \
        sim_tick(COST);                                                                         \
        return old;                                                                             \
    }

OPERATIONS(8)
OPERATIONS(16)
OPERATIONS(32)
OPERATIONS(64)

SYS(void, __tsan_atomic_thread_fence, int order)
{
    sim_tick(COST);
}

SYS(void, __tsan_atomic_signal_fence, int order)
{
}

SYS(void, __tsan_init, void)
{
}
