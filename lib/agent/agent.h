/* SPDX-License-Identifier: MIT */
/*
 * An agent and its peers. One lock protects all of it, including every channel. The lock is
 * given up while a thread sleeps, and for work that takes long: allocating memory, accepting
 * peers, and connecting.
 *
 *   message          wire format of control messages; depends on nothing else here
 *   control          sending them: slots, posted receives, the sender's window
 *   control_receive  handling each control message of a peer
 *   requests         requests of ours that wait for their answers
 *   regions          memory of ours that peers use: quota, leases, revocation
 *   handover         memory of the program that is handed to a peer, and comes back
 *   remote_regions   memory of peers that this agent holds
 *   inbox            messages: sending, and receiving complete ones
 *   staging          memory that long messages are copied to, for the peer to read
 *   long_receive     long messages, which are read in the background
 *   data             the data queue pair, and resetting it
 *   transfer         reads, writes and atomics on it
 *   peer             peers: setup, progress and loss
 *   connect          accepting peers and connecting to them
 *   progress         the progress loop: which thread polls, sleeps and serves
 *   helper           the thread that serves peers while the program is elsewhere
 *   agent            the agent itself
 */
#ifndef SLU_AGENT_H
#define SLU_AGENT_H

#include <sys/queue.h>

#include <sluice/agent.h>
#include <sluice/log.h>

#include "agent/message.h"
#include "base/base.h"

struct slu_engine;

/* Requests that a side may have unanswered; the other side has room for as many answers. */
#define SLU_AGENT_WAITS 32
/* Receives for messages outside the window: credit, resets, the greeting, the goodbye. */
#define SLU_AGENT_SPARE 24
/* Send slots that are reserved for answers. */
#define SLU_AGENT_RESERVE 8
/* Requests in flight of one list of reads and writes, and of all lists on a data queue pair. */
#define SLU_AGENT_BATCH 16
#define SLU_AGENT_TRANSFERS 64
/* Pieces of a long message in flight. */
#define SLU_AGENT_PIECES 4
/* The memory of freed long messages, and of the control queue pairs of lost peers, is kept for
   reuse: up to this many regions, each of up to this many bytes. No peer has a key to it. */
#define SLU_AGENT_SPARES 4
#define SLU_AGENT_SPARE_BYTES (UINT64_C(4) << 20)
/* The owner revokes a region this long after its lease ended. */
#define SLU_AGENT_GRACE SLUICE_S(1)
/* Ended regions that are remembered, so that the log can report late use. */
#define SLU_AGENT_PAST 32
/* A peer that has sent this many wrong messages is dropped. */
#define SLU_AGENT_PATIENCE 64

/* A request of ours. The entry is in use until the answer comes, even if the caller has left. */
struct slu_agent_wait {
    uint64_t id; /* 0: free */
    uint32_t type;
    bool done;
    bool abandoned;           /* the caller has left */
    bool withdraw;            /* the peer must still be sent WITHDRAW for this message */
    uint64_t give_back;       /* id of a region that came too late and must be released; or 0 */
    struct sluice_mr *source; /* of an announced message */
    int64_t asked;            /* taken just before the request was sent */
    int error;                /* negative, with words; the fields below hold if it is 0 */
    char words[SLU_AGENT_WORDS + 1];
    struct sluice_remote_mr remote;
    uint64_t region;
    int64_t lease;
    uint32_t access;
};

/* Memory of ours that a peer may use. */
struct slu_agent_region {
    LIST_ENTRY(slu_agent_region) links;
    uint64_t id;
    struct sluice_mr *mr; /* registered for this peer alone */
    bool allocated;       /* for the peer; otherwise it is memory of the program */
    uint64_t pages;       /* bytes that count against the quota; 0 for memory of the program */
    struct sluice_remote_mr remote;
    uint32_t access;
    int64_t expires; /* on our clock; SLUICE_FOREVER: never */
};

/* A region that has ended. */
struct slu_agent_past {
    uint64_t id;
    struct sluice_remote_mr remote;
    int64_t expired;
    bool by_lease;
};

/* Work that is done without the lock: allocating memory for a peer, or copying a region. */
struct slu_agent_job {
    TAILQ_ENTRY(slu_agent_job) links;
    uint64_t id; /* of the request */
    uint64_t bytes, pages;
    uint32_t access;
    int64_t lease;
    struct slu_agent_region *from; /* to be copied; NULL: allocate */
    bool begun, done;
    int error;
    struct sluice_mr *mr; /* the result */
};

