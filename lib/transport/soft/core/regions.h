/* SPDX-License-Identifier: MIT */
/* What memory regions are made of, and where theirs is; and those that are guarded. */
#ifndef SLU_SOFT_REGIONS_H
#define SLU_SOFT_REGIONS_H

#include "transport/soft/core/soft.h"

/* memory.c */
/* What a region is made of. */
struct soft_region {
    uint64_t iova;
    size_t length;
    struct slu_pages pages;        /* that it ends with; map is NULL: of the caller's, at addr */
    int memfd;                     /* -1: none */
    int dmabuf;                    /* likewise */
    uint64_t offset;               /* of the first byte in the memfd, or in the dmabuf */
    const struct soft_mr *part_of; /* NULL: it ends with its pages and descriptors */
    bool sealed;
    bool file; /* memory of the caller's that is a file's */
};
/* All of it is there when the table of keys has it; NULL: an error with a text. */
struct soft_mr *slu_soft_mr_make(struct slu_tpd *pd, const struct soft_region *region,
                                 uint32_t access);
int slu_soft_mr_register(struct slu_tpd *pd, void *addr, size_t length, uint32_t access,
                         struct slu_tmr **mr);
int slu_soft_mr_alloc(struct slu_tpd *pd, size_t length, uint32_t access, int32_t node,
                      struct slu_tmr **mr);
void slu_soft_mr_deregister(struct slu_tmr *mr);
int slu_soft_mr_part(struct slu_tpd *pd, const struct slu_tmr *of, uint64_t offset, size_t length,
                     uint32_t access, struct slu_tmr **mr);
static inline bool slu_soft_contains(const struct soft_mr *mr, uint64_t start, uint64_t addr,
                                     uint64_t length)
{
    return addr >= start && addr - start <= mr->base.length &&
           length <= mr->base.length - (addr - start);
}
/* Where we have what peers know by that address; NULL: there is no region, nor a byte. */
static inline uint64_t slu_soft_place_of(const struct soft_mr *mr, uint64_t addr)
{
    return mr != NULL ? mr->at + (addr - mr->base.iova) : addr;
}
/* Is it memory that we have mapped? Then nobody else unmaps it. */
static inline bool slu_soft_lasts(const struct soft_mr *mr)
{
    return mr->lasts;
}

/* reserve.c */
struct soft_room {
    uint64_t bytes;
    const char *what; /* "available", or so */
};
/* For all that the process may still take; it reads many files. */
struct soft_room slu_soft_room(void);
/*
 * Is there room for a region? Small ones within 100 ms of the last reading are checked against
 * what was there then, less what was allocated since. Otherwise, and if that is short, it is read
 * anew, into room. That is not done if room has been read, for another way of the same region.
 */
bool slu_soft_admit(uint64_t length, struct soft_room *room);
/*
 * Takes all pages of a memfd if there is room; a positive errno value without a text.
 * The room is what the caller was told before, and then what there turned out to be.
 */
int slu_soft_reserve(int fd, uint64_t length, struct soft_room *room);

/* dmabuf.c */
int slu_soft_mr_register_dmabuf(struct slu_tpd *pd, const struct slu_dmabuf *dmabuf,
                                uint32_t access, struct slu_tmr **mr);
/* Tells the exporter that its memory is about to be touched, or was. 0, or an errno value. */
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
 * Elements that are about to be posted: those of dmabufs are changed to where that is. Are there
 * any of guarded regions?
 */
bool slu_soft_change_places(const struct soft_qp *qp, struct sluice_sge *sges, uint32_t count);
/* The same, which costs nothing where no region is guarded. */
static inline bool slu_soft_find_places(const struct soft_qp *qp, struct sluice_sge *sges,
                                        uint32_t count)
{
    return slu_soft_has_guarded(qp) && slu_soft_change_places(qp, sges, count);
}
/* Are there any, as the program has named them? */
bool slu_soft_names_guarded(const struct soft_qp *qp, const struct sluice_sge *sges,
                            uint32_t count);
/*
 * Guarded regions that are about to be touched: dmabufs, whose exporters are to be told, and
 * whether all that there is of files is there. They stay meanwhile: they are pinned, or what is
 * posted names them.
 */
#define SOFT_MAX_TOUCHED 128 /* more than two lists of elements, or than a batch of frames, name */
struct soft_touched_region {
    struct soft_mr *mr;
    bool write;
};
struct soft_touched {
    uint32_t count;
    bool refused; /* memory of a file is not there */
    struct soft_touched_region of[SOFT_MAX_TOUCHED];
};
void slu_soft_touch_nothing(struct soft_touched *touched);
/*
 * NULL, and what is not guarded, are left out. The bytes are where we have them; none of a file
 * need be there if the kernel touches them for us, which is 0 bytes here. By whoever does not
 * read the keys.
 */
void slu_soft_touch_region(struct soft_touched *touched, struct soft_mr *mr, uint64_t addr,
                           uint64_t length, bool write);
/* The first bytes of a list that is posted and guarded. By whoever owns the CQ, likewise. */
void slu_soft_touch_list(struct soft_touched *touched, const struct soft_qp *qp,
                         struct soft_cursor list, uint64_t length, bool write);
/* False: the memory is refused, and not to be touched, and there is no end. */
bool slu_soft_touch_begin(const struct soft_touched *touched);
/* False: nobody knows whether what was written is there. */
bool slu_soft_touch_end(const struct soft_touched *touched);
/* Can it be read, as the kernel has it, or its exporter said last? */
bool slu_soft_is_there(const struct soft_qp *qp, uint32_t key, uint64_t addr, uint64_t length);

static inline bool slu_soft_has_receive(const struct soft_qp *qp)
{
    return qp->receives.done != qp->receives.posted;
}

/* Does it use up a receive of the peer? */
static inline bool slu_soft_takes_receive(const struct soft_wqe *wqe)
{
    return wqe->opcode == SLUICE_OP_SEND ||
           (wqe->opcode == SLUICE_OP_WRITE && (wqe->flags & SLUICE_IMMEDIATE) != 0);
}

#endif
