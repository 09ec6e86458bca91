/* SPDX-License-Identifier: MIT */
/*
 * The table of memory regions by key. Readers take no lock and write to no memory that
 * others write to: each completion queue has a word that says whether its owner reads.
 * Who changes the table is under a lock, and waits for those that may still see what it
 * has taken out. See keys.c.
 */
#ifndef SLU_SOFT_KEYS_H
#define SLU_SOFT_KEYS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct soft_mr;
struct soft_key_table;

/* In a completion queue; its owner reads. Odd while it does. */
struct soft_key_reader {
    atomic_uint sections;
    struct soft_key_reader *next;
    struct soft_key_reader **link;
};

struct soft_keys {
    _Atomic(struct soft_key_table *) table;
    pthread_mutex_t lock; /* of all but reading */
    struct soft_key_reader *readers;
};

int slu_soft_keys_init(struct soft_keys *keys);
void slu_soft_keys_destroy(struct soft_keys *keys);
/* Gives it a random key that no other region has, and tells others of it. */
int slu_soft_keys_insert(struct soft_keys *keys, struct soft_mr *mr);
/* On return nobody sees it any more. */
void slu_soft_keys_remove(struct soft_keys *keys, struct soft_mr *mr);
void slu_soft_keys_add_reader(struct soft_keys *keys, struct soft_key_reader *reader);
void slu_soft_keys_remove_reader(struct soft_keys *keys, struct soft_key_reader *reader);

/* While it reads, by its only thread. What is found is there until it leaves. */
struct soft_mr *slu_soft_keys_find(const struct soft_keys *keys, uint32_t key);

/* The kernel does not fence readers for those who change the table: they do so themselves. */
extern atomic_bool slu_soft_keys_fenced;

/* Not recursive; nothing may block, and no memory of the program's be touched, until it leaves. */
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
