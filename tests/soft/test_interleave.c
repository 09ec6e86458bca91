/* SPDX-License-Identifier: MIT */
/*
 * The ring of the wire through shared memory under all interleavings of a writer and a reader on a
 * machine with store buffers (TSO, as x86 is): the code of the library, compiled with atomic
 * operations that choose which of the two runs next, or whose oldest store reaches memory. Each
 * state is explored once. Records must arrive whole and in order, and no thread may sleep while
 * there is something for it to do: neither for a record or room, nor for the reader's words, which
 * report credit and completed requests. A message that comes before its receive is set aside and
 * must not be lost. A side that closes a connection must own its memory alone once no thread is
 * marked as touching it.
 *
 * Broken copies prove that the test would notice: each leaves out one thing that the ring depends
 * on, such as a fence between a store and a load.
 */
#include "machine.h"

/*
 * The work of both threads: a stream of words, in messages; the last ones only help to find faults.
 */

#define ENOUGH (SANITIZED ? 2 : 3)
static const uint32_t stream[] = {1, 8, 1, 1, 1, 1};
static const uint32_t requests[] = {1, 1, 1};
static const uint32_t unasked[] = {1, 1, 1};
static const uint32_t *messages;
static uint32_t message_count, words;
static bool answered; /* the writer waits for receives, and until all is done */
static bool early;    /* the writer sends one message more than there are receives */

static struct shm_writer writers[THREADS];
static struct shm_reader readers[THREADS];
static uint32_t received, taken; /* words; those behind the taken ones are spilled */

static void wake_other(void)
{
    threads[current == &threads[0]].woken = true;
}

/* Sleeps until the other thread wakes it. */
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
        put_store(writer->segment->slots[0] + (at + i * 8) % SHM_RING_BYTES, &bytes[i], 8);
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

/* Waits until the reader has reported this many requests done, or this many receives. */
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
        await_words(0, early ? i : i + 1);
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
}

/*
 * Publishes what is done, and one more receive, unless that is to be posted for a message already
 * here.
 */
static void tell_words(void)
{
    uint32_t done = 0, end = messages[0];

    if (!answered)
        return;
    for (; done < message_count && end <= taken; done++)
        end += done + 1 < message_count ? messages[done + 1] : 0;
    if (!slu_soft_shm_tell_words(&readers[1], slu_soft_shm_words(done, early ? done : done + 1)))
        return;
    slu_soft_shm_fence();
    if (slu_soft_shm_wakes_peer(&writers[1], SHM_ARMED_WORDS))
        wake_other();
}

/*
 * Without new records the program posts a receive for an early message. Returns false if there is
 * none, and it would wait.
 */
static bool take_early(void)
{
    if (taken == received)
        return false;
    taken++;
    if (fault != UNTOLD_EARLY)
        tell_words();
    return true;
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
        if (!early)
            taken = received;
        tell_words();
        if (slu_soft_shm_wakes_writer(&readers[1]))
            wake_other();
        if (found == 0 && !take_early())
            rest(1, wants);
    }
    while (violation == NULL && take_early())
        ;
    /* A hot reader does not sleep here: it goes on polling. */
    if (violation == NULL && slu_soft_shm_wakes_writer(&readers[1]))
        wake_other();
}

/* Touching. */

#define TOUCHES 2
static uint64_t region; /* of the reader's */

static void run_toucher(void)
{
    static const uint64_t value = 1;

    if (!slu_soft_shm_touch(&writers[0]))
        return;
    for (int i = 0; i < TOUCHES; i++) {
        if (i > 0 && fault != NO_LOOK_AGAIN && slu_soft_shm_is_closed(&writers[0]))
            break;
        if (fault == EARLY_LETTING_GO && i == TOUCHES - 1)
            slu_soft_shm_let_go(&writers[0]);
        put_store(&region, &value, sizeof value);
    }
    if (fault == NO_LOOK_AGAIN) {
        /* As if the next pass went on with the state that this one found. */
        slu_soft_shm_let_go(&writers[0]);
        put_store(&writers[0].segment->touching, &value, sizeof writers[0].segment->touching);
        hooked_fence();
        put_store(&region, &value, sizeof value);
    }
    slu_soft_shm_let_go(&writers[0]);
}

/*
 * If the region is being touched, the closer would wait; all times at which it may check are
 * explored.
 */
