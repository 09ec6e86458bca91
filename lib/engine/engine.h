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

#include <sluice/counters.h>
#include <sluice/multichannel.h>
#include <sluice/scope.h>

#include "device/pd.h"

/* The two queues of a queue pair, and the pools of slots. */
enum slu_queue { SLU_SEND_QUEUE = 0, SLU_RECEIVE_QUEUE = 1, SLU_QUEUES = 2 };

#define SLU_MAX_SGE 32
#define SLU_NONE UINT32_MAX

/* Drain bound: how long a queue pair in error may take to give all back. */
#define SLU_DRAIN_TIME SLUICE_S(1)

enum slu_slot_state { SLU_SLOT_FREE, SLU_SLOT_PENDING, SLU_SLOT_DONE };

/* Who sees the result of a slot. */
enum slu_slot_owner {
    SLU_OWNER_CALL,   /* a blocking call, which has no handles */
    SLU_OWNER_NOBODY, /* detached, or never taken: its handles are stale */
    SLU_OWNER_PROGRAM,
    SLU_OWNER_SCOPE,
    SLU_OWNERS
};

struct slu_call;

/*
 * id: 19 bits of index + 1, so that none is 0, 1 of queue, 44 of generation; a
 * new one each time the slot is taken. state, key_count and the keys are atomic
 * for the scan that deregistering makes, perhaps from another thread.
 */
struct slu_slot {
    uint64_t id;
    struct slu_call *call; /* of OWNER_CALL */
    int64_t deadline;
    uint64_t done_number; /* order of completion */
    uint32_t next, prev;  /* of the list it is in: queue order, done, or free */
    uint32_t index;       /* of the request in the call, or in the scope */
    uint32_t posted;      /* work requests in flight; more than one if it was split */
    /* While it is pending, what it is if it succeeds. */
    struct sluice_completion result;
    _Atomic uint8_t state;
    _Atomic uint8_t key_count;
    uint8_t owner;
    bool unfinished; /* parts of it are still to be posted */
    bool passed;     /* a later one was flushed, and it was not reported: nobody knows its end */
    int64_t time;    /* the deadline as it was given */
};
_Static_assert(sizeof(struct slu_slot) == 128, "a place in the pool is found by a shift");

struct slu_list {
    uint32_t head, tail;
};

struct slu_pool {
    struct slu_slot *slots;
    _Atomic uint32_t *keys; /* max_sge per slot */
    uint32_t size;
    uint32_t slot_count; /* size, and some to spare */
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

/* What is counted of a peer, for sluice/counters.h. */
#define SLU_COUNTED_OPCODES 8
#define SLU_COUNTED_CLASSES SLU_CLASSES
struct slu_counts {
    struct {
        uint64_t requests, bytes;
    } done[SLU_COUNTED_OPCODES];
    uint64_t failed[SLU_COUNTED_CLASSES];
    uint64_t refused, queue_full, forgotten, resets;
};

/* Who a peer is and was connected to; stays over resets. */
struct slu_name {
    uint64_t identity; /* random */
    uint64_t generation;
    uint64_t remote_identity; /* 0: it was never connected */
    uint64_t remote_generation;
    bool remote_used;          /* it was heard at that generation, which leads nowhere any more */
    bool remembered;           /* it was removed, and its handles still name its requests */
    uint32_t index_generation; /* how many had the index before */
};

/* What is asked of a peer beside the program's work; see probe.c. */
struct slu_probe {
    uint64_t id;        /* of the one in flight; 0: none */
    int64_t due;        /* keep-alive: when to look after the peer next */
    int64_t late_after; /* keep-alive: a peer that was not heard by then has had its time */
    uint64_t successes; /* requests of the peer that had succeeded when it was looked at last */
    uint32_t access;    /* that the peer gives us */
    bool answered;      /* the peer was heard since it was connected */
    bool probe_grace;   /* keep-alive: the answer may have come while the program was away */
    bool awaited;       /* by a wait for the peer to be connected */
};

/* What is known of a peer when a deadline ends its connection; see words.c. */
struct slu_late {
    int64_t time;  /* the deadline as it was given */
    bool heard;    /* the peer, since it was connected */
    bool receives; /* this side had receives posted */
    struct slu_stand stand;
};

struct slu_peer {
    struct slu_qp *qp;
    enum sluice_peer_state state;
    uint32_t free[SLU_QUEUES];          /* room in the queue pair */
    struct slu_list posted[SLU_QUEUES]; /* slots in the order of posting */
    struct slu_stall stall[SLU_QUEUES];
    uint32_t need[SLU_QUEUES]; /* while a list is counted; else 0 */
    int64_t drain_by;          /* FAILED with work in flight: when to give up */
    int64_t failed_at;
    uint64_t failed_in; /* number of the call during which it failed */
    uint32_t cause_status, cause_opcode, cause_vendor;
    bool cause_inferred;      /* it failed without saying why: a real reason may follow */
    bool async_error_pending; /* it came with no request: the first that fails tells it */
    int connect_error;        /* it never got ready: why */
    char reason[160];         /* what the driver said of it, or of a post it refused */
    const char *loss;         /* why it is lost, if the transport knows; static */
    struct slu_late late;     /* if the cause is a deadline */

