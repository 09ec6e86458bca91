/* SPDX-License-Identifier: MIT */
/*
 * Prepared lists: entries and work requests that are written once and posted many times. Guarantee:
 * a list does what slu_submit() would do with the same requests. A list that cannot be posted at
 * once as a whole is submitted that way.
 */
#ifndef SLU_ENGINE_LISTED_H
#define SLU_ENGINE_LISTED_H

#include "engine/state/call.h"

/* One work request of a list, ready to be posted: a request, or a part of one that has blocks. */
struct slu_listed {
    uint32_t head;  /* of its entry, which has no keys: the list pins the memory */
    uint32_t index; /* in the list as it was given */
    uint64_t bytes; /* of the request */
    union {
        struct slu_send_wr send;
        struct slu_receive_wr receive;
    };
    uint32_t peer;
    uint32_t queue;
    uint32_t needed; /* room for all of the list in this queue, if this is the first for it */
    bool last;       /* of its chain */
    uint8_t part;    /* for slu_part_id(); 0: this is a whole request */
    bool gathered;   /* a message with blocks: its pieces are found when it is posted */
    uint8_t unused;
    uint32_t parts; /* parts of its request, if this is the first of them; else 0 */
    uint32_t index_generation;
    uint64_t generation; /* of the peer's connection */
    uint64_t offset;     /* current offset in the remote region that it was prepared with */
};

/* The last post of a list, and what the program has learned of it. A submit resets it. */
enum slu_list_life {
    SLU_LIST_NEW,    /* it was not posted */
    SLU_LIST_POSTED, /* it is in flight, or its end was not noticed by a wait */
    SLU_LIST_SEEN    /* it has ended, and a wait or a call for its result has returned that */
};

struct slu_list {
    struct slu_engine *engine; /* NULL: the channel was closed */
    struct slu_list *next;     /* of the engine */
    struct slu_call call;
    struct slu_source source; /* the requests, for slu_submit(); the elements are the list's own */
    struct sluice_request *requests;
    struct sluice_sge *sges;
    struct sluice_blocks *blocks; /* of requests that have some; the indices are the list's own */
    uint32_t *indices;
    struct sluice_sge *pieces; /* of parts */
    struct slu_listed *items;  /* receives first */
    uint32_t *places;          /* index in items of each request's first work request */
    uint32_t *lengths;         /* of each request: bytes of its first element when prepared */
    uint32_t *rooms;           /* likewise: bytes of the element that it was last aimed at */
    int queues;                /* the result of slu_source_check() */
    uint32_t item_count;
    uint32_t counts[SLU_QUEUES]; /* of items */
    uint32_t requests_of[SLU_QUEUES];
    bool has_parts;
    bool gathers;   /* has messages with blocks */
    bool blocking;  /* its sends have SLU_BLOCKING set */
    uint64_t epoch; /* the engine's, when all of its peers were last found ready */
    enum slu_list_life life;
};

/* Makes a list, with copies of the requests. Returns 0, or an error. */
int slu_list_create(struct slu_engine *engine, const struct sluice_request *requests,
                    uint32_t count, struct slu_list **list);
/* Destroys a list, and detaches its requests in flight. */
void slu_list_destroy(struct slu_list *list);
/* Returns whether requests of a list that was posted have no result yet. */
static inline bool slu_list_in_flight(const struct slu_list *list)
{
    return list->call.incomplete > 0;
}

/* See sluice/list.h. */
int slu_list_aim(struct slu_list *list, uint32_t index, const struct sluice_sge *sge,
                 uint64_t remote_offset);
int slu_list_set_length(struct slu_list *list, uint32_t index, uint64_t length);
int slu_list_submit(struct slu_list *list, int64_t deadline, struct sluice_completion *completions);
int slu_list_post(struct slu_list *list, int64_t deadline, struct sluice_completion *completions);
int slu_list_wait(struct slu_list *list, int64_t timeout);
int slu_list_result(struct slu_list *list);
/* Checks whether a list may be posted in a scope: 0, or -EBUSY or -ESTALE. */
int slu_list_check_scope(struct slu_list *list);
/* Makes the entries of a list in flight, in an item's queue, pin the memory of their requests. */
void slu_list_pin(struct slu_list *list, const struct slu_listed *listed);
/* Returns -ESTALE, with the text that the channel was closed. */
int slu_list_closed(void);

/*
 * For the engine: returns whether any list names the memory. The caller holds the lock of the
 * domain.
 */
bool slu_lists_use(const struct slu_engine *engine, const struct slu_memory *memory);
/* Counts the requests of lists in flight. */
uint32_t slu_lists_pending(const struct slu_engine *engine);
/* Returns whether a list was posted, is complete, and no call has returned that. */
bool slu_lists_done(const struct slu_engine *engine);
/* Separates the lists from an engine that ends, once its work is drained. */
void slu_lists_close(struct slu_engine *engine);

#endif
