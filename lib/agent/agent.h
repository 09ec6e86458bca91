/* SPDX-License-Identifier: MIT */
/*
 * An agent and its peers. One lock is around all of it: whoever has it may use every channel.
 * It is given up while somebody sleeps, and for what takes long: allocating memory, letting
 * peers in, and connecting.
 *
 *   message    the form of what is said; stands on nothing of this
 *   control    saying it: slots, posted receives, the window of who says it
 *   asked      requests of ours that wait for their answers
 *   heard      what becomes of each message of a peer
 *   regions    memory of ours that peers have: quota, leases, the end of it
 *   hand       memory of the program's that is handed over, and comes back
 *   held       memory of peers that we have
 *   inbox      messages: sending, and receiving whole ones
 *   staging    memory that long ones are copied to, for the peer to read
 *   reading    long ones, which are read beside all else
 *   data       the data queue pair, and making it anew
 *   transfer   reads, writes and atomics on it
 *   peer       peers: how they are driven, and are lost
 *   meeting    how they come
 *   drive      who waits, who sleeps and who serves
 *   helper     the thread that serves while the program is elsewhere
 *   agent      the agent itself
 */
#ifndef SLU_AGENT_H
#define SLU_AGENT_H

#include <sys/queue.h>

#include <sluice/agent.h>
#include <sluice/log.h>

#include "agent/message.h"
#include "base/base.h"

struct slu_engine;

/* Requests of a side that are not answered yet; the other one has answers for so many. */
#define SLU_AGENT_WAITS 32
/* Receives for what has no place in the window: credit, resets, the greeting, the goodbye. */
#define SLU_AGENT_SPARE 24
/* Send slots that requests of the program leave to answers. */
#define SLU_AGENT_RESERVE 8
/* Requests on their way of one list of reads and writes, and of all on a data queue pair. */
#define SLU_AGENT_BATCH 16
#define SLU_AGENT_TRANSFERS 64
/* Of a long message, on their way. */
#define SLU_AGENT_PIECES 4
/* Memory of long messages that were freed, and of the control queue pairs of peers that are lost,
   is kept for later ones: so many regions, each up to so many bytes. No peer ever has a right to
   it. */
#define SLU_AGENT_SPARES 4
#define SLU_AGENT_SPARE_BYTES (UINT64_C(4) << 20)
/* The owner revokes a region so long after its lease. */
#define SLU_AGENT_GRACE SLUICE_S(1)
/* Regions that are over, and are remembered for the log, which tells of late use. */
#define SLU_AGENT_PAST 32
/* A peer that has sent so many wrong messages is left. */
#define SLU_AGENT_PATIENCE 64

/* A request of ours: taken until it is answered, though nobody may wait for it any more. */
struct slu_agent_wait {
    uint64_t id; /* 0: this one is free */
    uint32_t type;
    bool done;
    bool abandoned;           /* who asked has gone */
    bool withdraw;            /* the message that was announced: the peer is to be told */
    uint64_t give_back;       /* a region that came too late: its name; 0: none */
    struct sluice_mr *source; /* of a message that was announced */
    int64_t asked;            /* shortly before */
    int error;                /* negative, with words; the rest holds if it is 0 */
    char words[SLU_AGENT_WORDS + 1];
    struct sluice_remote_mr remote;
    uint64_t region;
    int64_t lease;
    uint32_t access;
};

/* Memory of ours that a peer has. */
struct slu_agent_region {
    LIST_ENTRY(slu_agent_region) links;
    uint64_t id;
    struct sluice_mr *mr; /* the registration that is the peer's */
    bool allocated;       /* for it; else the memory is the program's */
    uint64_t pages;       /* bytes of these that the quota has; 0 of the program's */
    struct sluice_remote_mr remote;
    uint32_t access;
    int64_t expires; /* on our clock; SLUICE_FOREVER: never */
};

/* One that is over. */
struct slu_agent_past {
    uint64_t id;
    struct sluice_remote_mr remote;
    int64_t expired;
    bool by_lease;
};

