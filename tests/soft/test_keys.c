/* SPDX-License-Identifier: MIT */
/*
 * The table of keys: readers find its entries while other threads insert and remove; once a removal
 * has returned, no reader sees the entry, so its memory can be freed. With membarrier(2), and with
 * readers that fence themselves.
 */
#include <pthread.h>
#include <stdlib.h>

#include "../support/suite.h"
#include "transport/soft/core/soft.h"

#define READERS 3
#define LASTING 40
#define PASSING 24
/* Length of a region in the table; a removed region has another length, or is not mapped. */
#define THERE 4096

static struct soft_keys keys;

static struct soft_mr *put_in(void)
{
    struct soft_mr *mr = calloc(1, sizeof(*mr));
    require(mr, "no memory");
    mr->base.length = THERE;
    require_ok(slu_soft_keys_insert(&keys, mr));
    require(mr->base.rkey != 0 && mr->base.lkey == mr->base.rkey, "key %u", mr->base.rkey);
    return mr;
}

static void take_out(struct soft_mr *mr)
{
    slu_soft_keys_remove(&keys, mr);
    mr->base.length = 0;
    free(mr);
}

static void require_found(const struct soft_mr *mr)
{
    require(slu_soft_keys_find(&keys, mr->base.rkey) == mr, "key %u is not found", mr->base.rkey);
}

/* More entries than a table has places for, and with gaps. */
TEST(each_is_found_by_its_key, .times = 2)
{
    enum { COUNT_OF_ALL = 3000 };
    static struct soft_mr *all[COUNT_OF_ALL];
    uint32_t removed;

    require_ok(slu_soft_keys_init(&keys));
    atomic_store(&slu_soft_keys_fenced, _i == 1);
    for (uint32_t i = 0; i < COUNT_OF_ALL; i++) {
        all[i] = put_in();
    }
    for (uint32_t i = 0; i < COUNT_OF_ALL; i++) {
        require_found(all[i]);
    }
    require(slu_soft_keys_find(&keys, 0) == NULL, "0 is found");
    for (uint32_t i = 0; i < COUNT_OF_ALL; i += 2) {
        removed = all[i]->base.rkey;
        take_out(all[i]);
        require(slu_soft_keys_find(&keys, removed) == NULL, "key %u is still found", removed);
    }
    require(slu_soft_keys_find(&keys, 0) == NULL, "0 is found");
    for (uint32_t i = 1; i < COUNT_OF_ALL; i += 2) {
        require_found(all[i]);
        take_out(all[i]);
    }
    slu_soft_keys_destroy(&keys);
}

/* After many insertions and removals, all places are free again. */
TEST(places_are_used_again)
{
    struct soft_mr *stays;

    require_ok(slu_soft_keys_init(&keys));
    atomic_store(&slu_soft_keys_fenced, false);
    stays = put_in();
    for (int i = 0; i < 2000; i++) {
        take_out(put_in());
    }
    require_found(stays);
    take_out(stays);
    slu_soft_keys_destroy(&keys);
}

static struct soft_mr *lasting[LASTING];
static atomic_uint passing[PASSING]; /* their keys */
static atomic_bool over;
static atomic_uint satisfied; /* readers that have found one of the changing entries */

static void *read_keys(void *argument)
{
    struct soft_key_reader reader = {.sections = 0};
    bool found = false;

    (void)argument;
    slu_soft_keys_add_reader(&keys, &reader);
    for (uint32_t i = 0; !atomic_load(&over); i++) {
        const struct soft_mr *mr;

        slu_soft_keys_enter(&reader);
        require_found(lasting[i % LASTING]);
        mr = slu_soft_keys_find(&keys, atomic_load(&passing[i % PASSING]));
        require(mr == NULL || mr->base.length == THERE, "what is gone was found");
        slu_soft_keys_leave(&reader);
        if (mr != NULL && !found) {
            found = true;
            atomic_fetch_add(&satisfied, 1);
        }
    }
    slu_soft_keys_remove_reader(&keys, &reader);
    return NULL;
}

/* Changes as many as make the table grow meanwhile, until all readers have found some. */
static void change_keys(int rounds)
{
    struct soft_mr *there[PASSING] = {NULL};

    for (int i = 0; i < rounds || atomic_load(&satisfied) < READERS; i++) {
        uint32_t place = (uint32_t)i * 7 % PASSING;

        if (there[place] != NULL) {
            take_out(there[place]);
        }
        there[place] = put_in();
        atomic_store(&passing[place], there[place]->base.rkey);
    }
    atomic_store(&over, true);
    for (uint32_t i = 0; i < PASSING; i++) {
        if (there[i] != NULL) {
            take_out(there[i]);
        }
    }
}

TEST(removed_entries_are_not_seen, .times = 2)
{
    pthread_t threads[READERS];

    require_ok(slu_soft_keys_init(&keys));
    atomic_store(&slu_soft_keys_fenced, _i == 1);
    atomic_store(&satisfied, 0);
    atomic_store(&over, false);
    for (uint32_t i = 0; i < LASTING; i++) {
        lasting[i] = put_in();
    }
    for (uint32_t i = 0; i < READERS; i++) {
        require(pthread_create(&threads[i], NULL, read_keys, NULL) == 0, "no thread");
    }
    change_keys(short_run() || SANITIZED ? 500 : 3000);
    for (uint32_t i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < LASTING; i++) {
        require_found(lasting[i]);
        take_out(lasting[i]);
    }
    slu_soft_keys_destroy(&keys);
}

int main(void)
{
    return RUN_GROUPS("keys", {"all", WIRE_SELF, 120});
}
