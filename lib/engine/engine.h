/* SPDX-License-Identifier: MIT */
/*
 * The completion engine: one per channel or per multichannel, so that polling
 * n peers costs the same as polling one. A channel is an engine with one peer.
 *
 * Every accepted request has a slot. Its life:
 *
 *   FREE --take--> PENDING --completion--> DONE --seen--> FREE
 *                     |                                    ^
 *                     +--completion of a blocking call's --+
 *
 * A slot that was seen keeps its result until it is taken again, so asking
 * twice gives the same answer. When no slot is free, the oldest DONE one is
 * taken: a success is forgotten, a failure moves to a bounded list.
 *
 * Credits: a request needs a slot, room in its queue pair, and room in the
 * completion queue, each counted here and for sends and receives apart, so that
 * parked receives starve no send. A driver is never asked for more than fits.
 */
#ifndef SLU_ENGINE_H
#define SLU_ENGINE_H

#include "../internal.h"

#include <sluice/multichannel.h>
#include <sluice/scope.h>

/* The two queues of a queue pair, and the pools of slots. */
enum slu_queue { SLU_SEND_QUEUE = 0, SLU_RECEIVE_QUEUE = 1, SLU_QUEUES = 2 };

#define SLU_MAX_SGE 32
#define SLU_NONE UINT32_MAX

/* Drain bound: how long a queue pair in error may take to give all back. */
#define SLU_DRAIN_TIME SLUICE_S(1)

enum slu_slot_state { SLU_SLOT_FREE, SLU_SLOT_PENDING, SLU_SLOT_DONE };

/* Who sees the result of a slot. */
enum slu_slot_owner { SLU_OWNER_CALL, SLU_OWNER_PROGRAM, SLU_OWNER_SCOPE, SLU_OWNERS };

struct slu_call;

/*
 * id: 19 bits of index, 1 of queue, 44 of generation; a new one each time the
 * slot is taken. state, key_count and the keys are atomic for the scan that
 * deregistering makes, perhaps from another thread.
 */
struct slu_slot {
    uint64_t id;
    struct slu_call *call; /* of OWNER_CALL */
    uint64_t user_data;
    uint64_t bytes;
    int64_t deadline;
    uint64_t done_number; /* order of completion */
    uint32_t next, prev;  /* of the list it is in: queue order, done, or free */
    uint32_t peer;
    uint32_t index;  /* of the request in the call */
    uint32_t posted; /* work requests in flight; more than one if it was split */
    uint32_t immediate;
    uint32_t status, cause, vendor;
    int32_t error;
    _Atomic uint8_t state;
    _Atomic uint8_t key_count;
    uint8_t owner;
    uint8_t opcode;
    uint8_t error_class;
    uint8_t flags;   /* SLUICE_IMMEDIATE */
    bool unfinished; /* parts of it are still to be posted */
};

struct slu_list {
    uint32_t head, tail;
};

struct slu_pool {
    struct slu_slot *slots;
    _Atomic uint32_t *keys; /* max_sge per slot */
    uint32_t size;
    uint32_t pending;
    uint32_t cq_free; /* our share of the completion queue */
    struct slu_list free;
    struct slu_list done[SLU_OWNERS];
};

/* Where a submit goes on with a peer whose queue was full. */
struct slu_stall {
    uint32_t index; /* first request of that peer that is not wholly posted, or SLU_NONE */
    uint32_t slot;  /* of that request if parts of it are posted, or SLU_NONE */
    uint32_t next;  /* stalled peer */
    uint64_t offset;
};

struct slu_peer {
    struct slu_qp *qp;
    enum sluice_peer_state state;
    uint32_t free[SLU_QUEUES];          /* room in the queue pair */
    uint32_t unsignaled;                /* sends since the last signalled one */
    struct slu_list posted[SLU_QUEUES]; /* slots in the order of posting */
    struct slu_stall stall[SLU_QUEUES];
    uint32_t need[SLU_QUEUES]; /* while a list is counted; else 0 */
    int64_t drain_by;          /* FAILED with work in flight: when to give up */
    int64_t failed_at;
    uint64_t failed_in; /* number of the call during which it failed */
    uint32_t cause_status, cause_opcode, cause_vendor;
    bool cause_inferred; /* it failed without saying why: a real reason may follow */
    bool cause_untold;   /* it came with no request: the first that fails tells it */
    int connect_error;   /* it never got ready: why */
    char reason[160];    /* what the driver said of it, or of a post it refused */
};

