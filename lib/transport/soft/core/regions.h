/* SPDX-License-Identifier: MIT */
/* Memory regions: how they are made, where their memory is, and those that are guarded. */
#ifndef SLU_SOFT_REGIONS_H
#define SLU_SOFT_REGIONS_H

#include "transport/soft/core/soft.h"

/* memory.c */
/* The parts from which a region is made. */
struct soft_region {
    uint64_t iova;
    size_t length;
    /* Unmapped with the region. If map is NULL, the memory is the caller's, at addr. */
    struct slu_pages pages;
    int memfd;                     /* -1: none */
    int dmabuf;                    /* likewise */
    uint64_t offset;               /* of the first byte in the memfd, or in the dmabuf */
    const struct soft_mr *part_of; /* NULL: the region owns its pages and descriptors */
    bool sealed;
    bool unseen; /* it is small, so its memory may be kept for the next one */
    bool file;   /* the caller's memory, mapped from a file */
};
/* Makes a region and enters it, complete, into the table of keys. NULL: an error with a text. */
struct soft_mr *slu_soft_mr_make(struct slu_tpd *pd, const struct soft_region *region,
                                 uint32_t access);
int slu_soft_mr_register(struct slu_tpd *pd, void *addr, size_t length, uint32_t access,
                         struct slu_tmr **mr);
int slu_soft_mr_alloc(struct slu_tpd *pd, size_t length, uint32_t access, int32_t node,
                      struct slu_tmr **mr);
int slu_soft_mr_everything(struct slu_tpd *pd, struct slu_tmr **mr);
void slu_soft_mr_deregister(struct slu_tmr *mr);
int slu_soft_mr_part(struct slu_tpd *pd, struct slu_tmr *of, uint64_t offset, size_t length,
                     uint32_t access, struct slu_tmr **mr);
static inline bool slu_soft_contains(const struct soft_mr *mr, uint64_t start, uint64_t addr,
                                     uint64_t length)
{
    return addr >= start && addr - start <= mr->base.length &&
           length <= mr->base.length - (addr - start);
}
/* Translates an address that peers use to our own. mr is NULL for a request of no bytes. */
static inline uint64_t slu_soft_place_of(const struct soft_mr *mr, uint64_t addr)
{
    return mr != NULL ? mr->at + (addr - mr->base.iova) : addr;
}

/* reserve.c */
struct soft_room {
    uint64_t bytes;
    const char *what; /* text of the limit, such as "available" */
};
/* Returns how much the process may still allocate. Reads many files. */
struct soft_room slu_soft_room(void);
/*
 * Returns whether there is room for a region. Within 100 ms of the last reading, a small region is
 * checked against a part of what was free then, less what was allocated since. Otherwise, or if
 * that is not enough, the room is read anew, unless the caller has read it already for another way
 * of allocating the same region.
 */
bool slu_soft_admit(uint64_t length, struct soft_room *room);
/*
 * Allocates all pages of a memfd if there is room. Returns 0, or a positive errno value without a
 * text; on a shortage, *room is what there turned out to be.
 */
int slu_soft_reserve(int fd, uint64_t length, struct soft_room *room);

/* dmabuf.c */
int slu_soft_mr_register_dmabuf(struct slu_tpd *pd, const struct slu_dmabuf *dmabuf,
                                uint32_t access, struct slu_tmr **mr);
/* Notifies the exporter that an access begins or ends. Returns 0 or a positive errno value. */
int slu_soft_dmabuf_sync(struct soft_mr *mr, bool write, bool begin);

/* touch.c */
static inline bool slu_soft_is_guarded(const struct soft_mr *mr)
{
    return mr->dmabuf >= 0 || mr->file;
}
static inline bool slu_soft_has_guarded(const struct soft_qp *qp)
{
    return SLU_UNLIKELY(
        atomic_load_explicit(&slu_soft_context(qp)->guarded, memory_order_relaxed) != 0);
}
/*
 * Prepares elements that are about to be posted: changes addresses in dmabufs to where they are
 * mapped. Returns whether any element is in a guarded region.
 */
bool slu_soft_change_places(const struct soft_qp *qp, struct sluice_sge *sges, uint32_t count);
/* Does the same, at no cost if no region is guarded. */
static inline bool slu_soft_find_places(const struct soft_qp *qp, struct sluice_sge *sges,
                                        uint32_t count)
{
    return slu_soft_has_guarded(qp) && slu_soft_change_places(qp, sges, count);
}
/* Returns whether any element, as the program has named it, is in a guarded region. */
bool slu_soft_names_guarded(const struct soft_qp *qp, const struct sluice_sge *sges,
                            uint32_t count);
/*
 * Guarded regions that are about to be touched: dmabufs, whose exporters must be notified, and
 * whether all file memory among them is accessible. The regions stay registered meanwhile, because
 * they are pinned or named by posted work.
 */
