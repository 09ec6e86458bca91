/* SPDX-License-Identifier: MIT */
/*
 * A hash table with open addressing: a place has a region, is free, or is a tombstone. At most half
 * of the places are not free, so that searches stay short. A full table is replaced whole by a
 * larger one, or by one without tombstones.
 *
 * A reader marks its section and then searches. A thread that removes a region clears its place and
 * then checks for readers. Each side needs a fence between its two steps. Every message reads, so
 * the fence of readers is the kernel's: membarrier(2) makes all threads of the process that run
 * pass one (MEMBARRIER_CMD_PRIVATE_EXPEDITED, Linux 4.14). Where a seccomp filter forbids the call,
 * readers fence themselves.
 */
#include "transport/soft/core/soft.h"

#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FIRST_PLACES 64

/* The tombstone: marks a place that had a region. */
static struct soft_mr gone;

struct soft_key_table {
    uint32_t mask;
    uint32_t used; /* places that are not free */
    uint32_t count;
    _Atomic(struct soft_mr *) places[];
};

atomic_bool slu_soft_keys_fenced;

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

static struct soft_key_table *make_table(uint32_t places)
{
    struct soft_key_table *table = calloc(1, sizeof(*table) + places * sizeof(table->places[0]));
    if (table != NULL)
        table->mask = places - 1;
    return table;
}

int slu_soft_keys_init(struct soft_keys *keys)
{
    struct soft_key_table *table = make_table(FIRST_PLACES);
    if (table == NULL)
        return slu_fail(ENOMEM, "no memory for the table of keys");
    atomic_init(&keys->table, table);
    atomic_init(&keys->removals, 0);
    pthread_mutex_init(&keys->lock, NULL);
    /* Registers the whole process; doing so again is harmless. */
    SLU_KEEP_ERRNO;
    if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0)
        atomic_store(&slu_soft_keys_fenced, true);
    return 0;
}

void slu_soft_keys_destroy(struct soft_keys *keys)
{
    pthread_mutex_destroy(&keys->lock);
    free(atomic_load_explicit(&keys->table, memory_order_relaxed));
}

struct soft_mr *slu_soft_keys_find(const struct soft_keys *keys, uint32_t key)
{
    const struct soft_key_table *table = atomic_load_explicit(&keys->table, memory_order_acquire);
    if (key == 0) /* not a key: the tombstone has it */
        return NULL;
    /* Keys are random: their low bits are a hash. */
    for (uint32_t place = key;; place++) {
        struct soft_mr *mr =
            atomic_load_explicit(&table->places[place & table->mask], memory_order_acquire);
        if (mr == NULL || mr->base.rkey == key)
            return mr;
    }
}

static void put(struct soft_key_table *table, struct soft_mr *mr)
{
    uint32_t place = mr->base.rkey & table->mask;
    while (atomic_load_explicit(&table->places[place], memory_order_relaxed) != NULL)
        place = (place + 1) & table->mask;
    atomic_store_explicit(&table->places[place], mr, memory_order_release);
    table->used++;
    table->count++;
}

/*
 * Makes the caller's change visible to all sections that begin from here on. A seccomp filter
 * installed after the first context may forbid the fence: readers then fence themselves. All of
 * them have seen the flag long before the pause of 10 ms is over.
 */
static void fence_readers(void)
{
    static const struct timespec pause = {.tv_nsec = SLUICE_MS(10)};
    SLU_KEEP_ERRNO;
    bool fenced = atomic_load(&slu_soft_keys_fenced);
    atomic_thread_fence(memory_order_seq_cst);
    if (!fenced && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        atomic_store(&slu_soft_keys_fenced, true);
        SLU_UNCANCELLED(nanosleep(&pause, NULL));
    }
}

/* Waits for sections that began before the change; later ones see it. */
static void await_readers(const struct soft_keys *keys)
{
    fence_readers();
    for (const struct soft_key_reader *reader = keys->readers; reader != NULL;
         reader = reader->place.next) {
        unsigned before = atomic_load_explicit(&reader->sections, memory_order_acquire);
        for (unsigned time = 0;
             before % 2 != 0 &&
             atomic_load_explicit(&reader->sections, memory_order_acquire) == before;
             time++)
            slu_soft_pause(time);
    }
}

/* Makes room for one more region, replacing the table by one without tombstones if needed. */
static int make_room(struct soft_keys *keys)
{
    struct soft_key_table *old = atomic_load_explicit(&keys->table, memory_order_relaxed);
    uint32_t places = old->mask + 1;
    if (old->used < places / 2)
        return 0;
    struct soft_key_table *table = make_table(old->count < places / 4 ? places : places * 2);
    if (table == NULL)
        return slu_fail(ENOMEM, "no memory for a table of %u keys", places * 2);
    for (uint32_t i = 0; i < places; i++) {
        struct soft_mr *mr = atomic_load_explicit(&old->places[i], memory_order_relaxed);
        if (mr != NULL && mr != &gone)
            put(table, mr);
    }
    atomic_store_explicit(&keys->table, table, memory_order_release);
    await_readers(keys);
    free(old);
    return 0;
}

static int choose_key(const struct soft_keys *keys, uint32_t *key)
{
    int err = 0;
    *key = 0;
    while (err == 0 && (*key == 0 || slu_soft_keys_find(keys, *key) != NULL))
        err = slu_random(key, sizeof(*key));
    return err;
}

int slu_soft_keys_insert(struct soft_keys *keys, struct soft_mr *mr)
{
    uint32_t key;
    pthread_mutex_lock(&keys->lock);
    int err = make_room(keys);
    if (err == 0)
        err = choose_key(keys, &key);
    if (err == 0) {
        mr->base.lkey = mr->base.rkey = key;
        put(atomic_load_explicit(&keys->table, memory_order_relaxed), mr);
    }
    pthread_mutex_unlock(&keys->lock);
    return err;
}

void slu_soft_keys_remove(struct soft_keys *keys, struct soft_mr *mr)
{
    pthread_mutex_lock(&keys->lock);
    struct soft_key_table *table = atomic_load_explicit(&keys->table, memory_order_relaxed);
    uint32_t place = mr->base.rkey & table->mask;
    while (atomic_load_explicit(&table->places[place], memory_order_relaxed) != mr)
        place = (place + 1) & table->mask;
    atomic_store_explicit(&table->places[place], &gone, memory_order_release);
    table->count--;
    atomic_fetch_add_explicit(&keys->removals, 1, memory_order_release);
    await_readers(keys);
    pthread_mutex_unlock(&keys->lock);
}

void slu_soft_keys_add_reader(struct soft_keys *keys, struct soft_key_reader *reader)
{
    pthread_mutex_lock(&keys->lock);
    SOFT_INSERT(&keys->readers, reader, place);
    pthread_mutex_unlock(&keys->lock);
}

void slu_soft_keys_remove_reader(struct soft_keys *keys, struct soft_key_reader *reader)
{
    pthread_mutex_lock(&keys->lock);
    SOFT_REMOVE(reader, place);
    pthread_mutex_unlock(&keys->lock);
}
