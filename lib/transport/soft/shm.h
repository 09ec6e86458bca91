/* SPDX-License-Identifier: MIT */
/* Internals of the wire through shared memory. Everything belongs to the owner of the CQ. */
#ifndef SLU_SOFT_SHM_H
#define SLU_SOFT_SHM_H

#include "transport/soft/shm_ring.h"
#include "transport/soft/tcp.h"

/* How far the two have come, over the socket. */
enum shm_stage {
    SHM_OFFERING, /* our segment is sent, or that there is none */
    SHM_JUDGING,  /* and whether we have the peer's */
    SHM_ON,
    SHM_OFF /* one of us could not: frames go over the socket */
};

struct soft_shm {
    enum shm_stage stage;
    bool usable; /* we have both segments */
    struct shm_writer writer;
    struct shm_reader reader;
    uint32_t bulk_wanted; /* what was blocked waits for so much room in the bulk */
    bool bulk_refused;    /* it could not be made */
    unsigned published;   /* SHM_ARMED_*: since somebody looked whether the peer sleeps */
    uint32_t done;        /* of our requests, by the peer's words */
    uint32_t patience;    /* looks that pass without one at these */
    uint32_t since;       /* looks since these told something; 0: they were not the last to */
    uint32_t unheard;     /* looks since the last of those */
    int64_t passed;       /* when some of these had passed */
    bool fresh;           /* something came, and nobody has looked at the clock since */
    uint32_t fruitless;   /* looks, since something came */
};

/* shm_segment.c */
/* A memfd of so many bytes, whole and sealed, and where it is mapped; or a negative errno. */
int slu_soft_shm_make(size_t bytes, void **map);
/* One of the peer's, which is closed; NULL: it is not what it must be, or there is no room. */
void *slu_soft_shm_map(int fd, size_t bytes);
void slu_soft_shm_unmap(void *map, size_t bytes);
/* Sends a few bytes, and a descriptor if it is not -1; 0 or a negative errno. */
int slu_soft_shm_tell(int socket, const void *bytes, size_t length, int fd);

/* shm_join.c */
/* A Unix socket to the peer was attached: both agree on what carries the frames. */
void slu_soft_shm_join(struct soft_tcp *tcp);
void slu_soft_shm_join_event(struct soft_tcp *tcp);
/* Gives back all memory. */
void slu_soft_shm_part(struct soft_tcp *tcp);

/* wire_shm.c */
/* As sendmsg(2): how many bytes went out, or a negative errno. */
ssize_t slu_soft_shm_transmit(struct soft_tcp *tcp, const struct iovec *iovecs, uint32_t count);
void slu_soft_shm_event(struct soft_tcp *tcp, uint32_t events);
/* The peer has broken the protocol. */
void slu_soft_shm_nonsense(struct soft_tcp *tcp, const char *what);

/* shm_small.c */
/* As slu_soft_tcp_push(), and requests that can go at once without a frame. */
void slu_soft_shm_push(struct soft_tcp *tcp);
/* A record of a kind that is not the stream; false: the queue pair has failed. */
bool slu_soft_shm_receive_small(struct soft_tcp *tcp, const struct shm_record *record);

/* shm_words.c */
/* The most looks in a row that pass by the peer's words. */
#define SHM_PATIENCE_MOST 63
/* What the peer is owed is told in words. */
void slu_soft_shm_say_words(struct soft_tcp *tcp);
/* Takes what the peer's words say; false: the queue pair has failed. */
bool slu_soft_shm_take_words(struct soft_tcp *tcp);
/*
 * Likewise, if it is time for it, after a look at the records, before which so many requests
 * were outstanding. Whether there was something; the queue pair may have failed.
 */
bool slu_soft_shm_look_at_words(struct soft_tcp *tcp, bool received, uint32_t outstanding);

/* wire_shm.c again */
/* The peer sleeps, and waits for something that is there. */
void slu_soft_shm_ring_bell(struct soft_tcp *tcp);
/* It is looked at by polls from now on. */
void slu_soft_shm_heat(struct soft_tcp *tcp);
void slu_soft_shm_leave_hot(struct soft_tcp *tcp);

#endif