#define SOFT_MAX_TOUCHED 128 /* more than two lists of elements, or a batch of frames, can name */
struct soft_touched_region {
    struct soft_mr *mr;
    bool write;
};
struct soft_touched {
    uint32_t count;
    bool refused; /* memory of a file is not accessible */
    struct soft_touched_region of[SOFT_MAX_TOUCHED];
};
void slu_soft_touch_nothing(struct soft_touched *touched);
/*
 * Adds a region; NULL and regions that are not guarded are ignored. addr is the address mapped
 * here. If the kernel touches file memory for us, no byte has to be accessible: pass a length of 0.
 * Must not be called inside a key reader section.
 */
void slu_soft_touch_region(struct soft_touched *touched, struct soft_mr *mr, uint64_t addr,
                           uint64_t length, bool write);
/*
 * Adds the first length bytes of a list that is posted and guarded. Called by the owner of the CQ,
 * outside a key reader section.
 */
void slu_soft_touch_list(struct soft_touched *touched, const struct soft_qp *qp,
                         struct soft_cursor list, uint64_t length, bool write);
/* Begins the access. False: access is refused; do not touch the memory nor call the end. */
bool slu_soft_touch_begin(const struct soft_touched *touched);
/* Ends the access. False: written data may not have reached the memory. */
bool slu_soft_touch_end(const struct soft_touched *touched);
/* Returns whether memory can be read: by the kernel's mappings, or the exporter's last answer. */
bool slu_soft_is_there(const struct soft_qp *qp, uint32_t key, uint64_t addr, uint64_t length);

/*
 * pool.c: moves a receive of the pool to a queue pair, whose oldest message takes it. False: the
 * queue pair gets one when there is one for it, and its wire is told.
 */
bool slu_soft_pool_take(struct soft_qp *qp);

/* Returns whether a receive is posted, or of the pool was given to the queue pair. */
static inline bool slu_soft_holds_receive(const struct soft_qp *qp)
{
    return qp->receives.done != qp->receives.posted;
}

/* Returns whether there is a receive for the oldest message, and takes it from the pool. */
static inline bool slu_soft_has_receive(struct soft_qp *qp)
{
    return slu_soft_holds_receive(qp) || (qp->pool != NULL && slu_soft_pool_take(qp));
}

/* Returns whether the request uses up a receive of the peer. */
static inline bool slu_soft_takes_receive(const struct soft_wqe *wqe)
{
    return wqe->opcode == SLUICE_OP_SEND ||
           (wqe->opcode == SLUICE_OP_WRITE && (wqe->flags & SLUICE_IMMEDIATE) != 0);
}

/* memory.c */
/*
 * Returns whether an element may be accessed without a check of its memory: its region grants the
 * access, and is not guarded. Notes the region: *seen is that of an access.
 * Called by the owner of the CQ, outside a key reader section.
 */
bool slu_soft_may_touch(const struct soft_qp *qp, struct soft_seen *seen,
                        const struct sluice_sge *sge, uint32_t access);
/* The same, of which most cases need no search. */
static inline bool slu_soft_touches(const struct soft_qp *qp, struct soft_seen *seen,
                                    const struct sluice_sge *sge, uint32_t access)
{
    const struct soft_keys *keys = &slu_soft_context(qp)->keys;
    uint64_t offset = sge->addr - seen->at;
    return (sge->lkey == seen->key && offset <= seen->length &&
            sge->length <= seen->length - offset &&
            atomic_load_explicit(&keys->removals, memory_order_acquire) == seen->removals) ||
           slu_soft_may_touch(qp, seen, sge, access);
}

/* queue.c */
/* Completes the oldest posted receive; flags are those of a slu_wc. */
static inline void slu_soft_complete_receive(struct soft_qp *qp, uint32_t status, uint64_t bytes,
                                             uint32_t flags, uint32_t immediate)
{
    uint32_t peer = qp->pool != NULL ? qp->base.peer << SLU_WC_PEER_SHIFT : 0;
    struct slu_wc wc = {
        .id = slu_soft_receive(qp, qp->receives.done)->id,
        .bytes = bytes,
        .status = status,
        .flags = flags | peer,
        .immediate = (flags & (SLUICE_IMMEDIATE | SLU_WC_LENGTHS)) != 0 ? immediate : 0,
    };
    slu_soft_cq_complete(qp, &wc);
    qp->receives.done++;
}

/*
 * Completes the oldest receive with an error of its own. If the message, of this length, is longer,
 * the completion has both lengths.
 */
void slu_soft_fail_receive(struct soft_qp *qp, uint32_t status, uint64_t length);
/*
 * Checks whether the oldest receive, which must exist, can take a message of this length. Returns
 * 0, or the status for the sender; *status is then the receiver's. SLU_STATUS_DROPPED for both: the
 * message is dropped, which is a success for the sender.
 */
uint32_t slu_soft_match(struct soft_qp *qp, uint64_t length, uint32_t *status);
/* Adds a receive to a ring: that of the queue pair, or of its pool. */
int slu_soft_append_receive(const struct soft_qp *qp, struct soft_ring *ring,
                            const struct slu_receive_wr *wr);

#endif