/* A failure whose slot was needed. */
struct slu_failure {
    uint64_t id;     /* 0: none */
    uint64_t number; /* order of completion */
    uint8_t owner;   /* OWNER_CALL: it was seen */
    struct sluice_completion completion;
};
#define SLU_FAILURES 64

struct sluice_scope {
    uint32_t magic;
    bool open;
    struct slu_engine *engine;
    int64_t deadline;
    uint32_t posted, pending;
    uint32_t recycled; /* successes that nobody saw and whose slots were needed */
    uint32_t lost;     /* failures that nobody saw and whose places were needed */
    int lost_error;    /* of the first of them */
};

struct slu_engine {
    const struct slu_transport *transport;
    struct sluice_pd *pd;
    struct slu_engine *next; /* of the protection domain */
    struct slu_cq *cq;
    struct slu_qp_attr attr;
    enum sluice_wait_mode wait_mode;
    int64_t spin_time;
    uint64_t tag; /* owner of handles; never repeats in a process */
    uint32_t peer_count;
    struct slu_peer *peers;
    struct slu_pool pools[SLU_QUEUES];
    uint64_t call_number;
    uint64_t done_number;
    uint64_t refused_number;
    uint32_t idle_polls;   /* rounds that found nothing since events were looked for */
    uint32_t busy_polls;   /* polls since the clock was looked at */
    int64_t next_deadline; /* no pending slot is due before */
    int64_t next_drain;    /* no failed peer is due before */
    uint32_t stalled[SLU_QUEUES];
    struct slu_failure failures[SLU_FAILURES];
    uint32_t failure_count; /* unseen */
    uint64_t failures_lost;
    int saved_errno;    /* while entered */
    uint64_t discarded; /* completions of unknown ids */
    struct sluice_scope scope;
};

/*
 * A list of requests, in whatever form a call was given it. Item i of it is
 * made on the fly, so that no form costs a copy.
 */
struct slu_source {
    const struct sluice_request *lists[2]; /* the second follows the first */
    uint32_t counts[2];
    uint32_t opcodes[2];                         /* SLUICE_OP_NONE: as the requests say */
    const uint32_t *peers;                       /* multicast send, or NULL */
    const struct sluice_peer_remote_mr *remotes; /* multicast write, or NULL */
    uint32_t count;
    bool multicast;
};

struct slu_item {
    const struct sluice_request *request;
    const struct sluice_remote_mr *remote;
    uint32_t peer;
    uint32_t opcode;
    uint64_t bytes; /* of its SGEs together */
};

/* A blocking call; on the caller's stack. */
struct slu_call {
    struct slu_engine *engine;
    const struct slu_source *source;
    struct sluice_completion *completions;
    int64_t deadline;
    bool expired;         /* nothing more of it is posted */
    uint32_t incomplete;  /* requests without a result */
    uint32_t first_real;  /* index of the first failure that is not a mere cancellation */
    uint32_t first_other; /* index of the first one that is */
    struct sluice_completion real, other;
};

/* attr.c: applies defaults and checks ranges and the device's limits. */
int slu_channel_attr_apply(struct slu_engine *engine, const struct slu_tcontext *context,
                           const struct sluice_channel_attr *attr);

/* engine.c */
struct slu_engine *slu_engine_create(struct sluice_pd *pd, uint32_t peers,
                                     const struct sluice_channel_attr *attr);
void slu_engine_destroy(struct slu_engine *engine);
bool slu_engines_use_key(struct sluice_pd *pd, uint32_t lkey);
int slu_engine_shutdown(struct slu_engine *engine, int64_t timeout);

