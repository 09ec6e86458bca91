/* SPDX-License-Identifier: MIT */
/*
 * A peer of the soft transport's wire through shared memory that is no library: another process
 * of this host, which says what it likes in the segment of its victim.
 */
#ifndef SUPPORT_NEAR_H
#define SUPPORT_NEAR_H

#include "hostile.h"

/* Frames that only this wire has. */
#define LENT 4

struct near_peer {
    struct sluice_endpoint endpoint; /* ours, of no library */
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
/* Another endpoint than before. */
void near_renew(struct near_peer *peer);
/* Connects to the victim, which knows our endpoint, and shares memory with it. */
void near_meet(struct near_peer *peer, const struct sluice_endpoint *victim);
void near_part(struct near_peer *peer);

/* Bytes of the stream of frames; not all of them if the victim ends the connection. */
void near_say(struct near_peer *peer, const void *bytes, size_t count);
void near_say_frame(struct near_peer *peer, const struct frame *frame);
/* The same from the victim: false if the connection ends before. */
bool near_hear(struct near_peer *peer, void *bytes, size_t count);
bool near_hear_frame(struct near_peer *peer, struct frame *frame);

/* Events of the victim. */
enum near_sight { NEAR_HEARD, NEAR_DONE, NEAR_ENDED };
/* Waits until a record came, this many of our requests are done, or the connection ended. */
enum near_sight near_look(struct near_peer *peer, uint32_t done);

/* Sizes of messages that the victim is to lend: all, or none. */
void near_want_loans(struct near_peer *peer, bool all);
/* As one that is about to give back what it has lent. */
void near_withdraw(struct near_peer *peer, bool withdrawn);

#endif
