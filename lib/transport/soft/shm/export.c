/* SPDX-License-Identifier: MIT */
/*
 * The owner's side of regions that peers map, or read from this process, to execute their one-sided
 * requests themselves; README.md, "One-sided requests". Guarantee: once a region is deregistered,
 * no peer touches memory that the program has.
 */
#include "transport/soft/shm/shm.h"

#include "connect/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct soft_exports {
    pthread_mutex_t lock; /* protects all fields and the lists of exports; taken last */
    int fd;               /* of the table; -1: no region was exported */
    _Atomic uint64_t *words;
    uint32_t hint; /* of a free place */
    bool used[SHM_PLACES];
};

struct shm_export {
    struct soft_mr *mr;
    struct soft_tcp *tcp;
    SOFT_PLACE(struct shm_export) of_region;
    SOFT_PLACE(struct shm_export) of_peer;
};

struct soft_exports *slu_soft_exports_make(void)
{
    struct soft_exports *exports = calloc(1, sizeof(*exports));
    if (exports == NULL) {
        slu_fail(ENOMEM, "no memory for a context");
        return NULL;
    }
    pthread_mutex_init(&exports->lock, NULL);
    exports->fd = -1;
    return exports;
}

void slu_soft_exports_destroy(struct soft_exports *exports)
{
    if (exports->fd >= 0)
        slu_fd_close(exports->fd);
    slu_soft_shm_unmap((void *)exports->words, SHM_TABLE_BYTES);
    pthread_mutex_destroy(&exports->lock);
    free(exports);
}

static bool has_table(struct soft_exports *exports)
{
    void *map = NULL;
    if (exports->fd < 0)
        exports->fd = slu_soft_shm_make(SHM_TABLE_BYTES, SHM_READ_ONLY, &map);
    if (map != NULL)
        exports->words = map;
    return exports->words != NULL;
}

static bool take_place(struct soft_exports *exports, uint32_t *place)
{
    for (uint32_t i = 0; i < SHM_PLACES; i++) {
        uint32_t at = (exports->hint + i) % SHM_PLACES;
        if (exports->used[at])
            continue;
        exports->used[at] = true;
        exports->hint = at + 1;
        *place = at;
        return true;
    }
    return false;
}

/*
 * Changes the word of a place, so that peers with the old value stop using the region, and frees
 * the place.
 */
static void free_place(struct soft_exports *exports, uint32_t place)
{
    atomic_fetch_add_explicit(&exports->words[place], 1, memory_order_seq_cst);
    /* A peer that reads what the program writes from here on finds the word changed. */
    atomic_thread_fence(memory_order_seq_cst);
    exports->used[place] = false;
}

static void end_export(struct shm_export *export)
{
    SOFT_REMOVE(export, of_region);
    SOFT_REMOVE(export, of_peer);
    free(export);
}

static struct shm_export *find_export(const struct soft_mr *mr, const struct soft_tcp *tcp)
{
    struct shm_export *export = mr->exports;
    while (export != NULL && export->tcp != tcp)
        export = export->of_region.next;
    return export;
}

/* Registers an export. A peer that asks again is given the region again, but is registered once. */
static bool begin_export(struct soft_exports *exports, struct soft_mr *mr, struct soft_tcp *tcp)
{
    if (find_export(mr, tcp) != NULL)
        return true;
    struct shm_export *export = calloc(1, sizeof(*export));
    if (export == NULL || !has_table(exports) ||
        (mr->exports == NULL && !take_place(exports, &mr->place))) {
        free(export);
        return false;
    }
    export->mr = mr;
    export->tcp = tcp;
    atomic_store_explicit(&mr->unseen, false, memory_order_relaxed);
    SOFT_INSERT(&mr->exports, export, of_region);
    SOFT_INSERT(&tcp->shm->exports, export, of_peer);
    return true;
}

static struct soft_exports *exports_of(const struct soft_tcp *tcp)
{
    return slu_soft_context(tcp->qp)->exports;
}

/*
 * Returns whether this peer may map a region. The memfd of a region that peers may change can be
 * written as a whole, so the peer itself must have a right to change the region.
 */
static bool may_map(const struct soft_qp *qp, const struct soft_mr *mr)
{
    return mr->sealed && (mr->part || (mr->access & SOFT_ACCESS_CHANGES) == 0 ||
                          (mr->access & qp->attr.access & SOFT_ACCESS_CHANGES) != 0);
}

/*
 * Returns the rights of a peer that accesses the region itself. Of a part of a region, a peer only
 * reads: the pages remain the program's after the end of the part, and a writer that was stopped
 * could continue then.
 */
static uint32_t rights(const struct soft_qp *qp, const struct soft_mr *mr)
{
    bool changes = may_map(qp, mr) && !mr->part;
    uint32_t here = SLUICE_ACCESS_REMOTE_READ | (changes ? SOFT_ACCESS_CHANGES : 0);
    return mr->access & qp->attr.access & here;
}

/* Finds a region and pins it. NULL: this peer has no right to it. */
static struct soft_mr *pin_region(const struct soft_qp *qp, uint32_t key)
{
    struct soft_key_reader *reader = &slu_soft_cq_of(qp)->reader;
    slu_soft_keys_enter(reader);
    struct soft_mr *mr = slu_soft_keys_find(&slu_soft_context(qp)->keys, key);
    if (mr != NULL && (mr->base.pd != qp->base.pd || rights(qp, mr) == 0 || mr->dmabuf >= 0))
        mr = NULL;
    if (mr != NULL)
        atomic_fetch_add_explicit(&mr->pins, 1, memory_order_relaxed);
    slu_soft_keys_leave(reader);
    return mr;
}