/* peer.c: an empty peer without a queue pair; the same with one. */
void slu_peer_init(const struct slu_engine *engine, struct slu_peer *peer);
int slu_peer_create(struct slu_engine *engine, struct slu_peer *peer);
void slu_peer_endpoint(const struct slu_engine *engine, const struct slu_peer *peer,
                       struct sluice_endpoint *endpoint);
int slu_peer_connect(struct slu_engine *engine, struct slu_peer *peer,
                     const struct sluice_endpoint *remote);
int slu_peer_reset(struct slu_engine *engine, struct slu_peer *peer);
int slu_peer_state(struct slu_engine *engine, struct slu_peer *peer);
/* The engine is entered. */
int slu_peer_error(const struct slu_engine *engine, const struct slu_peer *peer,
                   struct sluice_error *error);
/* The same for a program: it enters, and looks first. So does slu_peer_state(). */
int slu_peer_report(struct slu_engine *engine, struct slu_peer *peer, struct sluice_error *error);
/* query.c: for a program; it enters, and looks first. */
int slu_peer_query(struct slu_engine *engine, struct slu_peer *peer,
                   struct sluice_channel_info *info);
/* Keeps the text of the thread's last failure, for sluice_error.text. */
void slu_peer_keep_reason(struct slu_peer *peer);
/* To FAILED, with the cause unless there is one already. Idempotent. */
void slu_peer_fail(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                   uint32_t opcode, uint32_t vendor);
/* The same for a failure that came with no request; reason is what is said of it. */
void slu_peer_fail_alone(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                         uint32_t vendor, bool inferred, const char *reason);
/* Takes the failures that events of the device tell of. */
void slu_peers_alerted(struct slu_engine *engine);
static inline uint32_t slu_peer_index(const struct slu_engine *engine, const struct slu_peer *peer)
{
    return (uint32_t)(peer - engine->peers);
}
static inline bool slu_peer_busy(const struct slu_peer *peer)
{
    return peer->posted[SLU_SEND_QUEUE].head != SLU_NONE ||
           peer->posted[SLU_RECEIVE_QUEUE].head != SLU_NONE;
}

/* slot.c; inline.h has the rest of it */
int slu_pool_create(struct slu_pool *pool, enum slu_queue queue, uint32_t size, uint32_t max_sge);
void slu_pool_destroy(struct slu_pool *pool);
/* Takes a slot; there must be room. It joins the posted list of the peer. */
struct slu_slot *slu_slot_take(struct slu_engine *engine, enum slu_queue queue,
                               const struct slu_item *item, enum slu_slot_owner owner);
/* Gives its result to its call. */
void slu_slot_tell_call(const struct slu_slot *slot);
/* The oldest result of an owner that nobody has seen; false if there is none. */
bool slu_take_done(struct slu_engine *engine, enum slu_slot_owner owner,
                   struct sluice_completion *completion);
uint64_t slu_slot_no_id(uint64_t number);
bool slu_pool_uses_key(const struct slu_pool *pool, uint32_t max_sge, uint32_t lkey);

/* failure.c: keeps one aside; number and owner are those of the slot. */
void slu_failure_keep_slot(struct slu_engine *engine, const struct slu_slot *slot);
/* That of a request that never had a slot; returns its id. */
uint64_t slu_failure_keep_refused(struct slu_engine *engine, enum slu_slot_owner owner,
                                  const struct sluice_completion *completion);
/* The owner's oldest, if it is older than that number. It counts as seen then. */
bool slu_failure_take(struct slu_engine *engine, enum slu_slot_owner owner, uint64_t before,
                      struct sluice_completion *completion);
bool slu_failure_find(struct slu_engine *engine, uint64_t id, struct sluice_completion *completion);

/* progress.c */
/* Takes all that is there. */
void slu_progress_all(struct slu_engine *engine);
/* Polls once, without waiting: whether anything was done. */
bool slu_progress(struct slu_engine *engine);
/* The same, where the transport was polled already: what it returned. */
bool slu_progress_with(struct slu_engine *engine, const struct slu_wc *wcs, int count);
/* The failed slot of a failed peer: its cause, class and errno value. */
void slu_slot_failed(const struct slu_peer *peer, struct slu_slot *slot);
/* Completes what a peer's queue pair holds, by hand, after destroying it. */
void slu_peer_abandon(struct slu_engine *engine, struct slu_peer *peer);
/*
 * Progresses until ready(argument) or the absolute time: true if ready. The
 * engine is entered.
 */
