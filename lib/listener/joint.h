/* SPDX-License-Identifier: MIT */
/*
 * A joint is what one connect establishes, from prepared to connected: one channel, or new peers of
 * a multichannel. If one of the peers fails, all are undone.
 */
#ifndef SLU_JOINT_H
#define SLU_JOINT_H

#include "listener/passage.h"

/* The lock of a multichannel that other threads use while this one connects a peer of it. */
struct slu_guard {
    void (*enter)(struct slu_guard *guard);
    void (*leave)(struct slu_guard *guard);
};

struct slu_joint {
    struct sluice_pd *pd; /* for one channel; NULL: peers of the multichannel */
    const struct sluice_channel_attr *attr;
    struct sluice_prepared_channel *prepared;
    struct sluice_channel *channel;
    struct sluice_multichannel *multichannel;
    struct slu_duty *duty;   /* of the thread that dials; NULL: none */
    struct slu_guard *guard; /* of the multichannel; NULL: only this thread uses it, or it has the
                                lock already */
    bool rdmacm;             /* rdma_cm connects it */
    uint32_t count, added;
    uint32_t peers[SLUICE_MAX_CONNECT_CHANNELS];
    uint32_t generations
        [SLUICE_MAX_CONNECT_CHANNELS];    /* of the indices: a peer may be removed, and another
                                                  one have its index */
    struct sluice_endpoint *own, *remote; /* the caller's arrays of count each */
};

/* Functions of type int return 0, or a negative errno value with a text. */
/* Checks the program's arguments, before anything waits. */
int slu_joint_check(const struct slu_joint *joint);
int slu_joint_prepare(struct slu_joint *joint);
/*
 * Prepares for an incoming connection. If descriptors run out, drops the listener's connections
 * that have not proven themselves, and tries once more.
 */
int slu_joint_prepare_for(struct slu_joint *joint, struct sluice_incoming *incoming);
/*
 * Returns whether the joint cannot advance now, because the program has a scope of the multichannel
 * open.
 */
bool slu_joint_is_busy(const struct slu_joint *joint);
/*
 * The steps of the accepting side, which wait no longer than the passage allows. slu_joint_offer()
 * sends our endpoints. slu_joint_answer() receives those of the other side, and begins to connect.
 * slu_joint_look() waits for at most timeout until that is done, and returns -ETIMEDOUT if it is
 * not. *heard is set when the last step of the other side arrives, which reports success or the
 * reason of a failure.
 */
int slu_joint_offer(struct slu_joint *joint, struct slu_passage *passage);
int slu_joint_answer(struct slu_joint *joint, struct slu_passage *passage);
int slu_joint_look(const struct slu_joint *joint, struct slu_passage *passage, uint32_t index,
                   int64_t timeout, bool *heard);
/* Fails with the reason why a peer was not connected in time. */
int slu_joint_fail_late(const struct slu_joint *joint, const struct slu_passage *passage,
                        uint32_t index);
/* Returns 0; or -ENOTCONN if the program has removed the peer, whose index may be in use again. */
int slu_joint_check_peer(const struct slu_joint *joint, uint32_t index);
/*
 * Returns the engine's peer of a prepared channel; and its queue pair, or the first of several,
 * which is the only one with messages. A queue pair is NULL if the peer has failed.
 */
struct slu_peer *slu_joint_peer(const struct slu_joint *joint, uint32_t index);
struct slu_qp *slu_joint_qp(const struct slu_joint *joint, uint32_t index);
struct slu_tcontext *slu_joint_context(const struct slu_joint *joint);
/* Shakes hands with one peer, by its endpoint in remote. */
int slu_joint_shake(struct slu_joint *joint, uint32_t index);
/*
 * Makes a new queue pair for a peer that is still prepared: on iWARP a failed attempt to connect
 * leaves its queue pair unusable.
 */
int slu_joint_renew(struct slu_joint *joint, uint32_t index);
/*
 * Connects a prepared joint on the side that dialed and has a passage. Undoes the joint on failure.
 */
int slu_joint_connect(struct slu_joint *joint, struct slu_passage *passage);
/*
 * Closes or removes all that the joint has so far, even while the program has a scope of the
 * multichannel open.
 */
void slu_joint_undo(struct slu_joint *joint);

#endif