/* A region that was sent back and waits for the program. */
struct slu_agent_returned {
    STAILQ_ENTRY(slu_agent_returned) links;
    struct sluice_agent_local local;
    uint64_t pages; /* count against the peer's quota until received; 0: memory of the program */
};

struct sluice_agent_mr {
    uint32_t magic;
    struct sluice_agent_peer *peer;
    TAILQ_ENTRY(sluice_agent_mr) links; /* in the list of its peer, held or offered */
    uint64_t id;
    struct sluice_remote_mr remote;
    uint32_t access;
    int64_t expires;
    bool over; /* the owner has revoked it, or is lost */
};

/* A request on a data queue pair; the user data of its completion is this address. */
struct slu_agent_posted {
    void (*ended)(struct sluice_agent_peer *peer, struct slu_agent_posted *posted,
                  const struct sluice_completion *completion);
    struct sluice_remote_mr remote;
};

/* A piece of a long message in flight. */
struct slu_agent_piece {
    struct slu_agent_posted posted;
    struct sluice_agent_message *message; /* NULL: free */
    uint64_t length;
};

/* A long message that is being read, in the order of its bytes. */
struct slu_agent_long_receive {
    struct sluice_mr *mr;
    uint64_t posted, done; /* bytes */
    uint32_t in_flight;    /* pieces */
    bool making;           /* its memory is being allocated without the lock */
    bool broken;           /* a piece has failed: reading resumes at done */
    bool late;             /* its turn ended before it was read */
    bool gone;             /* the sender no longer has that memory */
    int64_t until;         /* when its turn ends */
    int64_t bound;         /* deadline of the pieces of a withdrawn or dropped message; or 0 */
    int failure;           /* any other error: negative, with text */
    int error;             /* failure, for the next call that asks; nothing is in flight */
    char text[SLU_TEXT_BYTES];
    struct slu_agent_piece pieces[SLU_AGENT_PIECES];
};

struct sluice_agent_message {
    uint32_t magic;
    struct sluice_agent_peer *peer;
    TAILQ_ENTRY(sluice_agent_message) links;
    uint64_t length;
    uint8_t *bytes;
    struct sluice_mr *mr; /* of a long message; otherwise the bytes follow this struct */
    uint64_t announced;   /* id of the request, until all bytes have arrived; then 0 */
    struct sluice_remote_mr remote;
    struct slu_agent_long_receive *reading;
    int64_t earliest;  /* when reading for receives from any peer may be retried; 0: now */
    uint64_t reserved; /* bytes of reading_bytes that its memory accounts for */
    bool withdrawn;
    bool dropped; /* freed once nothing of it is in flight */
};

TAILQ_HEAD(slu_agent_mrs, sluice_agent_mr);
TAILQ_HEAD(slu_agent_messages, sluice_agent_message);

enum slu_agent_data_state {
    SLU_AGENT_DATA_NONE,
    SLU_AGENT_DATA_MADE,      /* our end exists; the peer's endpoint is still to come */
    SLU_AGENT_DATA_CONNECTED, /* our end is connected; the peer has not confirmed its own yet */
    SLU_AGENT_DATA_READY
};

/* The data queue pair of a peer. */
struct slu_agent_data {
    struct sluice_multichannel *wire; /* with one peer */
    enum slu_agent_data_state state;
    uint32_t generation;
    struct sluice_endpoint own;
    struct sluice_endpoint remote;
    uint32_t remote_generation; /* of that endpoint; 0: none is waiting */
    bool must_send_reset, must_send_ready;
    bool ignored;     /* the agent's epoll set does not report it */
    bool lost_peer;   /* it failed because the peer did not answer */
    int64_t since;    /* when this generation was made */
    int64_t earliest; /* when the next generation may be made */
    int64_t patience; /* until when to wait for the cause of a failure; 0: not waiting */
    bool ours;        /* a request of ours has failed on it */
    struct sluice_remote_mr failed_remote; /* target of the request that failed it */
    uint32_t transfers;                    /* in flight */
};

enum slu_agent_peer_state {
    SLU_AGENT_GREETING, /* its HELLO has not arrived */
    SLU_AGENT_OPEN,
    SLU_AGENT_OVER
};

