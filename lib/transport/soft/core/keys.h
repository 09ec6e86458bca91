/* SPDX-License-Identifier: MIT */
/*
 * The table of memory regions by key. Readers take no lock and write to no memory that others write
 * to: each completion queue has a word that says whether its owner reads. A thread that changes the
 * table holds a lock, and waits for readers that may still see an entry it took out. See keys.c.
 */
#ifndef SLU_SOFT_KEYS_H
#define SLU_SOFT_KEYS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/soft/core/list.h"

struct soft_mr;
struct soft_key_table;

/* Embedded in a completion queue. The count is odd while the owner of the queue reads. */
struct soft_key_reader {
    atomic_uint sections;
    SOFT_PLACE(struct soft_key_reader) place;
};

struct soft_keys {
    _Atomic(struct soft_key_table *) table;
    atomic_uint removals; /* changes before slu_soft_keys_remove() returns */
    pthread_mutex_t lock; /* for everything but reading */
    struct soft_key_reader *readers;
};

int slu_soft_keys_init(struct soft_keys *keys);
void slu_soft_keys_destroy(struct soft_keys *keys);
/* Gives the region a random, unused key and makes it visible to readers. */
int slu_soft_keys_insert(struct soft_keys *keys, struct soft_mr *mr);
/* On return no reader sees the region any more. */
void slu_soft_keys_remove(struct soft_keys *keys, struct soft_mr *mr);
void slu_soft_keys_add_reader(struct soft_keys *keys, struct soft_key_reader *reader);
void slu_soft_keys_remove_reader(struct soft_keys *keys, struct soft_key_reader *reader);

/* Called by a reader inside its section. The region found stays valid until the section ends. */
struct soft_mr *slu_soft_keys_find(const struct soft_keys *keys, uint32_t key);

/* True if membarrier(2) is refused: readers then have to fence themselves. */
extern atomic_bool slu_soft_keys_fenced;

/* Begins a section, which does not nest, must not block and must not touch the program's memory. */
static inline void slu_soft_keys_enter(struct soft_key_reader *reader)
{
    unsigned sections = atomic_load_explicit(&reader->sections, memory_order_relaxed);
    atomic_store_explicit(&reader->sections, sections + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&slu_soft_keys_fenced, memory_order_relaxed))
        atomic_thread_fence(memory_order_seq_cst);
}

static inline void slu_soft_keys_leave(struct soft_key_reader *reader)
{
    unsigned sections = atomic_load_explicit(&reader->sections, memory_order_relaxed);
    atomic_store_explicit(&reader->sections, sections + 1, memory_order_release);
}

#endif