/* What takes long, and is done without the lock: memory for a peer, or the copy of a region. */
struct slu_agent_job {
    TAILQ_ENTRY(slu_agent_job) links;
    uint64_t id; /* of the request */
    uint64_t bytes, pages;
    uint32_t access;
    int64_t lease;
    struct slu_agent_region *from; /* to be copied; NULL: new memory */
    bool begun, done;
    int error;
    struct sluice_mr *mr; /* what was made */
};

/* A region that has come back, for the program. */
struct slu_agent_returned {
    STAILQ_ENTRY(slu_agent_returned) links;
    struct sluice_agent_local local;
    uint64_t pages; /* that the peer's quota has until it is received; 0: the program's memory */
};

struct sluice_agent_mr {
    uint32_t magic;
    struct sluice_agent_peer *peer;
    TAILQ_ENTRY(sluice_agent_mr) links; /* in the list of its peer, held or offered */
    uint64_t id;
    struct sluice_remote_mr remote;
    uint32_t access;
    int64_t expires;
    bool over; /* the owner has taken it back, or is lost */
};

/* What was posted on a data queue pair; the user data of its completion is its address. */
struct slu_agent_posted {
    void (*ended)(struct sluice_agent_peer *peer, struct slu_agent_posted *posted,
                  const struct sluice_completion *completion);
    struct sluice_remote_mr remote;
};

/* A part of a long message, on its way. */
struct slu_agent_piece {
    struct slu_agent_posted posted;
    struct sluice_agent_message *message; /* NULL: free */
    uint64_t length;
};

/* A long message that is being read, in the order of its bytes. */
struct slu_agent_reading {
    struct sluice_mr *mr;
    uint64_t posted, done; /* bytes */
    uint32_t flying;       /* pieces */
    bool making;           /* its memory, without the lock */
    bool broken;           /* a piece has failed: from done on it is read again */
    bool late, gone;       /* for its turn was over; for there is no such memory of its sender's */
    int64_t until;         /* its turn */
    int64_t bound;         /* of what is on its way, once it was withdrawn or dropped; or 0 */
    int failure;           /* any other: negative, with a text */
    int error;             /* it, for who asks for the message next: nothing is on its way */
    char text[SLU_TEXT_BYTES];
    struct slu_agent_piece pieces[SLU_AGENT_PIECES];
};

struct sluice_agent_message {
    uint32_t magic;
    struct sluice_agent_peer *peer;
    TAILQ_ENTRY(sluice_agent_message) links;
    uint64_t length;
    uint8_t *bytes;
    struct sluice_mr *mr; /* of one that was read; else the bytes are behind the struct */
    uint64_t announced;   /* the id of that request; 0: it is here */
    struct sluice_remote_mr remote;
    struct slu_agent_reading *reading;
    int64_t earliest;  /* it is read again for who receives of any; 0: there is no pause */
    uint64_t reserved; /* of the bytes of the agent that are read for any: those of its memory */
    bool withdrawn;
    bool dropped; /* it is nobody's, and ends once nothing of it is on its way */
};

TAILQ_HEAD(slu_agent_mrs, sluice_agent_mr);
TAILQ_HEAD(slu_agent_messages, sluice_agent_message);

enum slu_agent_data_state {
    SLU_AGENT_DATA_NONE,
    SLU_AGENT_DATA_MADE,      /* our end; the other one's endpoint is still to come */
    SLU_AGENT_DATA_CONNECTED, /* and the other one has still to say that it is */
    SLU_AGENT_DATA_READY
};

/* The data queue pair of a peer. */
struct slu_agent_data {
    struct sluice_multichannel *wire; /* of one peer */
    enum slu_agent_data_state state;
    uint32_t generation;
    struct sluice_endpoint own;
    struct sluice_endpoint remote;
    uint32_t remote_generation; /* of that endpoint; 0: none waits */
    bool say_reset, say_ready;
    bool ignored;     /* the set of the agent does not tell of it */
    bool lost_peer;   /* it failed because the peer did not answer */
    int64_t since;    /* it was made */
    int64_t earliest; /* the next one is made */
    int64_t patience; /* until then our work on it may end by itself; 0: it need not yet */
    bool ours;        /* work of ours has failed on it */
    struct sluice_remote_mr amiss; /* what was named when it failed */
    uint32_t transfers;            /* on their way */
};