struct sluice_agent_peer {
    uint32_t magic;
    uint32_t references; /* of the agent, the program, messages and regions */
    struct sluice_agent *agent;
    TAILQ_ENTRY(sluice_agent_peer) links;     /* in the list of the agent */
    TAILQ_ENTRY(sluice_agent_peer) fresh;     /* the program has not taken it yet */
    TAILQ_ENTRY(sluice_agent_peer) readable;  /* it has messages for the program */
    TAILQ_ENTRY(sluice_agent_peer) offering;  /* it has handed over regions */
    TAILQ_ENTRY(sluice_agent_peer) returning; /* it has sent back regions of ours */
    LIST_ENTRY(sluice_agent_peer) unarmed;
    bool is_fresh, is_readable, is_offering, is_returning, is_unarmed, is_held, is_kept;
    bool needs_service; /* serve it even if it has no completions */
    bool came;          /* to our listener */
    uint32_t place, serial;
    enum slu_agent_peer_state state;
    uint64_t kept_bytes; /* its part of left_bytes while it is kept */
    int64_t since;
    int64_t due; /* of its channels, as armed */
    int error;
    int failed; /* first error of its control queue pair that is not handled yet; or 0 */
    char why[256];
    char address[64];
    uint64_t refused, reconnects;
    uint32_t level;
    struct slu_agent_hello hello; /* the peer's */
    uint32_t eager;               /* the smaller of both sides' */
    bool is_near;                 /* another process of this host, which maps our memory */
    uint64_t staged;              /* longest message, in bytes, that is copied for it */

    /* control */
    struct sluice_channel *control;
    struct sluice_mr *slab;
    uint8_t *bytes;
    uint32_t slot_bytes, receives, sends;
    uint32_t *free_sends, free_count;
    struct {
        uint32_t slot, length;
    } * pending; /* received and not handled yet: a ring of receives entries */
    uint32_t first_pending, pending_count;
    uint32_t sent, sent_taken;        /* messages in the peer's window: sent, and taken by it */
    uint32_t taken, reported_taken;   /* messages of the peer: taken, and last reported as such */
    uint32_t posted, posted_received; /* messages and regions: sent, and received by its program */
    uint64_t posted_bytes, posted_received_bytes;
    uint32_t arrived, received, reported_received; /* the same for our program */
    uint64_t arrived_bytes, received_bytes, reported_received_bytes;
    int64_t last_sent;
    bool pinged, must_send_bye, sent_bye;
    struct {
        uint64_t id;
        uint32_t code;
    } answers[SLU_AGENT_WAITS]; /* that wait for a send slot */
    uint32_t answer_count;

    struct slu_agent_wait waits[SLU_AGENT_WAITS];
    uint64_t last_id;
    /* Memory for the next long message; NULL: in use, or not allocated. */
    struct sluice_mr *_Atomic staging;
    uint32_t being_read; /* long messages that calls wait for the peer to read */

    LIST_HEAD(, slu_agent_region) regions;
    LIST_HEAD(, slu_agent_region) revoked; /* ended; REVOKE is still to be sent */
    uint32_t region_count;
    uint64_t region_bytes; /* allocated, being allocated, or returned but not received */
    uint32_t allocated_count;
    uint64_t last_region;
    struct slu_agent_past past[SLU_AGENT_PAST];
    uint32_t past_count;
    TAILQ_HEAD(, slu_agent_job) jobs;
    uint32_t job_count;
    STAILQ_HEAD(, slu_agent_returned) returned;

    struct slu_agent_mrs held, offered;
    uint32_t held_count;
    struct slu_agent_messages messages, dropped; /* waiting; still being read */
    struct slu_agent_mrs unwanted;               /* RELEASE is still to be sent */
    struct slu_agent_data data;
};

TAILQ_HEAD(slu_agent_peers, sluice_agent_peer);

/* The helper thread of an agent; helper.c. */
struct slu_agent_helper {
    pthread_cond_t turn; /* where it dozes */
    uint64_t calls;      /* calls of the program and rounds of their waits: signs of activity */
    int64_t armed;       /* when a call of the program last armed channels for a sleeping helper */
    bool sleeps;         /* on the epoll set */
    bool woken;          /* from there, but it does not have the lock yet */
    bool parked;         /* it dozes until a call of the program gives up the lock */
};

