/* SPDX-License-Identifier: MIT */
/*
 * A hostile peer of the soft transport's wire through shared memory: another process of this host,
 * without the library, which writes anything into the segment of its victim.
 */
#ifndef SUPPORT_NEAR_H
#define SUPPORT_NEAR_H

#include "hostile.h"

/* Frames that only this wire has. */
#define LENT 4

struct near_peer {
    struct sluice_endpoint endpoint; /* our endpoint, not of the library */
    uint64_t generation;
    int listener; /* our announced address; no connection is accepted there */
    int fd;
    uint8_t *own;    /* the segment that we read */
    uint8_t *theirs; /* the victim's ring, which we write */
    uint32_t written, write_at;
    uint32_t taken, read_at;
    uint8_t heard[4096]; /* of the stream */
    size_t heard_bytes;
};

void near_open(struct near_peer *peer);
void near_close(struct near_peer *peer);
/* Makes a new endpoint. */
void near_renew(struct near_peer *peer);
/* Connects to the victim, which knows our endpoint, and shares memory with it. */
void near_meet(struct near_peer *peer, const struct sluice_endpoint *victim);
/*
 * Does the same, but sends the descriptor before the offer, with another message. Returns whether
 * the victim has mapped the memory all the same.
 */
bool near_meet_early(struct near_peer *peer, const struct sluice_endpoint *victim);
void near_part(struct near_peer *peer);

/* Writes bytes to the stream of frames; fewer if the victim ends the connection. */
void near_say(struct near_peer *peer, const void *bytes, size_t count);
void near_say_frame(struct near_peer *peer, const struct frame *frame);
/* Reads bytes from the victim. Returns false if the connection ends before. */
bool near_hear(struct near_peer *peer, void *bytes, size_t count);
bool near_hear_frame(struct near_peer *peer, struct frame *frame);

/* Events of the victim. */
enum near_sight { NEAR_HEARD, NEAR_DONE, NEAR_ENDED };
/* Waits until a record came, this many of our requests are done, or the connection ended. */
enum near_sight near_look(struct near_peer *peer, uint32_t done);

/* Sets which sizes of messages the victim lends: all, or none. */
void near_want_loans(struct near_peer *peer, bool all);
/* Announces that a loan is about to be withdrawn, or no longer. */
void near_withdraw(struct near_peer *peer, bool withdrawn);

#endif