enum slu_agent_peer_state {
    SLU_AGENT_GREETING, /* it has not said hello */
    SLU_AGENT_OPEN,
    SLU_AGENT_OVER
};

struct sluice_agent_peer {
    uint32_t magic;
    uint32_t references; /* the agent's, the program's, and of what came of it */
    struct sluice_agent *agent;
    TAILQ_ENTRY(sluice_agent_peer) links;     /* of the agent's */
    TAILQ_ENTRY(sluice_agent_peer) fresh;     /* the program does not have it yet */
    TAILQ_ENTRY(sluice_agent_peer) bearing;   /* there are messages of it */
    TAILQ_ENTRY(sluice_agent_peer) offering;  /* there are regions that it has handed over */
    TAILQ_ENTRY(sluice_agent_peer) returning; /* there are some of ours that it has sent back */
    LIST_ENTRY(sluice_agent_peer) unarmed;
    bool is_fresh, is_bearing, is_offering, is_returning, is_unarmed, is_held, is_kept;
    bool is_stirred; /* something was begun, or is due: it is to be served though nothing comes */
    bool came;       /* to our listener */
    uint32_t place, serial;
    enum slu_agent_peer_state state;
    uint64_t kept_bytes; /* it counts for, if it is kept */
    int64_t since;
    int64_t due; /* of its channels, as armed */
    int error;
    int failed; /* the first error of its control queue pair, which is still to be told of; or 0 */
    char why[256];
    char address[64];
    uint64_t refused, reconnects;
    uint32_t level;
    struct slu_agent_hello hello; /* its */
    uint32_t eager;               /* of both */
    bool is_near;                 /* another process of this host, that maps memory of ours */
    uint64_t staged;              /* bytes of the longest message that is copied for it */

    /* control */
    struct sluice_channel *control;
    struct sluice_mr *slab;
    uint8_t *bytes;
    uint32_t slot_bytes, receives, sends;
    uint32_t *free_sends, free_count;
    struct {
        uint32_t slot, length;
    } * pending; /* that have come, and are not looked at yet: a ring of receives */
    uint32_t first_pending, pending_count;
    uint32_t sent, sent_taken;        /* by us, in its window; and how many of them it has taken */
    uint32_t taken, told_taken;       /* of its; and what we have said of that */
    uint32_t posted, posted_received; /* messages and regions for its program; that this has */
    uint64_t posted_bytes, posted_received_bytes;
    uint32_t arrived, received, told_received; /* for our program */
    uint64_t arrived_bytes, received_bytes, told_received_bytes;
    int64_t last_said;
    bool pinged, say_bye, said_bye;
    struct {
        uint64_t id;
        uint32_t code;
    } owed[SLU_AGENT_WAITS]; /* answers that had no slot */
    uint32_t owed_count;

    struct slu_agent_wait waits[SLU_AGENT_WAITS];
    uint64_t last_id;
    /* Memory for the next long message; NULL: it is in use, or not made. */
    struct sluice_mr *_Atomic staging;
    uint32_t being_read; /* long messages of calls that wait for the peer to have read them */

    LIST_HEAD(, slu_agent_region) regions;
    LIST_HEAD(, slu_agent_region) revoked; /* over, and the peer is still to be told */
    uint32_t region_count;
    uint64_t region_bytes; /* allocated, being so, and returned but not received */
    uint32_t allocated_count;
    uint64_t last_region;
    struct slu_agent_past past[SLU_AGENT_PAST];
    uint32_t past_count;
    TAILQ_HEAD(, slu_agent_job) jobs;
    uint32_t job_count;
    STAILQ_HEAD(, slu_agent_returned) returned;

    struct slu_agent_mrs held, offered;
    uint32_t held_count;
    struct slu_agent_messages messages, dropped; /* that wait; that are still being read */
    struct slu_agent_mrs unwanted;               /* still to be given back */
    struct slu_agent_data data;
};

TAILQ_HEAD(slu_agent_peers, sluice_agent_peer);

/* The thread of an agent beside its program; helper.c. */
struct slu_agent_helper {
    pthread_cond_t turn; /* it dozes on this */
    uint64_t calls;      /* of the program, and rounds of its waits: it is at work */
    int64_t armed;       /* when a call of the program last armed channels for a sleeping helper */
    bool sleeps;         /* on the set */
    bool roused;         /* and was woken, but has not yet had the lock */
    bool parked;         /* it dozes until a call of the program gives up the lock */
};

