/* SPDX-License-Identifier: MIT */
/*
 * A machine of two threads with store buffers, on which the ring of shared memory runs: its code,
 * compiled with atomic operations that let the test choose which thread runs next. Used only by
 * test_interleave.c.
 */
#ifndef SOFT_MACHINE_H
#define SOFT_MACHINE_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "../support/suite.h"

static uint64_t hooked_load(const volatile void *at, size_t size);
static void hooked_store(volatile void *at, uint64_t value, size_t size);
static uint64_t hooked_exchange(volatile void *at, uint64_t value, size_t size);
static void hooked_fence(void);
static void drain_stores(void);
static void hooked_copy(void *to, const void *from, size_t size);

/* The part of the protocol that is broken in this run, if any. */
enum fault {
    NO_FAULT,
    NO_FENCE_OF_WRITER,  /* between publishing and checking whether the reader sleeps */
    NO_FENCE_OF_READER,  /* between going to sleep and the last check for records */
    NO_FENCE_OF_TELLER,  /* between words and checking whether the writer sleeps */
    NO_FENCE_OF_HEARER,  /* between its going to sleep and the last check of the words */
    NO_WISH_FOR_WORDS,   /* the writer does not announce that it waits for words */
    UNTOLD_EARLY,        /* the writer is not notified that an early message was received */
    LATE_CLEARING,       /* the word behind a record is cleared after it is published */
    EARLY_PUBLISHING,    /* a record is published before its bytes are written */
    NO_LAST_LOOK,        /* no last check before a thread goes to sleep */
    EARLY_TAKING,        /* the place is given back before the bytes are read */
    NO_FENCE_OF_TOUCHER, /* between marking memory as touched and checking whether it is closed */
    NO_FENCE_OF_CLOSER,  /* between closing and checking whether memory is touched */
    NO_LOOK_AGAIN,       /* no check whether it is closed between two touches */
    EARLY_LETTING_GO,    /* the mark is removed before the last touch */
    FAULTS
};

static enum fault fault;

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_thread_fence
#define atomic_load_explicit(at, order) hooked_load((at), sizeof *(at))
#define atomic_store_explicit(at, value, order) hooked_store((at), (value), sizeof *(at))
#define atomic_exchange_explicit(at, value, order) hooked_exchange((at), (value), sizeof *(at))
#define atomic_thread_fence(order) hooked_fence()
#define memcpy hooked_copy
#define SHM_SLOTS 4
#define GIVEN_TOGETHER 2
#include "../../lib/transport/soft/shm/ring.c"
#undef memcpy

/* The machine. */

#define THREADS 2
#define STORES 16
#define STACK 65536
#define VISITED (UINT32_C(1) << 22)

/* A word, or the bytes of a record; the order of writes within it does not matter. */
struct store {
    uint8_t *at;
    size_t size;
    uint8_t bytes[SHM_LINE];
};

struct thread {
    ucontext_t context;
    uint8_t *stack;
    bool done, asleep, woken, fencing;
    bool dozing;      /* the fence precedes a sleep, not a publication */
    uint64_t history; /* of all values it has read: with the program, that is its state */
    struct store stores[STORES];
    uint32_t count;
};

static struct thread threads[THREADS];
static struct thread *current;
static ucontext_t scheduler;
static _Alignas(64) struct shm_segment segments[THREADS]; /* [i]: thread i reads it */
static const char *violation;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static struct thread *choose_next(void);

/* Lets the other thread run, or goes on: switching costs system calls. */
static void pass(void)
{
    struct thread *self = current;

    current = choose_next();
    if (current != self)
        swapcontext(&self->context, current != NULL ? &current->context : &scheduler);
}

static void observe(uint64_t value)
{
    current->history = mix(current->history, value + 1);
}

static uint64_t read_memory(const void *at, size_t size)
{
    uint64_t value = 0;

    memcpy(&value, at, size);
    return value;
}

static uint64_t hooked_load(const volatile void *at, size_t size)
{
    uint64_t value;

    pass();
    value = read_memory((const void *)at, size);
    for (uint32_t i = 0; i < current->count; i++)
        if (current->stores[i].at == at)
            value = read_memory(current->stores[i].bytes, size);
    observe(value);
    return value;
}

static void put_store(volatile void *at, const void *bytes, size_t size)
{
    struct store *store;

    pass();
    store = &current->stores[current->count];
    require(current->count < STORES && size <= sizeof store->bytes, "%zu bytes", size);
    store->at = (uint8_t *)at;
    store->size = size;
    memset(store->bytes, 0, sizeof store->bytes);
    memcpy(store->bytes, bytes, size);
    current->count++;
    observe(0);
}

static void drain_stores(void)
{
    current->fencing = true;
    pass();
    current->fencing = false;
    observe(1);
}

static bool touches; /* instead of messages: the writer, and the reader closes */

static void hooked_fence(void)
{
    static const enum fault without[2][2] = {{NO_FENCE_OF_WRITER, NO_FENCE_OF_HEARER},
                                             {NO_FENCE_OF_TELLER, NO_FENCE_OF_READER}};

    if (fault != (touches ? NO_FENCE_OF_TOUCHER + (enum fault)(current - threads)
                          : without[current - threads][current->dozing]))
        drain_stores();
}

/* With EARLY_PUBLISHING, the store that is published first. */
static struct {
    volatile void *at;
    uint64_t value;
} held;

static void hooked_store(volatile void *at, uint64_t value, size_t size)
{
    bool late = fault == LATE_CLEARING && size == sizeof(uint64_t) && current == &threads[0];

    if (late && value == 0) {
        held.at = at;
        return;
    }
    put_store(at, &value, size);
    if (late && held.at != NULL)
        put_store(held.at, &held.value, size);
    if (late)
        held.at = NULL;
}

static uint64_t hooked_exchange(volatile void *at, uint64_t value, size_t size)
{
    uint64_t before;

    drain_stores();
    before = read_memory((const void *)at, size);
    memcpy((void *)at, &value, size);
    observe(before);
    return before;
}

static void hooked_copy(void *to, const void *from, size_t size)
{
    put_store(to, from, size);
}

static void flush_one(struct thread *thread)
{
    struct store *store = &thread->stores[0];

    memcpy(store->at, store->bytes, store->size);
    thread->count--;
    memmove(store, store + 1, thread->count * sizeof *store);
}

#endif
