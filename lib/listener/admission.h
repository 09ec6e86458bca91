/* SPDX-License-Identifier: MIT */
/*
 * Letting peers in, any number at a time. An admission begins when an incoming connection is
 * accepted, and goes on whenever the listener is driven: by then a whole step of the other side
 * has arrived, the channel has connected, or a time has come. Nothing here waits for a peer, so a
 * peer that is silent, slow or wrong holds up no other one.
 *
 *     begun --> answered (their endpoints are here, our side connects) --> finished
 *
 * The descriptors of an admission are in the epoll set of its listener, edge-triggered; the timer
 * of the set has the earliest of all times. So the descriptor of the listener is all that a
 * program has to watch.
 */
#ifndef SLU_ADMISSION_H
#define SLU_ADMISSION_H

#include "channel/object.h"
#include "listener/joint.h"

struct slu_door;

/* That gets the result. */
enum slu_admission_owner {
    SLU_OF_CALL,   /* a call that waits for this one */
    SLU_OF_ACCEPT, /* the next sluice_accept() that wants the same; failures are logged alone */
    SLU_OF_DOOR,   /* the same of a door */
    SLU_OF_PROGRAM /* sluice_listener_admitted() */
};

/* Admissions without a deadline: a listener limits how many there are at a time. */
static inline bool slu_admission_is_let_in(enum slu_admission_owner owner)
{
    return owner == SLU_OF_ACCEPT || owner == SLU_OF_DOOR;
}

/* What is to become of an incoming connection. */
struct slu_admission_plan {
    enum slu_admission_owner owner;
    struct slu_door *door;                    /* NULL: it is no door's */
    struct sluice_pd *pd;                     /* of a channel; NULL: peers */
    const struct sluice_channel_attr *attr;   /* as the program gave it */
    const struct sluice_channel_attr *wanted; /* the same in full, of sluice_accept(); or NULL */
    struct sluice_multichannel *multichannel;
    const struct sluice_private_data *own;
    int64_t until;
    uint64_t user_data;
};

struct slu_admission {
    TAILQ_ENTRY(slu_admission) link;  /* of those under way, or finished */
    TAILQ_ENTRY(slu_admission) ready; /* of those that have something to do */
    bool is_ready;
    enum slu_admission_owner owner;
    struct slu_door *door;
    uint32_t slot; /* in the table of the listener, which its events name */
    struct sluice_listener *listener;
    struct sluice_incoming *incoming; /* NULL: it is finished */
    struct sluice_channel_attr wanted;
    struct slu_joint joint;
    struct slu_passage passage;
    struct slu_channel_user user; /* of the multichannel, if there is one */
    uint64_t user_data;
    int64_t until;
    int64_t since;      /* its last step */
    int64_t due;        /* when it is to be looked at, though nothing comes */
    uint32_t connected; /* channels */
    uint32_t spins;     /* short waits for a channel, by calls that wait */
    bool answered;
    bool heard;   /* the other side says that its channels are connected */
    bool watched; /* the set of the listener has the descriptor of the channel */
    bool cancelled;
    bool finished;
    int error; /* 0: the other side and this one are connected */
    char text[SLU_TEXT_BYTES];
    struct sluice_endpoint endpoints[]; /* ours and theirs */
};

/*
 * Prepares what the plan wants. The incoming connection is consumed: it is the admission's, or it
 * was refused: NULL and errno, with a text.
 */
struct slu_admission *slu_admission_make(struct sluice_incoming *incoming,
                                         const struct slu_admission_plan *plan);
/* Says the first words. 0; or an error with a text, and the admission is gone. */
int slu_admission_start(struct slu_admission *admission, const struct slu_admission_plan *plan);
/* Ends one that is under way, with the error of the thread's text, which the other side hears. */
void slu_admission_fail(struct slu_admission *admission, int error);
/* Waits until it is finished, or a wake of the listener ends it. */
void slu_admission_await(struct slu_admission *admission);
/*
 * A short wait for the channel that began to connect last, which mostly is connected within
 * microseconds. False: there is none that is still worth it.
 */
bool slu_admission_spin(struct slu_admission *admission);
/* Frees one that is finished; what is connected is the caller's. */
void slu_admission_free(struct slu_admission *admission);

/* What a listener does with them: once, when it is made. */
void slu_admissions_init(struct sluice_listener *listener);
/* The first that is finished, of that owner; NULL: none is. */
struct slu_admission *slu_admissions_finished(const struct sluice_listener *listener,
                                              enum slu_admission_owner owner);
/* An event of the slot; that something happened over rdma_cm; and time passed. */
void slu_admissions_event(struct sluice_listener *listener, uint32_t slot);
void slu_admissions_rdmacm(struct sluice_listener *listener);
void slu_admissions_step(struct sluice_listener *listener);
/*
 * All of these owners, 1U << SLU_OF_* each, end: those under way are refused, with the errno value
 * and the words, and what nobody has taken is closed. How many of either.
 */
uint32_t slu_admissions_end(struct sluice_listener *listener, unsigned owners, int error,
                            const char *why);

#endif
