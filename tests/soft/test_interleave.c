/* SPDX-License-Identifier: MIT */
/*
 * The ring of the wire through shared memory under all interleavings of a writer and a
 * reader on a machine with store buffers (TSO, as x86 is): the code of the library,
 * compiled with atomic operations that ask which of the two goes on, or whose oldest
 * store reaches memory. What may follow from a state is tried once. Records must arrive
 * whole, in order, and nobody may sleep while there is something to do: neither for a
 * record or room nor for what the reader says in words, credit and what is done.
 *
 * That it would notice is tried with broken copies: each leaves out one thing that the
 * ring depends on, a fence between a store and a load among them.
 */
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

/* What is broken, if anything. */
enum fault {
    NO_FAULT,
    NO_FENCE_OF_WRITER, /* between publishing and looking whether the reader sleeps */
    NO_FENCE_OF_READER, /* between going to sleep and the last look */
    NO_FENCE_OF_TELLER, /* between words and looking whether the writer sleeps */
    NO_FENCE_OF_HEARER, /* between its going to sleep and the last look at them */
    NO_WISH_FOR_WORDS,  /* it does not say that it waits for them */
    LATE_CLEARING,      /* the word behind a record is cleared after it is published */
    EARLY_PUBLISHING,   /* a record is published before its bytes are written */
    NO_LAST_LOOK,       /* of who goes to sleep */
    EARLY_TAKING,       /* the place is given back before the bytes are read */
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
#include "../../lib/transport/soft/shm_ring.c"
#undef memcpy

/* The machine. */

#define THREADS 2
#define STORES 16
#define STACK 65536
#define VISITED (UINT32_C(1) << 22)

/* A word, or the bytes of a record, in which order they are written matters to nobody. */
struct store {
    uint8_t *at;
    size_t size;
    uint8_t bytes[SHM_LINE];
};

struct thread {
    ucontext_t context;
    uint8_t *stack;
    bool done, asleep, woken, fencing;
    bool dozing;      /* it fences to go to sleep, and not because it has published */
    uint64_t history; /* of all it has seen: with the program, that is its state */
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

static void pass(void)
{
    swapcontext(&current->context, &scheduler);
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

static void hooked_fence(void)
{
    static const enum fault without[2][2] = {{NO_FENCE_OF_WRITER, NO_FENCE_OF_HEARER},
                                             {NO_FENCE_OF_TELLER, NO_FENCE_OF_READER}};

    if (fault != without[current - threads][current->dozing])
        drain_stores();
}

/* What is to be published first, if it is broken. */
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

/* What they do: a stream of words, in messages; the last ones only to find what is broken. */

#define ENOUGH (SANITIZED ? 2 : 3)
static const uint32_t stream[] = {1, 8, 1, 1, 1, 1};
static const uint32_t requests[] = {1, 1, 1};
static const uint32_t *messages;
static uint32_t message_count, words;
static bool answered; /* the writer waits for receives, and until all is done */

static struct shm_writer writers[THREADS];
static struct shm_reader readers[THREADS];
static uint32_t received;

static void wake_other(void)
{
    threads[current == &threads[0]].woken = true;
}

/* Until the other rings. */
static void sleep_now(void)
{
    current->asleep = true;
    pass();
    current->asleep = current->woken = false;
    observe(2);
}

static void write_record(struct shm_writer *writer, uint32_t first, uint32_t count)
{
    uint32_t at = writer->index * SHM_LINE + SHM_HEAD;
    uint64_t bytes[8];

    for (uint32_t i = 0; i < count; i++)
        bytes[i] = 100 + first + i;
    if (fault != EARLY_PUBLISHING)
        slu_soft_shm_put(writer, 0, bytes, count * 8);
    slu_soft_shm_publish(writer, SHM_STREAM, count * 8);
    for (uint32_t i = 0; i < count && fault == EARLY_PUBLISHING; i++)
        put_store(writer->segment->slots[0] + (at + i * 8) % RING_BYTES, &bytes[i], 8);
    slu_soft_shm_fence();
    if (slu_soft_shm_wakes_peer(writer, SHM_ARMED_RECORDS))
        wake_other();
}

/* Goes to sleep, unless there is something to do. */
static void rest(uint32_t thread, struct shm_wants wants)
{
    bool bell = false, dozes = true;

    if (fault == NO_WISH_FOR_WORDS)
        wants.words = false;
    if (fault == NO_LAST_LOOK) {
        hooked_store(&readers[thread].segment->armed, SHM_ARMED_RECORDS | SHM_ARMED_WORDS,
                     sizeof(unsigned));
    } else {
        current->dozing = true;
        dozes = slu_soft_shm_doze(&readers[thread], &writers[thread], &wants, &bell);
        current->dozing = false;
    }
    if (bell)
        wake_other();
    if (dozes)
        sleep_now();
    slu_soft_shm_rouse(&readers[thread]);
}

/* Until the reader has said that it has done so much, or posted so many receives. */
static void await_words(uint32_t done, uint32_t credit)
{
    static const struct shm_wants wants = {.words = true};

    while (answered &&
           ((uint32_t)writers[0].words < done || (uint32_t)(writers[0].words >> 32) < credit))
        if (!slu_soft_shm_hear_words(&writers[0]))
            rest(0, wants);
}

static void run_writer(void)
{
    static const struct shm_wants wants = {.room = true};
    uint32_t written = 0;

    for (uint32_t i = 0, end = 0; i < message_count; i++) {
        end += messages[i];
        await_words(0, i + 1);
        while (written < end) {
            int room = slu_soft_shm_room(&writers[0]) / 8;
            uint32_t count = room < (int)(end - written) ? (uint32_t)room : end - written;

            if (room < 0) {
                violation = "the writer takes a position for nonsense";
                return;
            }
            if (count > 0)
                write_record(&writers[0], written, count);
            else
                rest(0, wants);
            written += count;
        }
    }
    await_words(message_count, 0);
}

static void read_words(const struct shm_reader *reader, const struct shm_record *record)
{
    for (uint32_t offset = 0, piece; offset < record->length; offset += piece) {
        const uint8_t *bytes = slu_soft_shm_piece(reader, record, offset, &piece);

        pass();
        for (uint32_t i = 0; i < piece; i += 8) {
            uint64_t word = read_memory(bytes + i, 8);

            observe(word);
            if (word != 100 + received++)
                violation = "other bytes than were written";
        }
    }
}

static void take_record(struct shm_reader *reader, const struct shm_record *record)
{
    struct shm_reader before = *reader;

    if (fault == EARLY_TAKING)
        slu_soft_shm_take(reader, record);
    read_words(&before, record);
    if (fault != EARLY_TAKING)
        slu_soft_shm_take(reader, record);
    slu_soft_shm_give(reader);
}

/* What is done, and that there is one receive more. */
static void tell_words(void)
{
    uint32_t done = 0, end = messages[0];

    if (!answered)
        return;
    for (; done < message_count && end <= received; done++)
        end += done + 1 < message_count ? messages[done + 1] : 0;
    if (!slu_soft_shm_tell_words(&readers[1], slu_soft_shm_words(done, done + 1)))
        return;
    slu_soft_shm_fence();
    if (slu_soft_shm_wakes_peer(&writers[1], SHM_ARMED_WORDS))
        wake_other();
}

static void run_reader(void)
{
    static const struct shm_wants wants = {.words = false};
    struct shm_record record;

    tell_words();
    while (received < words && violation == NULL) {
        int found = slu_soft_shm_peek(&readers[1], &record);

        if (found < 0)
            violation = "the reader takes a record for nonsense";
        if (found > 0)
            take_record(&readers[1], &record);
        tell_words();
        if (slu_soft_shm_wakes_writer(&readers[1]))
            wake_other();
        if (found == 0)
            rest(1, wants);
    }
    /* As whoever stays hot, it goes on to look. */
    if (violation == NULL && slu_soft_shm_wakes_writer(&readers[1]))
        wake_other();
}

/* All of it. */

#define STEPS_MAX 2000

/* What was chosen at each step of this run, and of how many. */
static uint8_t chosen[STEPS_MAX], choices[STEPS_MAX];
static uint32_t kept; /* steps that are as in the run before */
static uint64_t *visited;
static uint32_t visits;

static void run_thread(void)
{
    observe(0);
    if (current == &threads[0])
        run_writer();
    else
        run_reader();
    current->done = true;
    pass();
}

static void begin_run(void)
{
    memset(segments, 0, sizeof segments);
    memset(writers, 0, sizeof writers);
    memset(readers, 0, sizeof readers);
    received = 0;
    held.at = NULL;
    for (uint32_t i = 0; i < THREADS; i++) {
        struct thread *thread = &threads[i];
        uint8_t *stack = thread->stack;

        writers[i].segment = &segments[!i];
        readers[i].segment = &segments[i];
        memset(thread, 0, sizeof *thread);
        thread->stack = stack;
        getcontext(&thread->context);
        thread->context.uc_stack.ss_sp = stack;
        thread->context.uc_stack.ss_size = STACK;
        makecontext(&thread->context, run_thread, 0);
    }
}

static uint64_t hash_store(uint64_t hash, const struct store *store)
{
    hash = mix(hash, (uintptr_t)store->at);
    for (size_t i = 0; i < store->size; i += 8)
        hash = mix(hash, read_memory(store->bytes + i, 8));
    return hash;
}

static uint64_t hash_state(void)
{
    uint64_t hash = received;

    for (size_t i = 0; i < sizeof segments; i += 8)
        hash = mix(hash, read_memory((const uint8_t *)segments + i, 8));
    for (uint32_t i = 0; i < THREADS; i++) {
        const struct thread *thread = &threads[i];

        hash = mix(hash, thread->history);
        hash = mix(hash, (uint64_t)thread->done | (uint64_t)thread->asleep << 1 |
                             (uint64_t)thread->woken << 2 | (uint64_t)thread->fencing << 3 |
                             (uint64_t)thread->count << 4);
        for (uint32_t j = 0; j < thread->count; j++)
            hash = hash_store(hash, &thread->stores[j]);
    }
    return hash != 0 ? hash : 1;
}

/* False: what follows was tried. */
static bool is_new(uint64_t hash)
{
    uint32_t at = (uint32_t)hash & (VISITED - 1);

    require(visits < VISITED / 2, "%u states", visits);
    for (; visited[at] != 0; at = (at + 1) & (VISITED - 1))
        if (visited[at] == hash)
            return false;
    visited[at] = hash;
    visits++;
    return true;
}

/* Those that can be: a thread goes on, or its oldest store reaches memory. */
static uint32_t list_choices(struct thread **goes, struct thread **flushes)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < THREADS; i++) {
        struct thread *thread = &threads[i];
        bool waits = (thread->asleep && !thread->woken) || (thread->fencing && thread->count > 0);

        goes[count] = flushes[count] = NULL;
        if (!thread->done && !waits)
            goes[count++] = thread;
        goes[count] = flushes[count] = NULL;
        if (thread->count > 0)
            flushes[count++] = thread;
    }
    return count;
}

static void run_once(void)
{
    struct thread *goes[2 * THREADS + 1], *flushes[2 * THREADS + 1];

    begin_run();
    for (uint32_t step = 0; violation == NULL; step++) {
        uint32_t count = list_choices(goes, flushes);

        if (count == 0) {
            if (!threads[0].done || !threads[1].done)
                violation = "somebody sleeps while there is something to do";
            return;
        }
        require(step < STEPS_MAX, "%u steps", step);
        if (step >= kept) {
            if (!is_new(hash_state()))
                return;
            chosen[step] = 0;
            choices[step] = (uint8_t)count;
            kept = step + 1;
        }
        if (flushes[chosen[step]] != NULL) {
            flush_one(flushes[chosen[step]]);
            continue;
        }
        current = goes[chosen[step]];
        swapcontext(&scheduler, &current->context);
    }
}

/* The last choice that has another one; false: there is none. */
static bool next_run(void)
{
    while (kept > 0 && chosen[kept - 1] + 1 == choices[kept - 1])
        kept--;
    if (kept > 0)
        chosen[kept - 1]++;
    return kept > 0;
}

static void try_all(const uint32_t *list, uint32_t count)
{
    messages = list;
    message_count = count;
    answered = list == requests;
    words = 0;
    for (uint32_t i = 0; i < count; i++)
        words += messages[i];
    visited = calloc(VISITED, sizeof *visited);
    for (uint32_t i = 0; i < THREADS; i++)
        threads[i].stack = malloc(STACK);
    require(visited && threads[0].stack && threads[1].stack, "%d", (int)fault);
    kept = visits = 0;
    violation = NULL;
    do
        run_once();
    while (violation == NULL && next_run());
    free(visited);
    for (uint32_t i = 0; i < THREADS; i++)
        free(threads[i].stack);
}

TEST(records_arrive_whatever_comes_first)
{
    try_all(stream, ENOUGH);
    require(violation == NULL, "%s", violation);
    printf("# %u states\n", visits);
    require(visits > 1000, "%u states", visits);
}

TEST(nobody_waits_for_words_that_are_there)
{
    try_all(requests, ENOUGH - 1);
    require(violation == NULL, "%s", violation);
    printf("# %u states\n", visits);
    require(visits > 1000, "%u states", visits);
}

TEST(what_is_broken_is_found, .from = NO_FAULT + 1, .times = FAULTS - 1)
{
    bool of_words = _i >= NO_FENCE_OF_TELLER && _i <= NO_WISH_FOR_WORDS;

    fault = (enum fault)_i;
    if (of_words)
        try_all(requests, COUNT(requests));
    else
        try_all(stream, COUNT(stream));
    require(violation != NULL, "fault %d: nothing in %u states", _i, visits);
    printf("# fault %d: %s, %u states\n", _i, violation, visits);
}

int main(void)
{
    static const struct tests cases[] = {{"ring", WIRE_SELF, 60}};

    return run_groups("interleave", cases, COUNT(cases));
}
