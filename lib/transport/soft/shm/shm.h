/* SPDX-License-Identifier: MIT */
/* Internals of the wire through shared memory. Everything belongs to the owner of the CQ. */
#ifndef SLU_SOFT_SHM_H
#define SLU_SOFT_SHM_H

#include "transport/soft/shm/ring.h"
#include "transport/soft/tcp/seam.h"

/* Where a process has something that no other process has there. */
struct shm_token {
    uint64_t addr;
    uint8_t bytes[SLU_TOKEN_BYTES];
};

/* How far the two have come, over the socket. */
enum shm_stage {
    SHM_OFFERING, /* our segment is sent, or that there is none */
    SHM_JUDGING,  /* and whether we have the peer's */
    SHM_ON,
    SHM_OFF /* one of us could not: frames go over the socket */
};

/* Sizes of messages that may be lent. */
#define SHM_CLASSES 8

/* How messages of a size came: copied twice, through the ring, and once. */
struct shm_class {
    uint32_t time[2]; /* ns, a mean; 0: not known */
    uint32_t count;   /* of those that came the way that is better */
    uint32_t run;     /* that came the same way as the last */
    bool lent;        /* the last */
    bool lends;       /* that way is better */
};

/* A region of the peer that is mapped or shown, or will not be: see shm/import.c. */
enum shm_import_state {
    SHM_IMPORT_NONE,
    SHM_IMPORT_NOTED, /* its key was used once */
    SHM_IMPORT_ASKED, /* and again: the peer is to answer */
    SHM_IMPORT_DENIED,
    SHM_IMPORT_HERE
};

struct shm_import {
    uint32_t key;
    enum shm_import_state state;
    uint8_t *at;   /* its first byte here; NULL: it is shown, to be read from the peer's process */
    uint32_t lead; /* bytes that are mapped before it */
    uint64_t addr; /* as the peer's handle has it */
    uint64_t length;
    const _Atomic uint64_t *word; /* in the peer's table: the region is there */
    uint64_t value;               /* while it is this */
    uint32_t access;              /* SLUICE_ACCESS_REMOTE_* */
    uint32_t uses;                /* since it was denied */
};

/* By key: open addressing. */
struct shm_imports {
    struct shm_import *places;
    uint32_t mask;
    uint32_t used;                 /* places that are not free */
    uint32_t asked;                /* of these, keys that the peer is to answer for */
    bool reads_not;                /* what is shown cannot be read */
    bool full;                     /* until one that is mapped goes */
    const _Atomic uint64_t *table; /* the peer's; NULL: not yet, or not to be had */
};

/* Regions that may be exported at a time, and the table of their words. */
#define SHM_PLACES 4096
#define SHM_TABLE_BYTES (SHM_PLACES * sizeof(uint64_t))

/* What is said over the socket, a byte each, and what follows it. */
enum shm_socket_word {
    SHM_WORD_BELL = 1, /* look */
    SHM_WORD_BULK,     /* with a descriptor: here is a ring for what is large */
    SHM_WORD_NO_BULK,  /* it is not used any more */
    SHM_WORD_ASK,      /* key: may I map the region? */
    SHM_WORD_TABLE,    /* with a descriptor: what is exported says here when that ends */
    SHM_WORD_GIVE,     /* with a descriptor: struct shm_given */
    SHM_WORD_SHOW,     /* struct shm_given: you may not, but it can be read from this process */
    SHM_WORD_DENY,     /* key: no */
    SHM_WORD_DROP,     /* a region is gone: which, the table says */
    SHM_WORDS
};

struct shm_given {
    uint32_t key;
    uint32_t access; /* of the peer that gets it */
    uint64_t addr;
    uint64_t length;
    uint64_t word; /* what the table has there, as long as the region is */
    uint32_t place;
    uint32_t page; /* of the memfd, in which the first byte is; where in it, addr says */
};