struct sluice_agent {
    uint32_t magic;
    uint32_t references; /* of the program, peers and calls */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sluice_pd *pd;
    struct sluice_agent_attr attr;
    char *secret;
    struct sluice_channel_attr control_attr, data_attr;
    int epoll, event;
    uint32_t inside; /* calls */
    bool closed;
    bool ending;  /* closed, and waiting calls have not all returned yet */
    bool driven;  /* a thread sleeps on the epoll set */
    bool crowded; /* other threads wait for this processor */
    bool watched; /* an event loop of the program sleeps on the epoll set */
    int64_t sleeps_until;
    uint32_t followers; /* threads that sleep on the condition */
    bool has_thread;
    pthread_t thread;
    struct slu_agent_helper helper;
    atomic_uint wakes;
    uint32_t wakes_seen;
    bool news;                /* something for the program since it last armed the agent */
    int64_t next_due, looked; /* when to serve next; when the epoll set was last polled */
    struct sluice_listener *listener;
    bool accepting, listener_ready;
    struct slu_agent_peers peers, fresh, readable, offering, returning;
    struct slu_agent_peers kept; /* lost peers whose messages wait for the program */
    LIST_HEAD(, sluice_agent_peer) unarmed;
    struct sluice_agent_peer **places;
    uint32_t place_count, last_serial;
    uint32_t connected;     /* peers, greeting ones included */
    uint64_t reading_bytes; /* of long messages that are read for receives from any peer */
    struct sluice_mr *spares[SLU_AGENT_SPARES]; /* or NULL */
    struct sluice_agent_info info;
};

/* agent.c */
bool slu_is_agent(const struct sluice_agent *agent);
int slu_not_an_agent(const struct sluice_agent *agent);
/* Bracket each call: take the lock and a reference. The last reference frees the agent. */
void slu_agent_enter(struct sluice_agent *agent);
void slu_agent_leave(struct sluice_agent *agent);
int slu_agent_check_time(int64_t time, const char *what);
/* Checks the arguments of a call that receives from one peer, or from any (NULL). */
int slu_agent_check_receive(const struct sluice_agent *agent, const struct sluice_agent_peer *peer,
                            int64_t timeout);

/* progress.c: all with the lock. */
/* Serves the peers that need it. Returns whether anything happened. */
bool slu_agent_progress(struct sluice_agent *agent);
/* Wakes the threads that wait for a change. */
void slu_agent_notify(struct sluice_agent *agent);
/* Sets the time at which all peers are served, unless an earlier one is set. */
void slu_agent_due(struct sluice_agent *agent, int64_t when);
/* Marks the channels of a peer as used, so that they are armed before the next sleep. */
void slu_agent_unarm(struct sluice_agent_peer *peer);
/* Likewise, and marks the peer to be served. */
void slu_agent_touch(struct sluice_agent_peer *peer);
/*
 * Serves one peer and no other, which is enough for most calls. Returns false if the others have
 * not been polled for a while, so that all must be served.
 */
bool slu_agent_serve_one(struct sluice_agent_peer *peer);
/*
 * Makes progress until ready() returns true. Returns 0; -ETIMEDOUT without a text; or, with one,
 * -ECANCELED, or -EINTR if wakes is set and the program called sluice_agent_wake().
 */
int slu_agent_await(struct sluice_agent *agent, bool (*ready)(void *argument), void *argument,
                    int64_t until, bool wakes);
/* Arms all peers and sets *due to when to serve next. Returns 1 if one has work already. */
int slu_agent_arm_all(struct sluice_agent *agent, int64_t *due);
/* Call before giving up the lock: arms what the caller used, so that no sleeper misses events. */
void slu_agent_arm_for_sleeper(struct sluice_agent *agent);
/* Wakes the thread that sleeps on the epoll set; callable from any thread. */
void slu_agent_wake_sleeper(const struct sluice_agent *agent);
/* Spins one step of a wait that began at *begun. Returns false when it is time to sleep. */
bool slu_agent_spin(struct sluice_agent *agent, int64_t *begun, int64_t now);
/* Sleeps until an event, a due time, or until; on the condition if the set has a sleeper. */
void slu_agent_sleep(struct sluice_agent *agent, int64_t until);