bool slu_wait(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
              int64_t until);
/* The same until a slot is not pending; and one look, for which no clock is needed. */
bool slu_wait_slot(struct slu_engine *engine, struct slu_slot *slot, int64_t until);
bool slu_look_for_slot(struct slu_engine *engine, struct slu_slot *slot);

/* source.c; inline.h has the rest of it */
int slu_source_check(const struct slu_engine *engine, const struct slu_source *source,
                     int64_t deadline);
/* Flags that an operation may have; of SLU_OPCODES operations. */
#define SLU_OPCODES 5
extern const uint32_t slu_opcode_flags[SLU_OPCODES];
/* "send" and so on; static. */
const char *slu_opcode_name(uint32_t opcode);
static inline enum slu_queue slu_opcode_queue(uint32_t opcode)
{
    return opcode == SLUICE_OP_RECEIVE ? SLU_RECEIVE_QUEUE : SLU_SEND_QUEUE;
}
static inline enum slu_queue slu_item_queue(const struct slu_item *item)
{
    return slu_opcode_queue(item->opcode);
}

/* post.c: posts what fits of the call's requests to one queue; peers without room stall. */
void slu_post_call(struct slu_call *call, enum slu_queue queue);
/* Goes on with stalled peers that have room again, or that failed. */
void slu_post_stalled(struct slu_call *call);
/* The driver refused a request: its peer is failed, and about to be drained. */
void slu_post_refused(struct slu_engine *engine, struct slu_peer *peer, struct slu_slot *slot,
                      int error);
/*
 * Posts the items from to from + count - 1 of one queue, for which there is
 * room. handles, unless NULL, is that of item 0.
 */
void slu_post_owned(struct slu_engine *engine, const struct slu_source *source, uint32_t from,
                    uint32_t count, enum slu_queue queue, enum slu_slot_owner owner,
                    int64_t deadline, struct sluice_handle *handles);

/* submit.c */
int slu_submit(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
               struct sluice_completion *completions);
/*
 * Waits for what was posted of it, which slot is all of unless NULL, leaves the
 * engine, and returns the result.
 */
int slu_call_finish(struct slu_call *call, struct slu_slot *slot);
/*
 * The result of a request that is not posted: because the deadline passed
 * before there was room for it (expired), or because of its peer's state.
 */
void slu_refused(const struct slu_engine *engine, const struct slu_item *item, bool expired,
                 int64_t deadline, struct sluice_completion *completion);
void slu_call_result(struct slu_call *call, uint32_t index,
                     const struct sluice_completion *completion);

/*
 * single.c: one request. Of the work request its maker has set all but next, id
 * and the remote address; remote, where a write or read goes, may be NULL.
 */
int slu_submit_send(struct slu_engine *engine, uint32_t peer, struct slu_send_wr *wr,
                    int64_t deadline);
int slu_submit_remote(struct slu_engine *engine, uint32_t peer, struct slu_send_wr *wr,
                      const struct sluice_remote_mr *remote, int64_t deadline);
int slu_submit_receive(struct slu_engine *engine, uint32_t peer, struct slu_receive_wr *wr,
                       int64_t deadline, struct sluice_completion *completion);
/* Unpolled requests; one alone has a way of its own here, and all others go to slu_post(). */
int slu_post_requests(struct slu_engine *engine, const struct sluice_request *requests,
                      uint32_t count, int64_t deadline, struct sluice_handle *handles);

/* unpolled.c */
int slu_post(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
             struct sluice_handle *handles);
int slu_poll(struct slu_engine *engine, struct sluice_completion *completions, uint32_t count);
int slu_wait_handle(struct slu_engine *engine, const struct sluice_handle *handle, int64_t timeout,
                    struct sluice_completion *completion);

/* scope.c */
struct sluice_scope *slu_scope_begin(struct slu_engine *engine, int64_t deadline);

#include "inline.h"

#endif
