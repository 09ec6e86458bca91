/* SPDX-License-Identifier: MIT */
/*
 * What is connected: one channel, or new peers of a multichannel, on their way from
 * prepared to heard. Until all is done they are undone together.
 */
#ifndef SLU_JOINT_H
#define SLU_JOINT_H

#include "listener/passage.h"

struct slu_joint {
    struct sluice_pd *pd; /* of one channel; NULL: peers of the multichannel */
    const struct sluice_channel_attr *attr;
    struct sluice_prepared_channel *prepared;
    struct sluice_channel *channel;
    struct sluice_multichannel *multichannel;
    uint32_t count, added;
    uint32_t peers[SLUICE_CONNECT_MOST];
    uint32_t generations[SLUICE_CONNECT_MOST]; /* of the indices: a peer may be removed, and another
                                                  one have its index */
    struct sluice_endpoint *own, *remote;      /* the caller's, with room for count each */
};

/* Each returns 0, or a negative errno with a text. */
/* Before anything waits: what the program gave. */
int slu_joint_check(const struct slu_joint *joint);
int slu_joint_prepare(struct slu_joint *joint);
/* For one who came: strangers at the same door may have what the channel needs. */
int slu_joint_prepare_for(struct slu_joint *joint, struct sluice_incoming *incoming);
/* Whether nothing can be done with it now: the program has a scope of the multichannel open. */
bool slu_joint_is_busy(const struct slu_joint *joint);
/*
 * The steps of who accepts, which wait for no longer than the passage may: says our endpoints;
 * hears theirs, and begins to connect; and looks whether that is done, for timeout at most:
 * -ETIMEDOUT: not yet. *heard: the other side has said that it is done, or could not.
 */
int slu_joint_offer(struct slu_joint *joint, struct slu_passage *passage);
int slu_joint_answer(struct slu_joint *joint, struct slu_passage *passage);
int slu_joint_look(const struct slu_joint *joint, struct slu_passage *passage, uint32_t index,
                   int64_t timeout, bool *heard);
/* The error of one that was not connected in time. */
int slu_joint_fail_late(const struct slu_joint *joint, const struct slu_passage *passage,
                        uint32_t index);
/* Returns 0; or -ENOTCONN if the program has removed the peer, whose index another one may have. */
int slu_joint_check_peer(const struct slu_joint *joint, uint32_t index);
/*
 * The peer of one that is prepared, in its engine; and its queue pair, or the first if it has
 * several, which alone has messages. NULL: it has failed.
 */
struct slu_peer *slu_joint_peer(const struct slu_joint *joint, uint32_t index);
struct slu_qp *slu_joint_qp(const struct slu_joint *joint, uint32_t index);
struct slu_tcontext *slu_joint_context(const struct slu_joint *joint);
/* The handshake of one, with what is in remote. */
int slu_joint_shake(struct slu_joint *joint, uint32_t index);
/* All that is left to do for a side that dialed and has a passage. Undone if it fails. */
int slu_joint_connect(struct slu_joint *joint, struct slu_passage *passage);
/* Ends what there is of it, also while the program has a scope of the multichannel open. */
void slu_joint_undo(struct slu_joint *joint);

#endif
