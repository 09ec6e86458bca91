/* SPDX-License-Identifier: MIT */
/*
 * Admissions let peers in, any number at a time. An admission begins when an incoming connection is
 * accepted. The admission advances whenever the listener is driven, if a whole step of the other
 * side has arrived, the channel has connected, or a time is due. No admission waits for its peer,
 * so a peer that is silent, slow or wrong holds up no other peer.
 *
 *   begun --> answered (their endpoints are here, our side connects) --> finished
 *
 * The descriptors of an admission are in the epoll set of its listener, edge-triggered. The timer
 * of the set expires at the earliest time of all admissions. So a program has to watch only the
 * descriptor of the listener.
 */
#ifndef SLU_ADMISSION_H
#define SLU_ADMISSION_H

#include "channel/object.h"
#include "listener/joint.h"

/*
 * A peer that has been silent for this long is given up if others wait: for the call that waits for
 * it, or for its place.
 */
#define SLU_SILENT_TIME SLUICE_S(10)

struct slu_door;

/* The receiver of the result of an admission. */
enum slu_admission_owner {
    SLU_OF_CALL,   /* a call that waits for this admission */
    SLU_OF_ACCEPT, /* the next sluice_accept() that wants the same; failures are only logged */
    SLU_OF_DOOR,   /* the next slu_door_step(); failures are only logged */
    SLU_OF_PROGRAM /* sluice_listener_admitted() */
};

/*
 * Returns whether this is an owner of admissions without a deadline. A listener limits their
 * number.
 */
static inline bool slu_admission_is_let_in(enum slu_admission_owner owner)
{
    return owner == SLU_OF_ACCEPT || owner == SLU_OF_DOOR;
}

/* How to let an incoming connection in, and which owner gets the result. */
struct slu_admission_plan {
    enum slu_admission_owner owner;
    struct slu_door *door;                    /* NULL: no door */
    struct sluice_pd *pd;                     /* of the channel; NULL: peers */
    const struct sluice_channel_attr *attr;   /* as given by the program */
    const struct sluice_channel_attr *wanted; /* attr in full, for sluice_accept(); or NULL */
    struct sluice_multichannel *multichannel;
    const struct sluice_private_data *own;
    int64_t until;
    int64_t time; /* that the program gave until then; 0: not known */
    uint64_t user_data;
};

struct slu_admission {
    TAILQ_ENTRY(slu_admission) link;  /* in the list of those under way, or finished */
    TAILQ_ENTRY(slu_admission) ready; /* in the list of those to advance */
    bool is_ready;
    enum slu_admission_owner owner;
    struct slu_door *door;
    uint32_t slot; /* index in the listener's table, which events name */
    struct sluice_listener *listener;
    struct sluice_incoming *incoming; /* NULL: finished */
    struct sluice_channel_attr wanted;
    struct slu_joint joint;
    struct slu_passage passage;
    struct slu_channel_user user; /* a user of the multichannel, if there is one */
    uint64_t user_data;
    int64_t until;
    int64_t since;      /* time of the last step */
    int64_t due;        /* when to advance it without an event */
    uint32_t connected; /* number of channels */
    uint32_t spins;     /* short waits for the channel, by waiting calls */
    bool answered;
    bool heard;   /* the last step of the other side has arrived */
    bool watched; /* the channel's descriptor is in the listener's set */
    bool cancelled;
    bool finished;
    int error; /* 0: both sides are connected */
    char text[SLU_TEXT_BYTES];
    struct sluice_endpoint endpoints[]; /* ours and theirs */
};

/*
 * Prepares the channel or peers of the plan. Consumes the incoming connection: the admission owns
 * it, or it was refused. Returns NULL with a text and errno if it was refused.
 */
struct slu_admission *slu_admission_make(struct sluice_incoming *incoming,
                                         const struct slu_admission_plan *plan);
/* Sends the first reply. Returns 0; or an error with a text, and the admission is freed. */
int slu_admission_start(struct slu_admission *admission, const struct slu_admission_plan *plan);
/* Ends an admission under way with an error. The other side receives the thread's text. */
void slu_admission_fail(struct slu_admission *admission, int error);
/* Waits until the admission is finished. A wake of the listener ends it with an error. */
void slu_admission_await(struct slu_admission *admission);
/*
 * Waits shortly for the channel of an admission that has begun to connect: most channels connect
 * within microseconds. Returns false without a wait if none is worth it any more.
 */
bool slu_admission_spin(struct slu_admission *admission);
/* Frees a finished admission. The connected channel or peers belong to the caller. */
void slu_admission_free(struct slu_admission *admission);

/* Initializes the admissions of a new listener. */
void slu_admissions_init(struct sluice_listener *listener);
/* Returns the first finished admission of this owner, or NULL if there is none. */
struct slu_admission *slu_admissions_finished(const struct sluice_listener *listener,
                                              enum slu_admission_owner owner);
/*
 * Handle an event of the slot; handle an event of rdma_cm; and advance all admissions that are
 * ready or due.
 */
void slu_admissions_event(struct sluice_listener *listener, uint32_t slot);
void slu_admissions_rdmacm(struct sluice_listener *listener);
void slu_admissions_step(struct sluice_listener *listener);
/*
 * Ends all admissions of these owners, 1U << SLU_OF_* each. Those under way are refused with this
 * errno value and text. Connected channels and peers that were not taken are closed. Returns how
 * many were refused or closed.
 */
uint32_t slu_admissions_end(struct sluice_listener *listener, unsigned owners, int error,
                            const char *why);

#endif