    struct slu_probe probe;

    struct slu_name name;     /* stays over resets */
    struct slu_counts counts; /* stays over resets */
};

/* A failure whose slot was needed. */
struct slu_failure {
    uint64_t id;     /* 0: none */
    uint64_t number; /* order of completion */
    uint32_t index;  /* of the slot */
    uint8_t owner;   /* OWNER_CALL: it was seen */
    struct sluice_completion completion;
};
#define SLU_FAILURES 64

/* The scope that is open, or nothing. */
struct slu_scope {
    bool open;
    bool expired; /* its deadline is known to have passed: nothing more is posted */
    uint64_t tag; /* owner of its handles, which mean nothing outside of it */
    int64_t time; /* the deadline as it was given */
    int64_t deadline;
    uint32_t posted, pending;
    uint32_t recycled; /* successes that nobody saw and whose slots were needed */
    uint32_t lost;     /* failures that nobody saw and whose places were needed */
    int lost_error;    /* of the first of them that is no mere cancellation, or else the first */
};

struct slu_engine {
    const struct slu_transport *transport;
    struct sluice_pd *pd;
    struct slu_key_user key_user; /* of the protection domain */
    struct slu_cq *cq;
    struct slu_qp_attr attr;
    enum sluice_wait_mode wait_mode;
    int64_t spin_time;
    uint32_t plain_sges; /* that every operation can have */
    uint64_t max_plain;  /* bytes of one work request: those of a message, and at most 2^32 - 1 */
    uint64_t tag;        /* owner of handles; never repeats in a process */
    uint32_t peer_count; /* indices that a peer has or had; see members.c */
    struct slu_peer *peers;
    struct slu_pool pools[SLU_QUEUES];
    uint64_t call_number;
    uint64_t done_number;
    uint64_t refused_number;
    uint32_t detached;     /* pending requests of OWNER_NOBODY */
    uint32_t idle_polls;   /* rounds that found nothing since events were looked for */
    uint32_t busy_polls;   /* polls since the clock was looked at */
    int64_t next_deadline; /* no pending slot is due before */
    int64_t next_drain;    /* no failed peer is due before */
    int64_t next_probe;    /* no peer is to be looked after before */
    int64_t keepalive;     /* 0: none */
    uint64_t probe_number; /* of the last probe */
    uint32_t probe_limit;  /* probes that may be in flight */
    uint32_t probe_room;   /* probes that still may be */
    uint32_t awaited;      /* peers that are */
    uint32_t stalled[SLU_QUEUES];
    struct slu_failure failures[SLU_FAILURES];
    uint32_t failure_count; /* unseen */
    uint64_t failures_lost;
    int saved_errno;    /* while entered */
    uint64_t discarded; /* completions of unknown ids */
    uint64_t polls, sleeps, wakes;
    atomic_bool woken; /* by any thread; see wait.c */
    struct slu_scope scope;
    struct slu_scope_object *scope_object; /* the rest of it; see lib/scope/scope.h */
    uint32_t present_count, peer_room;     /* peers not removed; indices there is memory for */
    bool entries_shared;                   /* the queue has fewer than the peers could use */
    struct slu_counts past;                /* of peers that were removed, and have a successor */
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
    const struct sluice_sge *sges; /* those of the request, wherever they are */
    const struct sluice_remote_mr *remote;
    uint32_t peer;
    uint32_t opcode;
    uint64_t bytes; /* of its SGEs together */
};

/* A call that posts a list and waits until it is posted, or done; on the caller's stack. */
struct slu_call {
    struct slu_engine *engine;
    const struct slu_source *source;
    struct sluice_completion *completions;
    int64_t time; /* the deadline as it was given */
    int64_t deadline;
    enum slu_slot_owner owner;     /* OWNER_CALL, or OWNER_SCOPE */
    bool expired;                  /* nothing more of it is posted */
    struct sluice_handle *handles; /* of OWNER_SCOPE, or NULL */
    uint32_t first;                /* of OWNER_SCOPE: requests of the scope before the list */
    uint32_t incomplete;           /* requests without a result */
    uint32_t first_real;           /* index of the first failure that is not a mere cancellation */
    uint32_t first_other;          /* index of the first one that is */
    struct sluice_completion real, other;
};

/* Whether it only means that something else failed. */
static inline bool slu_is_mere_cancellation(int error)
{
    return error == -ECANCELED || error == -ENOTCONN;
}

/* attr.c: applies defaults and checks ranges and the device's limits. */
int slu_channel_attr_apply(struct slu_engine *engine, const struct slu_tcontext *context,
                           const struct sluice_channel_attr *attr);

/*
 * engine.c. Slots to spare are for requests of our own, beside those of the program: as
 * long as they are no more, none of them costs the program a result that it has not seen.
 */
struct slu_engine *slu_engine_create(struct sluice_pd *pd, uint32_t peers, uint32_t spare,
                                     const struct sluice_channel_attr *attr);
void slu_engine_destroy(struct slu_engine *engine);
/* Each engine and each scope of the process has a tag of its own; 0 is nobody's. */
uint64_t slu_next_tag(void);
int slu_engine_shutdown(struct slu_engine *engine, int64_t timeout);

/* peer.c: an empty peer without a queue pair; the same with one. */
void slu_peer_init(const struct slu_engine *engine, struct slu_peer *peer);
int slu_peer_create(struct slu_engine *engine, struct slu_peer *peer);
void slu_peer_endpoint(const struct slu_engine *engine, const struct slu_peer *peer,
                       struct sluice_endpoint *endpoint);
int slu_peer_connect(struct slu_engine *engine, struct slu_peer *peer,
                     const struct sluice_endpoint *remote);
int slu_peer_reset(struct slu_engine *engine, struct slu_peer *peer);
/* For a program: it enters, and looks first. */
int slu_peer_state(struct slu_engine *engine, struct slu_peer *peer);
/* Whether it has failed, and why. The engine is entered. */
bool slu_peer_error(const struct slu_engine *engine, const struct slu_peer *peer,
                    struct sluice_error *error);
/* counters.c: those of a peer, or of all if it is NULL. */
int slu_counters(const struct slu_engine *engine, const struct slu_peer *peer,
                 struct sluice_counters *counters);
/* query.c: for a program, whose struct may be of another version; both enter, and look first. */
int slu_peer_query(struct slu_engine *engine, struct slu_peer *peer,
                   struct sluice_channel_info *info);
int slu_peer_first_error(struct slu_engine *engine, struct slu_peer *peer,
                         struct sluice_error *error);
/* Keeps the text of the thread's last failure, for sluice_error.text. */
void slu_peer_keep_reason(struct slu_peer *peer);
/* To FAILED, with the cause unless there is one already. Idempotent. */
void slu_peer_fail(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                   uint32_t opcode, uint32_t vendor);
/* The same for a failure that came with no request; reason is what is said of it. */
void slu_peer_fail_alone(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                         uint32_t vendor, bool inferred, const char *reason);
/* Fails a peer whose queue pair has failed while nobody was looking. */
void slu_peer_notice_loss(struct slu_engine *engine, struct slu_peer *peer);
/* Takes the failures that events of the device tell of. */
void slu_peers_alerted(struct slu_engine *engine);
/* Of a peer that was failed: until its work has ended, which the drain bound limits. */
void slu_peer_await_idle(struct slu_engine *engine, struct slu_peer *peer);
static inline uint32_t slu_peer_index(const struct slu_engine *engine, const struct slu_peer *peer)
{
    return (uint32_t)(peer - engine->peers);
}
static inline bool slu_peer_has_posted(const struct slu_peer *peer, enum slu_queue queue)
{
    return peer->posted[queue].head != SLU_NONE;
}
static inline bool slu_peer_busy(const struct slu_peer *peer)
{
    return slu_peer_has_posted(peer, SLU_SEND_QUEUE) ||
           slu_peer_has_posted(peer, SLU_RECEIVE_QUEUE);
}

/* slot.c; inline.h has the rest of it */
int slu_pool_create(struct slu_pool *pool, enum slu_queue queue, uint32_t size, uint32_t spare,
                    uint32_t max_sge);
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
/* For tests: the next ids are of this generation, of 44 bits. Nothing is pending. */
void slu_engine_set_generation(struct slu_engine *engine, uint64_t generation);
bool slu_pool_uses_key(const struct slu_pool *pool, uint32_t max_sge, uint32_t lkey);

/* failure.c: keeps one aside; number and owner are those of the slot. */
void slu_failure_keep_slot(struct slu_engine *engine, const struct slu_slot *slot);
/* That of a request that never had a slot; returns its id. */
uint64_t slu_failure_keep_refused(struct slu_engine *engine, enum slu_slot_owner owner,
                                  uint32_t index, const struct sluice_completion *completion);
/* The owner's oldest, if it is older than that number. It counts as seen then. */
bool slu_failure_take(struct slu_engine *engine, enum slu_slot_owner owner, uint64_t before,
                      struct sluice_completion *completion);
/* One that nobody has seen is seen now. */
void slu_failure_see(struct slu_engine *engine, struct slu_failure *failure);
bool slu_failure_find(struct slu_engine *engine, uint64_t id, struct sluice_completion *completion);
/* Forgets one, seen or not: whether it was there. */
bool slu_failure_drop(struct slu_engine *engine, uint64_t id);

/* probe.c: of a peer that is not connected. */
void slu_probe_init(struct slu_peer *peer);
/* Whether a peer that gives us these rights can be asked: 0, or -EOPNOTSUPP. */
int slu_probe_check(const struct slu_engine *engine, uint32_t peer, uint32_t access);
/* The peer is connected, and gives us these rights. */
void slu_probe_connected(struct slu_engine *engine, struct slu_peer *peer, uint32_t access);
/* Since it was connected. */
bool slu_probe_heard(struct slu_peer *peer);
/* Whether a completion that is of no request is of a probe; then it is done with. */
bool slu_probe_ended(struct slu_engine *engine, const struct slu_wc *wc);
/* The peer has failed; its queue pair is gone. */
void slu_probe_failed(struct slu_engine *engine, struct slu_peer *peer);
void slu_probe_abandon(struct slu_engine *engine, struct slu_peer *peer);
/* Looks after the peers that are due. */
void slu_probe_peers(struct slu_engine *engine, int64_t now);
/* For a program: waits until the peer, or all that are connected if it is NULL, was heard. */
int slu_wait_connected(struct slu_engine *engine, struct slu_peer *peer, int64_t timeout);

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
/* One look for a slot that is pending, for which no clock is needed: whether it is not any more. */
bool slu_look_for_slot(struct slu_engine *engine, struct slu_slot *slot);
/* For wait.c: polls, for the slot that is waited for alone or NULL; how many completions came. */
int slu_poll_for(struct slu_engine *engine, struct slu_slot *slot);
/* And then looks whether anything is late: whether anything came. */
bool slu_look_at_clock(struct slu_engine *engine, int count);

/* wait.c */
/*
 * Progresses until ready(argument) or the absolute time: true if ready. The
 * engine is entered.
 */
bool slu_wait(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
              int64_t until);
/* The same until a slot is not pending. */
bool slu_wait_slot(struct slu_engine *engine, struct slu_slot *slot, int64_t until);
/*
 * The same for calls that a wake ends: 1 if ready, 0 if the time is up, -EINTR,
 * with its text, if woken. What is ready is never interrupted.
 */
int slu_wait_interruptible(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
                           int64_t until);
int slu_wait_slot_interruptible(struct slu_engine *engine, struct slu_slot *slot, int64_t until);
/*
 * For a wait of one's own, for what makes no event: until when it spins if it
 * begins now, and a sleep for at most so long. The engine is entered.
 */
int64_t slu_spin_end(const struct slu_engine *engine, int64_t now);
void slu_nap(struct slu_engine *engine, int64_t until);
/* For event loops, which are not inside: see sluice_channel_fd(). */
int slu_fd(const struct slu_engine *engine);
int slu_arm(struct slu_engine *engine, int64_t *due);
/* Any thread, and signal handlers; the engine need not be entered. */
void slu_wake(struct slu_engine *engine);
/* The program polls: a wake has done what it was to do. */
void slu_wake_seen(struct slu_engine *engine);

/* source.c; inline.h has the rest of it */
int slu_source_check(const struct slu_engine *engine, const struct slu_source *source,
                     int64_t deadline);
/* Flags that an operation may have; of SLU_OPCODES operations. */
#define SLU_OPCODES 7
extern const uint32_t slu_opcode_flags[SLU_OPCODES];
/* "send" and so on; static. */
const char *slu_opcode_name(uint32_t opcode);
static inline bool slu_opcode_is_atomic(uint32_t opcode)
{
    return opcode >= SLUICE_OP_COMPARE_SWAP;
}
static inline int slu_no_remote(uint32_t opcode)
{
    return slu_misuse(EINVAL, "a %s needs a remote region, not NULL", slu_opcode_name(opcode));
}
static inline uint32_t slu_queue_depth(const struct slu_engine *engine, enum slu_queue queue)
{
    return queue == SLU_SEND_QUEUE ? engine->attr.send_depth : engine->attr.receive_depth;
}
static inline bool slu_nothing_pends(const struct slu_engine *engine)
{
    return engine->pools[SLU_SEND_QUEUE].pending == 0 &&
           engine->pools[SLU_RECEIVE_QUEUE].pending == 0;
}
static inline uint32_t slu_count_pending(const struct slu_engine *engine, enum slu_queue queue)
{
    return engine->pools[queue].pending;
}
static inline enum slu_queue slu_opcode_queue(uint32_t opcode)
{
    return opcode == SLUICE_OP_RECEIVE ? SLU_RECEIVE_QUEUE : SLU_SEND_QUEUE;
}
static inline enum slu_queue slu_item_queue(const struct slu_item *item)
{
    return slu_opcode_queue(item->opcode);
}

/*
 * post.c: posts what fits of the call's requests to one queue; peers without
 * room stall. What is of a scope is left to it once it is posted.
 */
void slu_post_call(struct slu_call *call, enum slu_queue queue);
/* Goes on with stalled peers that have room again, or that failed. */
void slu_post_stalled(struct slu_call *call);
/* The driver refused a request: its peer is failed, and about to be drained. */
void slu_post_refused(struct slu_engine *engine, struct slu_peer *peer, struct slu_slot *slot,
                      int error);
/*
 * Posts the items from to from + count - 1 of one queue, for which there is
 * room. time is the deadline as it was given. handles, unless NULL, is that of item 0.
 */
void slu_post_owned(struct slu_engine *engine, const struct slu_source *source, uint32_t from,
                    uint32_t count, enum slu_queue queue, enum slu_slot_owner owner, int64_t time,
                    int64_t deadline, struct sluice_handle *handles);

/*
 * detached.c: requests of our own beside the program's, which nobody sees the end of and
 * which cost the program no result. The engine is entered.
 */
/* Whether so many can be posted to a peer now. */
bool slu_has_room(const struct slu_engine *engine, uint32_t peer, uint32_t count);
/* Posts one send, write or read, for which there is room; its id. */
uint64_t slu_post_detached(struct slu_engine *engine, const struct sluice_request *request);
/* Whether the request with that id, or 0, is in flight. */
bool slu_is_pending(struct slu_engine *engine, uint64_t id);

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
 * before there was room for it (expired), or because of its peer's state. It is
 * counted.
 */
void slu_complete_unposted(const struct slu_engine *engine, const struct slu_item *item,
                           bool expired, int64_t deadline, struct sluice_completion *completion);
void slu_call_result(struct slu_call *call, uint32_t index,
                     const struct sluice_completion *completion);

/* words.c: "send to" and so on; static. */
const char *slu_opcode_phrase(uint32_t opcode);
/* "500 ms"; returns text. time is not negative. */
#define SLU_DURATION_BYTES 32
const char *slu_say_duration(int64_t time, char text[SLU_DURATION_BYTES]);
/* "1 send, write or read, and 2 receives"; returns text. sends is all that is no receive. */
#define SLU_PENDING_BYTES 64
const char *slu_say_pending(uint32_t sends, uint32_t receives, char text[SLU_PENDING_BYTES]);
/* A deadline, of which that time was given, is about to end the connection. */
void slu_peer_note_late(struct slu_engine *engine, struct slu_peer *peer, int64_t time);
/* Fills in the text; all else is there. */
void slu_peer_describe(const struct slu_peer *peer, struct sluice_error *error);
/* Returns the error of a request with such a deadline that failed, with a text that tells why. */
int slu_fail_completion(const struct slu_engine *engine, const struct sluice_completion *completion,
                        int64_t time);

/*
 * single.c: one request. Of the work request its maker has set all but next, id
 * and the remote address; remote, where a write or read goes, may be NULL.
 */
int slu_submit_send(struct slu_engine *engine, uint32_t peer, struct slu_send_wr *wr,
                    int64_t deadline);
int slu_submit_remote(struct slu_engine *engine, uint32_t peer, struct slu_send_wr *wr,
                      const struct sluice_remote_mr *remote, int64_t deadline);
/* remote may be NULL; the request's own is filled in from it. */
int slu_submit_atomic(struct slu_engine *engine, struct sluice_request *request,
                      const struct sluice_remote_mr *remote, int64_t deadline);
int slu_submit_receive(struct slu_engine *engine, uint32_t peer, struct slu_receive_wr *wr,
                       int64_t deadline, struct sluice_completion *completion);
/* Unpolled requests; one alone has a way of its own here, and all others go to slu_post(). */
int slu_post_requests(struct slu_engine *engine, const struct sluice_request *requests,
                      uint32_t count, int64_t deadline, struct sluice_handle *handles);

/* unpolled.c: posts the longest prefix of it for which there is room, and returns its length. */
int slu_post(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
             struct sluice_handle *handles);
int slu_poll(struct slu_engine *engine, struct sluice_completion *completions, uint32_t count);
/* One request: 0 if it was posted. */
static inline int slu_post_one(struct slu_engine *engine, const struct sluice_request *request,
                               int64_t deadline, struct sluice_handle *handle)
{
    int posted = slu_post_requests(engine, request, 1, deadline, handle);

    return SLU_LIKELY(posted == 1) ? 0 : posted;
}
/* The same of one that goes to a remote region, which may be NULL. */
int slu_post_remote(struct slu_engine *engine, struct sluice_request *request,
                    const struct sluice_remote_mr *remote, int64_t deadline,
                    struct sluice_handle *handle);
int slu_next(struct slu_engine *engine, int64_t timeout, struct sluice_completion *completion);
int slu_flush(struct slu_engine *engine, int64_t timeout);

/* handle.c */
int slu_wait_handle(struct slu_engine *engine, const struct sluice_handle *handle, int64_t timeout,
                    struct sluice_completion *completion);
int slu_cancel(struct slu_engine *engine, const struct sluice_handle *handle,
               struct sluice_completion *completion);
int slu_detach(struct slu_engine *engine, const struct sluice_handle *handle);
/* The same two for the work of one owner, whose handles have that tag. */
int slu_poll_owner(struct slu_engine *engine, enum slu_slot_owner owner,
                   struct sluice_completion *completions, uint32_t count);
int slu_wait_tagged(struct slu_engine *engine, uint64_t tag, const struct sluice_handle *handle,
                    int64_t timeout, struct sluice_completion *completion);

/* lib/scope/scope.c: the object of its scopes is made and goes with the engine. */
int slu_scope_create(struct slu_engine *engine);
/* All work is drained. The object of an open scope stays until its end. */
void slu_scope_destroy(struct slu_engine *engine);
struct sluice_scope *slu_scope_begin(struct slu_engine *engine, int64_t deadline);
/* While a scope is open, nothing else may use the engine: -EBUSY with its text, else 0. */
int slu_scope_in_use(void);
static inline int slu_scope_check(const struct slu_engine *engine)
{
    return SLU_LIKELY(!engine->scope.open) ? 0 : slu_scope_in_use();
}

#include "engine/inline.h"

#endif