struct sluice_agent {
    uint32_t magic;
    uint32_t references; /* the program's, and those of peers */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sluice_pd *pd;
    struct sluice_agent_attr attr;
    char *secret;
    struct sluice_channel_attr control_attr, data_attr;
    int epoll, event;
    uint32_t inside; /* calls */
    bool closed;
    bool ending;  /* and calls that waited then still end */
    bool driven;  /* somebody sleeps on the set */
    bool crowded; /* other threads wait for this processor */
    bool watched; /* a loop of the program does */
    int64_t sleeps_until;
    uint32_t followers; /* who sleep on the condition */
    bool has_thread;
    pthread_t thread;
    struct slu_agent_helper helper;
    atomic_uint wakes;
    uint32_t wakes_seen;
    bool news; /* for the program, since it was armed last */
    int64_t next_due, looked;
    struct sluice_listener *listener;
    bool accepting, listener_ready;
    struct slu_agent_peers peers, fresh, bearing, offering, returning;
    struct slu_agent_peers kept; /* lost ones whose messages wait for the program */
    LIST_HEAD(, sluice_agent_peer) unarmed;
    struct sluice_agent_peer **places;
    uint32_t place_count, last_serial;
    uint32_t connected;     /* or greeting */
    uint64_t reading_bytes; /* of long messages that are read for who receives of any */
    struct sluice_mr *spares[SLU_AGENT_SPARES]; /* NULL: none */
    struct sluice_agent_info info;
};

/* agent.c */
bool slu_is_agent(const struct sluice_agent *agent);
int slu_not_an_agent(const struct sluice_agent *agent);
/* Around each call: with the lock, and counted; the last one that has something frees it. */
void slu_agent_enter(struct sluice_agent *agent);
void slu_agent_leave(struct sluice_agent *agent);
int slu_agent_check_time(int64_t time, const char *what);
/* Of a call that receives of that peer, or of any: NULL. */
int slu_agent_check_receive(const struct sluice_agent *agent, const struct sluice_agent_peer *peer,
                            int64_t timeout);

/* drive.c: all with the lock. */
/* Serves what is to be served now. Whether there was anything. */
bool slu_agent_progress(struct sluice_agent *agent);
/* Something changed for who waits. */
void slu_agent_tell(struct sluice_agent *agent);
/* At that time somebody has to look. */
void slu_agent_due(struct sluice_agent *agent, int64_t when);
/* The channels of a peer were used: they are to be armed again. */
void slu_agent_unarm(struct sluice_agent_peer *peer);
/* Likewise, and it is to be served. */
void slu_agent_touch(struct sluice_agent_peer *peer);
/*
 * Serves one peer and no other, which is enough for most calls. False: others have not been looked
 * at for long, and all are to be served.
 */
bool slu_agent_serve_one(struct sluice_agent_peer *peer);
/*
 * Until ready() says so, driving the agent; 0, or -ETIMEDOUT (it is then); -EINTR (if wakes
 * count here) or -ECANCELED, with a text.
 */
int slu_agent_await(struct sluice_agent *agent, bool (*ready)(void *argument), void *argument,
                    int64_t until, bool wakes);
/* Arms all; 1: something is to be done first; else *due is when to look at the latest. */
int slu_agent_arm_all(struct sluice_agent *agent, int64_t *due);
/* Before the lock is given up: who sleeps must not miss what the caller has begun. */
void slu_agent_settle(struct sluice_agent *agent);
/* Whoever sleeps on the set looks; from anywhere. */
void slu_agent_rouse(const struct sluice_agent *agent);
/*
 * A step of a wait that spins since *begun, for which there was nothing now. False: it has spun for
 * long enough, and is to sleep.
 */
bool slu_agent_spin(struct sluice_agent *agent, int64_t *begun, int64_t now);
/* Until something comes or is due, or then; nobody else is asleep on the set. */
void slu_agent_sleep(struct sluice_agent *agent, int64_t until);