/* helper.c: likewise. */
int slu_agent_start_helper(struct sluice_agent *agent);
/* Wakes a parked helper when a call gives up the lock: it checks whether it is needed. */
void slu_agent_unpark_helper(struct sluice_agent *agent);
/* Returns whether the helper will poll by itself, so that nothing must be armed for it. */
bool slu_agent_helper_polls(struct sluice_agent *agent);

/* peer.c */
bool slu_is_agent_peer(const struct sluice_agent_peer *peer);
int slu_not_an_agent_peer(const struct sluice_agent_peer *peer);
/* Makes a peer and gives it the control channel; on error closes that, and returns NULL. */
struct sluice_agent_peer *slu_agent_peer_make(struct sluice_agent *agent,
                                              struct sluice_channel *control, bool came);
/* Sets the peer's address in words, and whether it maps our memory. */
void slu_agent_peer_locate(struct sluice_agent_peer *peer);
void slu_agent_peer_hold(struct sluice_agent_peer *peer);
void slu_agent_peer_drop(struct sluice_agent_peer *peer);
bool slu_agent_peer_progress(struct sluice_agent_peer *peer);
/* Ends the peer, all it had and all that waits for it. error: negative, or 0. */
void slu_agent_lose(struct sluice_agent_peer *peer, int error, const char *format, ...)
    SLU_PRINTF(3, 4);
/* Returns 0, -ENOTCONN with the reason, or -ECANCELED if the agent is closed. */
int slu_agent_peer_check(const struct sluice_agent_peer *peer);
/* List the peer as one with messages, or take it off that list. */
void slu_agent_peer_set_readable(struct sluice_agent_peer *peer);
void slu_agent_peer_clear_readable(struct sluice_agent_peer *peer);
/* Sets whether the agent's epoll set reports the peer's data queue pair. */
void slu_agent_watch_data(struct sluice_agent_peer *peer, bool on);
/* Counts and logs a message of the peer that is refused; drops the peer after many. */
void slu_agent_refuse(struct sluice_agent_peer *peer, uint64_t *counter, const char *what);
bool slu_agent_is_flushed(void *peer);
/* Returns whether unread messages of lost peers take as much as max_left_bytes allows. */
bool slu_agent_left_is_full(const struct sluice_agent *agent);

/* connect.c */
void slu_agent_accept(struct sluice_agent *agent);

/* control.c */
int slu_agent_control_open(struct sluice_agent_peer *peer);
void slu_agent_control_close(struct sluice_agent_peer *peer);
/* Polls and handles messages. Returns whether there were completions. */
bool slu_agent_control_poll(struct sluice_agent_peer *peer);
/* Sends what is due: queued answers, hello, resets, credit, heartbeats, the goodbye. */
void slu_agent_control_flush(struct sluice_agent_peer *peer);
/* Returns whether the peer's window and our send slots have room for one more request. */
bool slu_agent_may_request(const struct sluice_agent_peer *peer);
/* Returns whether the peer's program has room for one more waiting message of bytes. */
bool slu_agent_may_post(const struct sluice_agent_peer *peer, uint64_t bytes);
/* Sends a message; the caller has checked for a free slot. bytes: the body of a TEXT. */
void slu_agent_control_send(struct sluice_agent_peer *peer, struct slu_agent_message *message,
                            const void *bytes);
void slu_agent_answer(struct sluice_agent_peer *peer, uint64_t id, uint32_t code,
                      const char *words);
/* Queues an answer and sends it as soon as there is a free slot. */
void slu_agent_queue_answer(struct sluice_agent_peer *peer, uint64_t id, uint32_t code);
bool slu_agent_is_counted(uint32_t type);

/* requests.c */
/* Sends a request whose answer no caller waits for. Returns false if there is no room. */
bool slu_agent_request_detached(struct sluice_agent_peer *peer, struct slu_agent_message *message);
/* Sends a request once there is room. On 0, *wait is the caller's until slu_agent_wait_end(). */
int slu_agent_request(struct sluice_agent_peer *peer, struct slu_agent_message *message,
                      int64_t until, struct slu_agent_wait **wait);
/* Waits for the answer. On a timeout or wake the request is abandoned and ends by itself. */
int slu_agent_wait_for(struct sluice_agent_peer *peer, struct slu_agent_wait *wait, int64_t until);
void slu_agent_wait_end(struct slu_agent_wait *wait);
/* Does both, for requests that are answered by DONE. */
int slu_agent_request_and_wait(struct sluice_agent_peer *peer, struct slu_agent_message *message,
                               int64_t until);