#define SHM_SAID_BYTES 41 /* of the longest word, and what follows it */

struct soft_shm {
    enum shm_stage stage;
    bool usable; /* we have both segments */
    struct shm_writer writer;
    struct shm_reader reader;
    uint32_t bulk_wanted; /* what was blocked waits for so much room in the bulk */
    bool bulk_refused;    /* it could not be made */
    bool bulk_used;       /* since it was looked whether it is of use */
    unsigned published;   /* SHM_ARMED_*: since somebody looked whether the peer sleeps */
    uint32_t done;        /* of our requests, by the peer's words */
    bool fresh;           /* something came, and nobody has looked at the clock since */
    uint32_t fruitless;   /* looks, since something came */
    /* What is lent to us. */
    struct shm_class classes[SHM_CLASSES];
    struct sluice_sge lent[SOFT_MAX_SGE]; /* where the message that is coming in is */
    int64_t begun;                        /* when a large one began to come in; 0: none does */
    uint32_t wanted;                      /* as our segment has it */
    struct shm_token token;               /* of the process at the other end */
    pid_t pid;                            /* its number; 0: nobody has asked */
    bool borrowed;                        /* something was */
    bool borrows_not;                     /* it could not be read */
    /* And what we lend. */
    bool lends_not; /* the peer could not read it */
    /* What the socket has said of a word, and the descriptor that came last, or -1. */
    uint8_t said[SHM_SAID_BYTES];
    uint8_t said_length;
    bool drops; /* that a region is gone */
    int passed_fd;
    /* One-sided. */
    struct shm_imports imports;
    struct shm_export *exports; /* to this peer; under the lock of the exports */
    bool has_table;             /* the peer has ours */
    bool touching;              /* memory of the peer's, in this turn */
    bool written;               /* and that was the last that was done there */
};

/* segment.c */
/* What the peer does there, and whether all pages are to be mapped at once. */
enum shm_use {
    SHM_READ_WRITE,
    SHM_READ_ONLY, /* whoever has not made it only reads */
    SHM_SPARSE     /* both, and it may be large: each page is mapped when it is touched */
};
/* A memfd of so many bytes, whole and sealed, and where it is mapped; or a negative errno. */
int slu_soft_shm_make(size_t bytes, enum shm_use use, void **map);
/*
 * So much of one of the peer's, from a page of it on, which is closed; NULL: it is not what it
 * must be, or there is no room.
 */
void *slu_soft_shm_map(int fd, uint64_t offset, size_t bytes, enum shm_use use);
/* Closes one that is not mapped; -1 is none. */
void slu_soft_shm_refuse(int fd);
void slu_soft_shm_unmap(void *map, size_t bytes);
/* Sends a few bytes, and a descriptor if it is not -1; 0 or a negative errno. */
int slu_soft_shm_tell(int socket, const void *bytes, size_t length, int fd);

/* copy.c */
/* From the start all large messages are wanted to be lent. */
void slu_soft_shm_want(struct soft_tcp *tcp);

/* process.c */
/* Of this process. */
struct shm_token slu_soft_shm_token(void);
/*
 * All of it, or the errno value of why not; ESRCH: it is not there, or not the one that was. Of
 * both lists the first element, which is counted, is left free by the caller.
 */
int slu_soft_shm_read_process(struct soft_tcp *tcp, struct iovec *to, uint32_t to_count,
                              struct iovec *from, uint32_t from_count, uint64_t length);

/* small.c */
/* A record of a kind that is not the stream; false: the queue pair has failed. */
bool slu_soft_shm_receive_small(struct soft_tcp *tcp, const struct shm_record *record);

/* words.c */
/* What the peer is owed is told in words. */
void slu_soft_shm_say_words(struct soft_tcp *tcp);
/* Takes what the peer's words say; false: the queue pair has failed. */
bool slu_soft_shm_take_words(struct soft_tcp *tcp);
/* Requests wait for what they say, and they say something new. */
static inline bool slu_soft_shm_has_words(const struct soft_tcp *tcp)
{
    return tcp->qp->sends.posted != tcp->qp->sends.done &&
           !slu_soft_shm_has_said_nothing(&tcp->shm->writer);
}