/* helper.c: likewise. */
int slu_agent_start_helper(struct sluice_agent *agent);
/* A call gives up the lock while the helper dozes until one does: it looks whether it is needed. */
void slu_agent_unpark_helper(struct sluice_agent *agent);
/* Whether the helper will look by itself, so that nothing need be armed for it. */
bool slu_agent_helper_looks(struct sluice_agent *agent);

/* peer.c */
bool slu_is_agent_peer(const struct sluice_agent_peer *peer);
int slu_not_an_agent_peer(const struct sluice_agent_peer *peer);
/* A peer of this control channel, which it takes; NULL and errno. */
struct sluice_agent_peer *slu_agent_peer_make(struct sluice_agent *agent,
                                              struct sluice_channel *control, bool came);
/* Where it is, in words. */
void slu_agent_peer_locate(struct sluice_agent_peer *peer);
void slu_agent_peer_hold(struct sluice_agent_peer *peer);
void slu_agent_peer_drop(struct sluice_agent_peer *peer);
bool slu_agent_peer_progress(struct sluice_agent_peer *peer);
/* It is over: all that it had, and that waits for it, ends. error: negative, or 0. */
void slu_agent_lose(struct sluice_agent_peer *peer, int error, const char *format, ...)
    SLU_PRINTF(3, 4);
/* 0, or -ENOTCONN with a text that tells why; -ECANCELED if the agent is closed. */
int slu_agent_peer_check(const struct sluice_agent_peer *peer);
/* It has something for the program. */
void slu_agent_peer_bears(struct sluice_agent_peer *peer);
void slu_agent_peer_bore(struct sluice_agent_peer *peer);
/* Whether the set of the agent tells what comes over its data queue pair. */
void slu_agent_watch_data(struct sluice_agent_peer *peer, bool on);
/* A message of it is refused, and counted there. */
void slu_agent_refuse(struct sluice_agent_peer *peer, uint64_t *counter, const char *what);
bool slu_agent_quiet(void *peer);
/* What peers have left here unread is as much as may be. */
bool slu_agent_has_left_much(const struct sluice_agent *agent);

/* meeting.c */
/* Lets in who comes. */
void slu_agent_accept(struct sluice_agent *agent);

/* control.c */
int slu_agent_control_open(struct sluice_agent_peer *peer);
void slu_agent_control_close(struct sluice_agent_peer *peer);
/* Whether something came or went. */
bool slu_agent_control_poll(struct sluice_agent_peer *peer);
/* What is due without anybody asking: hello, credit, resets, signs of life. */
void slu_agent_control_say(struct sluice_agent_peer *peer);
/* Whether the program may say one more, that is counted by the window. */
bool slu_agent_may_ask(const struct sluice_agent_peer *peer);
/* Whether its program has room for one more that waits, of so many bytes. */
bool slu_agent_may_post(const struct sluice_agent_peer *peer, uint64_t bytes);
/* Says it; there is a slot. bytes are the body of MESSAGE. */
void slu_agent_say(struct sluice_agent_peer *peer, struct slu_agent_message *message,
                   const void *bytes);
void slu_agent_answer(struct sluice_agent_peer *peer, uint64_t id, uint32_t code,
                      const char *words);
/* An answer from where there may be no slot: as soon as there is one. */
void slu_agent_owe(struct sluice_agent_peer *peer, uint64_t id, uint32_t code);
bool slu_agent_is_counted(uint32_t type);

/* asked.c */
/* Asks what nobody waits for the answer of; false: there is no room to. */
bool slu_agent_ask_nobody(struct sluice_agent_peer *peer, struct slu_agent_message *message);
/*
 * Asks, as soon as that is possible. 0, and *wait is the caller's until slu_agent_wait_end();
 * or an error with a text.
 */
int slu_agent_ask(struct sluice_agent_peer *peer, struct slu_agent_message *message, int64_t until,
                  struct slu_agent_wait **wait);
/* Until it is answered: 0, or an error with a text; the request is then left to itself. */
int slu_agent_wait_for(struct sluice_agent_peer *peer, struct slu_agent_wait *wait, int64_t until);
void slu_agent_wait_end(struct slu_agent_wait *wait);
/* Both, of what is answered by DONE. */
int slu_agent_ask_and_wait(struct sluice_agent_peer *peer, struct slu_agent_message *message,
                           int64_t until);