void slu_agent_handle_answer(struct sluice_agent_peer *peer,
                             const struct slu_agent_message *message);
/* Sends what abandoned requests still need: WITHDRAW, and RELEASE of late regions. */
void slu_agent_clean_waits(struct sluice_agent_peer *peer);
void slu_agent_fail_waits(struct sluice_agent_peer *peer);

/* control_receive.c */
void slu_agent_handle(struct sluice_agent_peer *peer, const uint8_t *bytes, uint32_t count);
/* Counts a message that will wait for our program. Returns false, and refuses it, if full. */
bool slu_agent_count_arrival(struct sluice_agent_peer *peer, uint64_t bytes);
void slu_agent_received(struct sluice_agent_peer *peer, uint64_t bytes);

/* regions.c */
void slu_agent_handle_alloc(struct sluice_agent_peer *peer,
                            const struct slu_agent_message *message);
void slu_agent_handle_release(struct sluice_agent_peer *peer,
                              const struct slu_agent_message *message);
void slu_agent_handle_return(struct sluice_agent_peer *peer,
                             const struct slu_agent_message *message);
void slu_agent_handle_renew(struct sluice_agent_peer *peer,
                            const struct slu_agent_message *message);
struct slu_agent_region *slu_agent_find_region(struct sluice_agent_peer *peer, uint64_t id);
uint32_t slu_agent_registered_access(uint32_t access);
/* Adds a region to the peer's, with a new id. */
void slu_agent_add_region(struct sluice_agent_peer *peer, struct slu_agent_region *region);
/* Begins a lease of that length now; SLUICE_FOREVER: without an end. */
void slu_agent_lend(struct sluice_agent_peer *peer, struct slu_agent_region *region, int64_t lease);
void slu_agent_end_region(struct sluice_agent_peer *peer, struct slu_agent_region *region,
                          bool by_lease);
/* Ends a region and sends REVOKE as soon as the window allows. */
void slu_agent_revoke(struct sluice_agent_peer *peer, struct slu_agent_region *region);
void slu_agent_notify_revoked(struct sluice_agent_peer *peer);
/* Runs jobs, giving up the lock, and answers those that are done. Returns whether any was. */
bool slu_agent_run_jobs(struct sluice_agent_peer *peer);
/* Ends regions whose lease and grace are over, and sets the time of the next. */
void slu_agent_expire(struct sluice_agent_peer *peer);
void slu_agent_end_regions(struct sluice_agent_peer *peer);
/* Frees a returned region and takes it off the quota. */
void slu_agent_end_returned(struct sluice_agent_peer *peer, struct slu_agent_returned *returned);
/* Logs a peer's use of a region that had ended, which failed its data queue pair. */
void slu_agent_log_late_use(struct sluice_agent_peer *peer,
                            const struct sluice_remote_mr *failed_remote);

/* remote_regions.c */
void slu_agent_handle_hand(struct sluice_agent_peer *peer, const struct slu_agent_message *message);
void slu_agent_handle_revoke(struct sluice_agent_peer *peer,
                             const struct slu_agent_message *message);
void slu_agent_end_held(struct sluice_agent_peer *peer);
/* Sends RELEASE for unwanted regions, as many as there is room for. */
void slu_agent_clean_held(struct sluice_agent_peer *peer);
/* Returns what is left of a lease; 0 if it is over. */
int64_t slu_agent_lease_left(const struct sluice_agent_mr *mr);
bool slu_is_agent_mr(const struct sluice_agent_mr *mr);
int slu_not_an_agent_mr(const struct sluice_agent_mr *mr);

/* inbox.c */
void slu_agent_handle_message(struct sluice_agent_peer *peer,
                              const struct slu_agent_message *message);
void slu_agent_handle_announce(struct sluice_agent_peer *peer,
                               const struct slu_agent_message *message);
void slu_agent_handle_withdraw(struct sluice_agent_peer *peer,
                               const struct slu_agent_message *message);
/* Returns the memory of the peer's waiting messages, in bytes. */
uint64_t slu_agent_count_messages(const struct sluice_agent_peer *peer);
/* Drops announced messages, which can no longer be read; with all, complete ones as well. */
void slu_agent_end_messages(struct sluice_agent_peer *peer, bool all);
/* Frees a message that is in no list and has nothing in flight. */
void slu_agent_free_message(struct sluice_agent_message *message);
void slu_agent_remove_message(struct sluice_agent_peer *peer, struct sluice_agent_message *message);