/* socket.c */
/* The peer sleeps, and waits for something that is there. */
void slu_soft_shm_ring_bell(struct soft_tcp *tcp);
int slu_soft_shm_say_bulk(struct soft_tcp *tcp, int fd); /* 0 or a negative errno */
int slu_soft_shm_say_no_bulk(struct soft_tcp *tcp);      /* likewise */
/* False: it could not be said now. */
bool slu_soft_shm_say_table(struct soft_tcp *tcp, int fd);
bool slu_soft_shm_say_key(struct soft_tcp *tcp, enum shm_socket_word word, uint32_t key);
void slu_soft_shm_say_drop(struct soft_tcp *tcp);
bool slu_soft_shm_say_given(struct soft_tcp *tcp, const struct shm_given *given, int fd);
bool slu_soft_shm_say_shown(struct soft_tcp *tcp, const struct shm_given *given);
/* The descriptor that came last, or -1; the caller owns it. */
int slu_soft_shm_take_fd(struct soft_shm *shm);
void slu_soft_shm_end_socket(struct soft_shm *shm);

/* messages.c */
/* Reads the socket empty; false: that was its end. *sound: what it said makes sense. */
bool slu_soft_shm_hear_socket(struct soft_tcp *tcp, bool *sound);

/* export.c */
/* Peers may map regions of the context: what it takes to tell them when that has an end. */
struct soft_exports *slu_soft_exports_make(void);
void slu_soft_exports_destroy(struct soft_exports *exports);
void slu_soft_shm_begin_exports(struct soft_tcp *tcp);
/* The peer asks for a region. */
void slu_soft_shm_answer(struct soft_tcp *tcp, uint32_t key);
void slu_soft_shm_end_exports(struct soft_tcp *tcp);

/* import.c */
/* What is known of a key, or NULL. */
struct shm_import *slu_soft_shm_find_import(const struct shm_imports *imports, uint32_t key);
/* A key is used whose region is not mapped. */
void slu_soft_shm_wish(struct soft_tcp *tcp, uint32_t key);
/* What the peer says; descriptors are taken. False: that makes no sense. */
bool slu_soft_shm_accept_table(struct soft_tcp *tcp, int fd);
bool slu_soft_shm_accept_given(struct soft_tcp *tcp, const struct shm_given *given, int fd);
bool slu_soft_shm_accept_shown(struct soft_tcp *tcp, const struct shm_given *given);
bool slu_soft_shm_accept_denied(struct soft_tcp *tcp, uint32_t key);
/* What is gone is unmapped. */
void slu_soft_shm_drop_imports(struct shm_imports *imports);
/* The peer has not deregistered it. */
static inline bool slu_soft_shm_is_there(const struct shm_import *import)
{
    return atomic_load_explicit(import->word, memory_order_acquire) == import->value;
}
void slu_soft_shm_end_imports(struct soft_shm *shm);

/* direct.c */
/* At the end of a turn. */
void slu_soft_shm_end_touching(struct soft_shm *shm);

/* bulk.c */
/* Makes our ring and sends it. Until the peer has mapped it, all goes through the slots. */
void slu_soft_shm_offer_bulk(struct soft_tcp *tcp);
/* Our ring goes. */
void slu_soft_shm_drop_bulk(struct soft_tcp *tcp);
/* The peer has made its ring; false: it has one already. */
bool slu_soft_shm_take_bulk(struct soft_tcp *tcp, int fd);
/* The peer's ring goes. */
void slu_soft_shm_lose_bulk(struct soft_tcp *tcp);

/* wire.c */
void slu_soft_shm_leave_hot(struct soft_tcp *tcp);

#endif