static void run_closer(void)
{
    static const uint64_t mine = 7;

    slu_soft_shm_close(&readers[1]);
    if (slu_soft_shm_is_touched(&readers[1]))
        return;
    put_store(&region, &mine, sizeof mine);
    if (hooked_load(&region, sizeof region) != mine)
        violation = "who has closed it is not alone";
    drain_stores();
    if (hooked_load(&region, sizeof region) != mine)
        violation = "who has closed it is not alone";
}

/* All of it. */

#define STEPS_MAX 2000

/* The choice at each step of this run, and the number of choices. */
static uint8_t chosen[STEPS_MAX], choices[STEPS_MAX];
static uint32_t step; /* of this run */
static uint32_t kept; /* steps that are as in the run before */
static uint64_t *visited;
static uint32_t visits;

static void run_thread(void)
{
    observe(0);
    if (current == &threads[0])
        (touches ? run_toucher : run_writer)();
    else
        (touches ? run_closer : run_reader)();
    current->done = true;
    pass();
}

static void begin_thread(uint32_t i)
{
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

static void begin_run(void)
{
    memset(segments, 0, sizeof segments);
    memset(writers, 0, sizeof writers);
    memset(readers, 0, sizeof readers);
    received = taken = 0;
    region = 0;
    held.at = NULL;
    step = 0;
    for (uint32_t i = 0; i < THREADS; i++)
        begin_thread(i);
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
    uint64_t hash = mix(mix(received, taken), region);

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

/* Returns false if the states behind this one were explored before. */
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

/* Lists the possible steps: a thread runs, or its oldest store reaches memory. */
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

/* Returns false if the states from here were explored, unless this is a step of the run before. */
static bool choose(uint32_t count)
{
    require(step < STEPS_MAX, "%u steps", step);
    if (step < kept)
        return true;
    if (!is_new(hash_state()))
        return false;
    chosen[step] = 0;
    choices[step] = (uint8_t)count;
    kept = step + 1;
    return true;
}

/*
 * Chooses the next thread, after the stores that reach memory before it. Returns NULL at the end of
 * the run.
 */
static struct thread *choose_next(void)
{
    struct thread *goes[2 * THREADS + 1], *flushes[2 * THREADS + 1];

    while (violation == NULL) {
        uint32_t count = list_choices(goes, flushes);

        if (count == 0) {
            if (!threads[0].done || !threads[1].done)
                violation = "somebody sleeps while there is something to do";
            break;
        }
        if (!choose(count))
            break;
        count = chosen[step++];
        if (flushes[count] == NULL)
            return goes[count];
        flush_one(flushes[count]);
    }
    return NULL;
}

static void run_once(void)
{
    begin_run();
    current = choose_next();
    if (current != NULL)
        swapcontext(&scheduler, &current->context);
}

/* Goes back to the last choice with an alternative. Returns false if there is none. */
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
    early = list == unasked;
    answered = list == requests || early;
    touches = list == NULL;
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

TEST(writer_does_not_sleep_past_words)
{
    try_all(requests, ENOUGH - 1);
    require(violation == NULL, "%s", violation);
    printf("# %u states\n", visits);
    require(visits > 1000, "%u states", visits);
}

TEST(early_message_is_done_once_it_is_taken)
{
    try_all(unasked, ENOUGH - 1);
    require(violation == NULL, "%s", violation);
    printf("# %u states\n", visits);
    require(visits > 1000, "%u states", visits);
}

TEST(closer_owns_its_memory_alone)
{
    try_all(NULL, 0);
    require(violation == NULL, "%s", violation);
    printf("# %u states\n", visits);
    require(visits > 50, "%u states", visits);
}

TEST(broken_copies_are_detected, .from = NO_FAULT + 1, .times = FAULTS - 1)
{
    bool of_touches = _i >= NO_FENCE_OF_TOUCHER;
    bool of_words = _i >= NO_FENCE_OF_TELLER && _i <= NO_WISH_FOR_WORDS;

    fault = (enum fault)_i;
    if (of_touches)
        try_all(NULL, 0);
    else if (fault == UNTOLD_EARLY)
        try_all(unasked, COUNT(unasked));
    else if (of_words)
        try_all(requests, COUNT(requests));
    else
        try_all(stream, COUNT(stream));
    require(violation != NULL, "fault %d: nothing in %u states", _i, visits);
    printf("# fault %d: %s, %u states\n", _i, violation, visits);
}

int main(void)
{
    return RUN_GROUPS("interleave", {"ring", WIRE_SELF, 60});
}