void slu_agent_answered(struct sluice_agent_peer *peer, const struct slu_agent_message *message);
/* What is still to be said for those who have gone. */
void slu_agent_clean_waits(struct sluice_agent_peer *peer);
void slu_agent_fail_waits(struct sluice_agent_peer *peer);

/* heard.c */
void slu_agent_hear(struct sluice_agent_peer *peer, const uint8_t *bytes, uint32_t count);
/* Whether there is room for one more that waits for our program; if not it is refused. */
bool slu_agent_arrive(struct sluice_agent_peer *peer, uint64_t bytes);
void slu_agent_received(struct sluice_agent_peer *peer, uint64_t bytes);

/* regions.c */
void slu_agent_hear_alloc(struct sluice_agent_peer *peer, const struct slu_agent_message *message);
void slu_agent_hear_release(struct sluice_agent_peer *peer,
                            const struct slu_agent_message *message);
void slu_agent_hear_return(struct sluice_agent_peer *peer, const struct slu_agent_message *message);
void slu_agent_hear_renew(struct sluice_agent_peer *peer, const struct slu_agent_message *message);
struct slu_agent_region *slu_agent_find_region(struct sluice_agent_peer *peer, uint64_t id);
uint32_t slu_agent_registered_access(uint32_t access);
/* The peer has it from now on, under a new name. */
void slu_agent_add_region(struct sluice_agent_peer *peer, struct slu_agent_region *region);
/* From now on, and for so long; or SLUICE_FOREVER. */
void slu_agent_lend(struct sluice_agent_peer *peer, struct slu_agent_region *region, int64_t lease);
void slu_agent_end_region(struct sluice_agent_peer *peer, struct slu_agent_region *region,
                          bool by_lease);
/* Ends it, and tells the peer, as soon as there is room to. */
void slu_agent_revoke(struct sluice_agent_peer *peer, struct slu_agent_region *region);
void slu_agent_tell_revoked(struct sluice_agent_peer *peer);
/* Does what takes long, giving up the lock; and answers what is done. */
bool slu_agent_work(struct sluice_agent_peer *peer);
/* Ends what is over; and tells when to look again. */
void slu_agent_expire(struct sluice_agent_peer *peer);
void slu_agent_end_regions(struct sluice_agent_peer *peer);
/* What was sent back is the program's, or nobody's: the quota has it no more. */
void slu_agent_end_returned(struct sluice_agent_peer *peer, struct slu_agent_returned *returned);
/* The peer named this when its data queue pair failed. */
void slu_agent_tell_late(struct sluice_agent_peer *peer, const struct sluice_remote_mr *amiss);

/* held.c */
void slu_agent_hear_hand(struct sluice_agent_peer *peer, const struct slu_agent_message *message);
void slu_agent_hear_revoke(struct sluice_agent_peer *peer, const struct slu_agent_message *message);
void slu_agent_end_held(struct sluice_agent_peer *peer);
/* Gives back what nobody wants, as far as there is room to say it. */
void slu_agent_clean_held(struct sluice_agent_peer *peer);
/* What is left of a lease; 0: nothing. */
int64_t slu_agent_lease_left(const struct sluice_agent_mr *mr);
bool slu_is_agent_mr(const struct sluice_agent_mr *mr);
int slu_not_an_agent_mr(const struct sluice_agent_mr *mr);

/* inbox.c */
void slu_agent_hear_message(struct sluice_agent_peer *peer,
                            const struct slu_agent_message *message);
void slu_agent_hear_announce(struct sluice_agent_peer *peer,
                             const struct slu_agent_message *message);
void slu_agent_hear_withdraw(struct sluice_agent_peer *peer,
                             const struct slu_agent_message *message);
/* The memory of those that wait. */
uint64_t slu_agent_count_messages(const struct sluice_agent_peer *peer);
/* Those that can be read no more go; all: the others as well. */
void slu_agent_end_messages(struct sluice_agent_peer *peer, bool all);
/* It is out of its list, and nothing of it is on its way. */
void slu_agent_free_message(struct sluice_agent_message *message);
void slu_agent_remove_message(struct sluice_agent_peer *peer, struct sluice_agent_message *message);

