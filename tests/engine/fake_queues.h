/* SPDX-License-Identifier: MIT */
/* Internals of the pretend device: its queues, and what they do by themselves. */
#ifndef ENGINE_FAKE_QUEUES_H
#define ENGINE_FAKE_QUEUES_H

#include "fake.h"

#define FAKE_STRAYS 8
/* How far a poll advances the clock: from the first to the second value while nothing happens. */
#define FAKE_TICK SLUICE_US(1)
#define FAKE_MAX_TICK SLUICE_MS(1)

/* A work request. */
struct fake_wr {
    struct fake_wr *next;
    uint64_t id;
    uint64_t bytes;
    uint32_t key;
    bool signaled;
};

struct fake_list {
    struct fake_wr *first;
    struct fake_wr **end;
    uint32_t count;
};

struct fake_qp {
    struct slu_qp base;
    struct slu_qp_attr attr;
    struct fake_qp *next; /* of the completion queue */
    uint32_t number;
    enum slu_qp_state state;
    bool stuck;     /* in error, and will never flush */
    bool ended;     /* by the engine: it must not post any more */
    uint64_t probe; /* id of the one that it holds, or 0 */
    bool refused;   /* a posted request */
    bool flushed;   /* a receive, where that matters */
    struct fake_list lists[SLU_QUEUES];
};

/* A completion that waits to be polled. */
struct fake_wc {
    struct slu_wc wc;
    struct fake_qp *qp; /* NULL if it was destroyed */
    uint32_t key;
};

struct fake_cq {
    struct slu_cq base;
    struct fake_qp *qps;
    struct fake_wc *ring; /* as deep as the engine asked for: it must not overrun */
    uint32_t first, count;
    uint64_t strays[FAKE_STRAYS]; /* ids, to be reported once no request has them */
    uint32_t stray_count;
    int64_t tick;
    int fd; /* always readable: wake-ups may be spurious */
    bool entered;
};

static inline struct fake_qp *fake_qp_of(const struct slu_qp *qp)
{
    return slu_container_of(qp, struct fake_qp, base);
}

static inline struct fake_cq *fake_cq_of(const struct slu_cq *cq)
{
    return slu_container_of(cq, struct fake_cq, base);
}

/* Functions of the transport's table. */
int fake_poll(struct slu_cq *cq, struct slu_wc *wcs, uint32_t count);
void fake_error(struct slu_qp *qp);
int fake_post_send(struct slu_qp *qp, struct slu_send_wr *chain, struct slu_send_wr **bad);
int fake_probe(struct slu_qp *qp, uint64_t id);
int fake_post_receive(struct slu_qp *qp, struct slu_receive_wr *chain, struct slu_receive_wr **bad);
/* Drops the work and completions of a queue pair that is about to be destroyed. */
void fake_forget(struct fake_qp *qp);

#endif