/* long_receive.c */
/* Returns whether a message is not being read, and no earlier one of its peer is in flight. */
bool slu_agent_can_begin(const struct sluice_agent_message *message);
/* Returns whether a receive from any peer may begin to read the message. */
bool slu_agent_may_read(const struct sluice_agent_message *message);
/* Begins to read a message; gives up the lock to allocate. On an error it stays the next one. */
int slu_agent_read(struct sluice_agent_message *message, bool of_any);
/* Keeps memory of a long message or a control queue pair for reuse, or releases it. */
void slu_agent_keep_spare(struct sluice_agent *agent, struct sluice_mr *mr);
/* Returns spare memory of length to most bytes, at most 4 times length; or NULL. */
struct sluice_mr *slu_agent_take_spare(struct sluice_agent *agent, uint64_t length, uint64_t most);
void slu_agent_end_spares(struct sluice_agent *agent);
/* Posts further pieces and ends what is complete. Returns whether anything ended. */
bool slu_agent_continue_reads(struct sluice_agent_peer *peer);
/* Frees a message that is in no list, now or once nothing of it is in flight. */
void slu_agent_drop_message(struct sluice_agent_message *message);
/* Sets a deadline for the pieces in flight, whatever they were posted with. */
void slu_agent_limit_read(struct sluice_agent_message *message);
bool slu_agent_end_dropped(struct sluice_agent_peer *peer);
/* Lets receives from any peer check for a message that may be read now. */
void slu_agent_notify_room(struct sluice_agent *agent);
/* Takes a message out of the bytes that are read for receives from any peer. */
void slu_agent_unreserve(struct sluice_agent_message *message);
/* Moves a peer behind the others that have messages. */
void slu_agent_end_turn(struct sluice_agent_peer *peer);

/* data.c */
int slu_agent_data_open(struct sluice_agent_peer *peer);
void slu_agent_data_close(struct sluice_agent_peer *peer);
void slu_agent_handle_reset(struct sluice_agent_peer *peer,
                            const struct slu_agent_message *message);
void slu_agent_handle_ready(struct sluice_agent_peer *peer,
                            const struct slu_agent_message *message);
/* Connects our end to the peer's endpoint. */
void slu_agent_data_connect(struct sluice_agent_peer *peer, const struct sluice_endpoint *remote);
/* Resets the queue pair if it is ready, which ends all requests in flight; returns whether. */
bool slu_agent_data_end(struct sluice_agent_peer *peer);
/* Polls without serving anything else. Returns whether there were completions. */
bool slu_agent_data_poll(struct sluice_agent_peer *peer);
/*
 * Returns whether the data queue pair must be polled and armed. It is not while idle: that poll
 * is a system call, which takes longer than a short message, and the peer's accesses to our
 * memory, which the transport serves, need not wake a thread. While the peer reads a long
 * message, polling serves it faster.
 */
bool slu_agent_uses_data(const struct sluice_agent_peer *peer);
bool slu_agent_data_failed(const struct sluice_agent_peer *peer);
/* Resets the queue pair if it has failed. Returns whether it did. */
bool slu_agent_data_progress(struct sluice_agent_peer *peer);

/* transfer.c */
/* Handles a completion of the data queue pair. */
void slu_agent_transferred(struct sluice_agent_peer *peer,
                           const struct sluice_completion *completion);
/* Returns 1 if posted, and ended() will be called; 0 if not possible now; or an error. */
int slu_agent_post(struct sluice_agent_peer *peer, struct slu_agent_posted *posted,
                   struct sluice_request *request, int64_t until);
/* Writes the text of a failed completion, and leaves the caller's last error alone. */
void slu_agent_explain(struct sluice_agent_peer *peer, const struct sluice_completion *completion,
                       char *text, size_t size);
/*
 * Does reads, writes and atomics as sluice_agent_submit() does. With mr, nothing is posted once
 * its lease is over. The caller has the lock.
 */
int slu_agent_transfer(struct sluice_agent_peer *peer, const struct sluice_agent_mr *mr,
                       const struct sluice_request *requests, uint32_t count, int64_t until,
                       struct sluice_completion *completions);

#endif
