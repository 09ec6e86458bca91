/* SPDX-License-Identifier: MIT */
/*
 * Turns at atomic operations. A module that was compiled for a thread sanitizer calls a function
 * for each of them: here it does the operation, before and after which others may have a turn. So
 * the schedule decides what a task finds that looks at memory of another one meanwhile.
 */
#include "atomic.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "system.h"

enum { COST = 4 };

#define DEFINE(bits)                                                                           \
    static uint##bits##_t load##bits(const uint##bits##_t *at, int order)                      \
    {                                                                                          \
        (void)order;                                                                           \
        sim_tick(COST);                                                                        \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                          \
    }                                                                                          \
    static void store##bits(uint##bits##_t *at, uint##bits##_t value, int order)               \
    {                                                                                          \
        (void)order;                                                                           \
        sim_tick(COST);                                                                        \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                         \
        sim_tick(COST);                                                                        \
    }                                                                                          \
    CHANGE(bits, exchange, __atomic_exchange_n)                                                \
    CHANGE(bits, fetch_add, __atomic_fetch_add)                                                \
    CHANGE(bits, fetch_sub, __atomic_fetch_sub)                                                \
    CHANGE(bits, fetch_and, __atomic_fetch_and)                                                \
    CHANGE(bits, fetch_or, __atomic_fetch_or)                                                  \
    CHANGE(bits, fetch_xor, __atomic_fetch_xor)                                                \
    static uint##bits##_t compare_exchange##bits(uint##bits##_t *at, uint##bits##_t expected,  \
                                                 uint##bits##_t value, int order, int failing) \
    {                                                                                          \
        (void)order;                                                                           \
        (void)failing;                                                                         \
        sim_tick(COST);                                                                        \
        __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST,             \
                                    __ATOMIC_SEQ_CST);                                         \
        sim_tick(COST);                                                                        \
        return expected;                                                                       \
    }

#define CHANGE(bits, name, operation)                                                     \
    static uint##bits##_t name##bits(uint##bits##_t *at, uint##bits##_t value, int order) \
    {                                                                                     \
        uint##bits##_t old;                                                               \
        (void)order;                                                                      \
        sim_tick(COST);                                                                   \
        old = operation(at, value, __ATOMIC_SEQ_CST);                                     \
        sim_tick(COST);                                                                   \
        return old;                                                                       \
    }

DEFINE(8)
DEFINE(16)
DEFINE(32)
DEFINE(64)

static void fence(int order)
{
    (void)order;
    sim_tick(COST);
}

static void nothing(void)
{
}

#define NAME(bits, name, function)                           \
    {                                                        \
        "__tsan_atomic" #bits "_" name, (call)function##bits \
    }
#define NAMES(bits)                                                                         \
    NAME(bits, "load", load), NAME(bits, "store", store), NAME(bits, "exchange", exchange), \
        NAME(bits, "fetch_add", fetch_add), NAME(bits, "fetch_sub", fetch_sub),             \
        NAME(bits, "fetch_and", fetch_and), NAME(bits, "fetch_or", fetch_or),               \
        NAME(bits, "fetch_xor", fetch_xor), NAME(bits, "compare_exchange_val", compare_exchange)

typedef void (*call)(void);

void *sim_resolve_atomic(const char *name)
{
    static const struct {
        const char *name;
        call call;
    } names[] = {
        NAMES(8),
        NAMES(16),
        NAMES(32),
        NAMES(64),
        {"__tsan_atomic_thread_fence", (call)fence},
        {"__tsan_atomic_signal_fence", (call)nothing},
        {"__tsan_init", nothing},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, name) == 0) {
            return (void *)(uintptr_t)names[i].call;
        }
    }
    return NULL;
}