/* reading.c */
/* Nobody reads it, nor is anything of an earlier one on its way. */
bool slu_agent_can_begin(const struct sluice_agent_message *message);
/* Whether it is long, that is so, and who receives of any may begin with it. */
bool slu_agent_may_read(const struct sluice_agent_message *message);
/*
 * Makes its memory, giving up the lock, and lets it be read from then on; or tells why that has
 * failed before. 0; an error with a text: it is the next one still.
 */
int slu_agent_read(struct sluice_agent_message *message, bool of_any);
/* Ends memory of a long message, or of a control queue pair, or keeps it for another one. */
void slu_agent_spare(struct sluice_agent *agent, struct sluice_mr *mr);
/*
 * Kept memory that fits, is no longer than most and not much too large; else NULL, and the room of
 * one is free again.
 */
struct sluice_mr *slu_agent_take_spare(struct sluice_agent *agent, uint64_t length, uint64_t most);
void slu_agent_end_spares(struct sluice_agent *agent);
/* Goes on with what was begun. Whether something has come to its end. */
bool slu_agent_read_on(struct sluice_agent_peer *peer);
/* It is out of its list, and is to go: now, or once nothing of it is on its way. */
void slu_agent_drop_message(struct sluice_agent_message *message);
/* What is on its way of it has its time from now on, whatever it was posted with. */
void slu_agent_bound(struct sluice_agent_message *message);
/* Whether any has gone. */
bool slu_agent_end_dropped(struct sluice_agent_peer *peer);
/* Who receives of any may begin with another one now. */
void slu_agent_tell_of_room(struct sluice_agent *agent);
/* It waits for nobody any more. */
void slu_agent_unreserve(struct sluice_agent_message *message);
/* The others that have something come before its peer does again. */
void slu_agent_end_turn(struct sluice_agent_peer *peer);

/* data.c */
int slu_agent_data_open(struct sluice_agent_peer *peer);
void slu_agent_data_close(struct sluice_agent_peer *peer);
void slu_agent_hear_reset(struct sluice_agent_peer *peer, const struct slu_agent_message *message);
void slu_agent_hear_ready(struct sluice_agent_peer *peer, const struct slu_agent_message *message);
/* The other end's first endpoint. */
void slu_agent_data_connect(struct sluice_agent_peer *peer, const struct sluice_endpoint *remote);
/* Makes it anew if it is ready, so that what is on its way ends. Whether that is done. */
bool slu_agent_data_end(struct sluice_agent_peer *peer);
/* Takes completions alone. Whether there were any. */
bool slu_agent_data_poll(struct sluice_agent_peer *peer);
/*
 * Whether there is something to poll and to wait for. A poll of one that rests is a system call,
 * which is more than a short message takes; and what the peer does in memory of ours, which the
 * transport serves, is no reason to wake anybody. While the peer reads a long message, a poll
 * serves it quicker.
 */
bool slu_agent_uses_data(const struct sluice_agent_peer *peer);
/* Whether it is to be made anew. */
bool slu_agent_data_failed(const struct sluice_agent_peer *peer);
/* Makes it anew if it has failed. Whether that was so. */
bool slu_agent_data_progress(struct sluice_agent_peer *peer);

/* transfer.c */
/* One that was posted is complete. */
void slu_agent_transferred(struct sluice_agent_peer *peer,
                           const struct sluice_completion *completion);
/* 1: posted is on its way, until it ends; 0: not now; or an error. until: of the request. */
int slu_agent_post(struct sluice_agent_peer *peer, struct slu_agent_posted *posted,
                   struct sluice_request *request, int64_t until);
/* Why it failed, in words. */
void slu_agent_explain(struct sluice_agent_peer *peer, const struct sluice_completion *completion,
                       char *text, size_t size);
/*
 * Reads, writes and atomics with the lock held; as sluice_agent_submit(). mr: nothing is posted
 * once its lease is over; or NULL.
 */
int slu_agent_transfer(struct sluice_agent_peer *peer, const struct sluice_agent_mr *mr,
                       const struct sluice_request *requests, uint32_t count, int64_t until,
                       struct sluice_completion *completions);

#endif