/*
 * Makes the table with the first peer, so that a context's use of memory does not depend on
 * requests of peers.
 */
void slu_soft_shm_begin_exports(struct soft_tcp *tcp)
{
    struct soft_exports *exports = exports_of(tcp);
    pthread_mutex_lock(&exports->lock);
    has_table(exports);
    pthread_mutex_unlock(&exports->lock);
}

static bool give_table(struct soft_tcp *tcp)
{
    if (!tcp->shm->has_table)
        tcp->shm->has_table =
            slu_soft_shm_say(tcp, SHM_WORD_TABLE, NULL, 0, exports_of(tcp)->fd) == 0;
    return tcp->shm->has_table;
}

/*
 * Returns the memfd, or a read-only descriptor of it for a part of a region that peers may change:
 * the kernel cannot seal a single part. -1: there is none.
 */
static int open_memory(const struct soft_mr *mr)
{
    char path[64];
    if (!mr->lent_for_reading)
        return mr->memfd;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", mr->memfd);
    return slu_fd_open(path, O_RDONLY);
}

static bool say_memory(struct soft_tcp *tcp, const struct soft_mr *mr, struct shm_given *given)
{
    SLU_KEEP_ERRNO;
    int fd = may_map(tcp->qp, mr) ? open_memory(mr) : -1;
    int err =
        slu_soft_shm_say(tcp, fd >= 0 ? SHM_WORD_GIVE : SHM_WORD_SHOW, given, sizeof(*given), fd);
    if (mr->lent_for_reading && fd >= 0)
        close(fd);
    return err == 0;
}

static bool give(struct soft_tcp *tcp, struct soft_mr *mr)
{
    struct soft_exports *exports = exports_of(tcp);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct shm_given given = {.key = mr->base.rkey,
                              .access = rights(tcp->qp, mr),
                              .addr = mr->base.iova,
                              .length = mr->base.length,
                              .page = (uint32_t)(mr->memfd_offset / page)};
    pthread_mutex_lock(&exports->lock);
    bool begun = begin_export(exports, mr, tcp);
    if (begun) {
        given.place = mr->place;
        given.word = atomic_load_explicit(&exports->words[mr->place], memory_order_relaxed);
    }
    pthread_mutex_unlock(&exports->lock);
    return begun && give_table(tcp) && say_memory(tcp, mr, &given);
}

/*
 * Sends a message without which the peer would wait for ever, or keep memory, although the system
 * has no memory for a moment.
 */
static void insist(struct soft_tcp *tcp, enum shm_socket_word word, const void *argument,
                   size_t length)
{
    SLU_KEEP_ERRNO;
    uint32_t pauses = 0;
    int err;
    do
        err = -slu_soft_shm_say(tcp, word, argument, length, -1);
    while (slu_is_shortage(err) && slu_stream_pause(err, &pauses));
}

void slu_soft_shm_answer(struct soft_tcp *tcp, uint32_t key)
{
    struct soft_mr *mr = pin_region(tcp->qp, key);
    bool given = mr != NULL && give(tcp, mr);
    slu_soft_unpin(mr);
    if (!given)
        insist(tcp, SHM_WORD_DENY, &key, sizeof(key));
}

/*
 * Tells peers that a region has ended, and ends their exports. last: whether or not they can be
 * told. Returns a shortage of the system as a positive errno value, or 0. The caller has the lock.
 */
static int end_exports(struct soft_mr *mr, bool last)
{
    int shortage = 0;
    for (struct shm_export *export = mr->exports, *next; export != NULL; export = next) {
        next = export->of_region.next;
        /* If the socket is full, so much is unread that the peer checks its regions anyway. */
        int err = -slu_soft_shm_say(export->tcp, SHM_WORD_DROP, NULL, 0, -1);
        if (slu_is_shortage(err) && !last)
            shortage = err;
        else
            end_export(export);
    }
    return shortage;
}

/*
 * The place is freed once, before a peer is told. While the system has no memory for a moment, the
 * lock is free, since connections that share and end need it.
 */
void slu_soft_exports_revoke(struct soft_exports *exports, struct soft_mr *mr)
{
    SLU_KEEP_ERRNO;
    uint32_t pauses = 0;
    int shortage = 0;
    pthread_mutex_lock(&exports->lock);
    mr->revoked = mr->exports != NULL;
    if (mr->revoked)
        free_place(exports, mr->place);
    while (mr->exports != NULL && (shortage = end_exports(mr, false)) != 0) {
        pthread_mutex_unlock(&exports->lock);
        bool again = slu_stream_pause(shortage, &pauses);
        pthread_mutex_lock(&exports->lock);
        if (!again)
            end_exports(mr, true);
    }
    pthread_mutex_unlock(&exports->lock);
}

void slu_soft_shm_end_exports(struct soft_tcp *tcp)
{
    struct soft_exports *exports = exports_of(tcp);
    pthread_mutex_lock(&exports->lock);
    while (tcp->shm->exports != NULL) {
        struct soft_mr *mr = tcp->shm->exports->mr;
        end_export(tcp->shm->exports);
        if (mr->exports == NULL && !mr->revoked)
            free_place(exports, mr->place);
    }
    pthread_mutex_unlock(&exports->lock);
}
