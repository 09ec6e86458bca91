/* SPDX-License-Identifier: MIT */
/*
 * Prepared lists: entries and work requests that are written once, and posted again and
 * again. Guarantee: a post is as that of the same requests by slu_submit(); what is not as
 * simple as can be goes that way.
 */
#ifndef SLU_ENGINE_LISTED_H
#define SLU_ENGINE_LISTED_H

#include "engine/engine.h"

/* One work request of it, as it is posted: a request, or a part of one that has blocks. */
struct slu_listed {
    uint32_t head;  /* of its entry, which has no keys: those of the list are pinned */
    uint32_t index; /* in the list as it was given */
    uint64_t bytes; /* of the request */
    union {
        struct slu_send_wr send;
        struct slu_receive_wr receive;
    };
    uint32_t peer;
    uint32_t queue;
    uint32_t needed; /* by all of the list for this queue of this peer, if it is the first */
    bool last;       /* of its chain */
    uint8_t part;    /* in its id, see slu_part_id(); 0: it is a whole request */
    bool gathered;   /* a message with blocks: its pieces are found when it is posted */
    uint8_t unused;
    uint32_t parts; /* of its request, if it is the first of them; else 0 */
    uint32_t index_generation;
    uint64_t generation; /* of the connection */
    uint64_t offset;     /* in the remote region as it was prepared */
};

struct slu_list {
    struct slu_engine *engine; /* NULL: it was destroyed */
    struct slu_list *next;     /* of the engine */
    struct slu_call call;
    struct slu_source source; /* for what is not simple: the requests, with elements of its own */
    struct sluice_request *requests;
    struct sluice_sge *sges;
    struct sluice_blocks *blocks; /* of requests that have some, with indices of the list's own */
    uint32_t *indices;
    struct sluice_sge *pieces; /* of parts */
    struct slu_listed *items;  /* receives first */
    uint32_t *places;          /* of each request in items: its first */
    uint32_t *lengths;         /* of each request, of its first element as it was prepared */
    uint32_t *rooms;           /* likewise, as it was aimed last: it grows no longer there */
    int queues;                /* what slu_source_check() has said of the requests */
    uint32_t item_count;
    uint32_t counts[SLU_QUEUES]; /* of items */
    uint32_t requests_of[SLU_QUEUES];
    bool has_parts;
    bool gathers;   /* has messages with blocks */
    bool blocking;  /* its sends are marked so */
    uint64_t epoch; /* of the engine, when all of its peers were found ready */
    bool posted;    /* and not waited for */
};

/* 0, or why there is none. The requests are copied. */
int slu_list_create(struct slu_engine *engine, const struct sluice_request *requests,
                    uint32_t count, struct slu_list **list);
/* What is in flight of it is detached. */
void slu_list_destroy(struct slu_list *list);
/* See sluice/list.h. */
int slu_list_aim(struct slu_list *list, uint32_t index, const struct sluice_sge *sge,
                 uint64_t remote_offset);
int slu_list_set_length(struct slu_list *list, uint32_t index, uint32_t length);
int slu_list_submit(struct slu_list *list, int64_t deadline, struct sluice_completion *completions);
int slu_list_post(struct slu_list *list, int64_t deadline, struct sluice_completion *completions);
int slu_list_wait(struct slu_list *list, int64_t timeout);
/* Whether it may be posted in a scope: 0, or -EBUSY or -ESTALE. */
int slu_list_check_scope(struct slu_list *list);
/* If it is in flight: the memory of its requests in an item's queue stays pinned by these. */
void slu_list_pin(struct slu_list *list, const struct slu_listed *listed);
/* -ESTALE, with its text. */
int slu_list_closed(void);

/* For the engine: whether any of its lists names the memory; under the lock of the domain. */
bool slu_lists_use(const struct slu_engine *engine, const struct slu_memory *memory);
/* Requests of lists that are in flight. */
uint32_t slu_lists_pending(const struct slu_engine *engine);
/* Whether one was posted, is complete, and was not waited for. */
bool slu_lists_done(const struct slu_engine *engine);
/* The engine ends: its work is drained. */
void slu_lists_close(struct slu_engine *engine);

#endif
