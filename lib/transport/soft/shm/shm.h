/* SPDX-License-Identifier: MIT */
/* Internals of the wire through shared memory. Everything belongs to the owner of the CQ. */
#ifndef SLU_SOFT_SHM_H
#define SLU_SOFT_SHM_H

#include "transport/soft/shm/record.h"
#include "transport/soft/tcp/seam.h"

/* An address in a process, and random bytes there that no other process has. */
struct shm_token {
    uint64_t addr;
    uint8_t bytes[SLU_TOKEN_BYTES];
};

/* Stages of the negotiation over the socket. */
enum shm_stage {
    SHM_GREETING,  /* greetings are due, or nothing is: the connection is idle */
    SHM_WISHING,   /* the peer makes the segments; its offer is due */
    SHM_OFFERING,  /* we make them: the offer is sent, or due, and the peer's answer is due */
    SHM_ANSWERING, /* the offer has come, and our answer could not be sent yet */
    SHM_ON,
    SHM_OFF /* one side could not: frames go over the socket */
};

/* Sizes of messages that may be lent. */
#define SHM_CLASSES 8

/* Statistics on messages of a size: [0] copied twice, through the ring; [1] lent, copied once. */
struct shm_class {
    uint32_t time[2]; /* mean time in ns; 0: not known */
    uint32_t count;   /* of messages that came the better way */
    uint32_t run;     /* of consecutive messages that came the same way */
    bool lent;        /* the last message was lent */
    bool lends;       /* lending is better */
};

struct shm_loans {
    struct shm_class classes[SHM_CLASSES];
    struct sluice_sge lent[SOFT_MAX_SGE]; /* list of the message that is being received */
};

/* States of a region of the peer: see shm/import.c. */
enum shm_import_state {
    SHM_IMPORT_NONE,
    SHM_IMPORT_NOTED, /* its key was used once */
    SHM_IMPORT_ASKED, /* used again: the peer was asked for the region */
    SHM_IMPORT_DENIED,
    SHM_IMPORT_HERE
};

struct shm_import {
    uint32_t key;
    enum shm_import_state state;
    uint8_t *at;   /* its first byte, mapped here; NULL: to be read from the peer's process */
    uint32_t lead; /* bytes mapped before it */
    uint64_t addr; /* address in the peer's handle */
    uint64_t length;
    const _Atomic uint64_t *word; /* in the peer's table */
    uint64_t value;               /* the word's value while the region is registered */
    uint32_t access;              /* SLUICE_ACCESS_REMOTE_* */
    uint32_t uses;                /* since it was denied */
};

/* A hash table by key, with open addressing. */
struct shm_imports {
    struct shm_import *places;
    uint32_t mask;
    uint32_t used;                 /* places that are not free */
    uint32_t asked;                /* keys that the peer was asked for */
    bool reads_not;                /* the peer's process cannot be read */
    bool full;                     /* no room until a mapped region is dropped */
    bool whole;                    /* not only the first page of the table can be read */
    const _Atomic uint64_t *table; /* the peer's; NULL: not received, or not mapped */
};

/* Regions that may be exported at a time, and the table of their words. */
#define SHM_PLACES 4096
#define SHM_TABLE_BYTES (SHM_PLACES * sizeof(uint64_t))

/* Messages over the socket: one byte each, and its arguments. */
enum shm_socket_word {
    SHM_WORD_BELL = 1, /* wakes the peer: poll the shared memory */
    SHM_WORD_BULK,     /* with a descriptor: a ring for large pieces */
    SHM_WORD_NO_BULK,  /* that ring is not used any more */
    SHM_WORD_ASK,      /* key: asks for a region */
    SHM_WORD_TABLE,    /* with a descriptor: the table of words of exported regions */
    SHM_WORD_GIVE,     /* with a descriptor: struct shm_given */
    SHM_WORD_SHOW,     /* struct shm_given: cannot be mapped, but read from this process */
    SHM_WORD_DENY,     /* key: the region is denied */
    SHM_WORD_DROP,     /* a region was deregistered: the table shows which */
    SHM_WORD_FAREWELL, /* enum slu_farewell: why a connection ends that has carried nothing */
    SHM_WORDS
};

struct shm_given {
    uint32_t key;
    uint32_t access; /* rights of the peer that gets it */
    uint64_t addr;
    uint64_t length;
    uint64_t word; /* value in the table while the region is registered */
    uint32_t place;
    uint32_t page; /* of the memfd, with the first byte; its offset there is that of addr */
};

#define SHM_SAID_BYTES 41 /* of the longest message */

struct soft_shm {
    enum shm_stage stage;
    bool leads;                   /* this side makes the segments */
    bool apart;                   /* the versions of the two sides share no memory */
    bool unsent;                  /* the message of the stage could not be sent yet */
    struct shm_segment *segments; /* both, in one mapping; NULL: none */
    struct shm_writer writer;
    struct shm_reader reader;
    uint32_t bulk_wanted; /* room in the bulk for which a blocked frame waits */
    bool bulk_refused;    /* the bulk could not be made */
    bool bulk_used;       /* since the last check for idle rings */
    unsigned published;   /* SHM_ARMED_*: since the last check whether the peer sleeps */
    uint32_t done;        /* our requests that are done, by the peer's words */
    bool fresh;           /* something was received since heard was set */
    uint32_t fruitless;   /* polls since something was received */
    /* Loans of the peer. */
    struct shm_loans *loans; /* there with the segments */
    int64_t begun;           /* when a large message began to arrive; 0: none */
    uint32_t wanted;         /* copy of the word in our segment */
    struct shm_token token;  /* of the peer's process */
    pid_t pid;               /* of the peer's process; 0: not known yet */
    bool borrowed;           /* a loan was read */
    bool borrows_not;        /* reading failed: loans are declined */
    /* Our own loans. */
    bool lends_not; /* the peer could not read a loan */
    /* The message being received over the socket, and the last descriptor, or -1. */
    uint8_t said[SHM_SAID_BYTES];
    uint8_t said_length;
    bool drops; /* SHM_WORD_DROP was received */
    int passed_fd;
    /* One-sided requests. */
    struct shm_imports imports;
    struct shm_export *exports; /* to this peer; under the lock of the exports */
    bool has_table;             /* the peer has our table */
    bool touching;              /* the peer's memory is being touched, in this turn */
    bool written;               /* a direct write was made, and no fence since */
};

/* segment.c */
/* Access of the peer, and whether all pages are mapped at once. */
enum shm_use {
    SHM_READ_WRITE,
    SHM_READ_ONLY, /* only the maker writes */
    SHM_SPARSE     /* read and write; may be large, so pages are mapped when they are touched */
};
/*
 * Makes a sealed memfd with all its pages and maps it. Returns its descriptor, or a negative errno.
 */
int slu_soft_shm_make(size_t bytes, enum shm_use use, void **map);
/*
 * Maps bytes of a memfd of the peer from a page on, and closes it. NULL: the memfd is not sealed
 * and complete as it must be, or there is no memory.
 */
void *slu_soft_shm_map(int fd, uint64_t offset, size_t bytes, enum shm_use use);
/* Closes a descriptor that is not mapped, unless it is -1. */
void slu_soft_shm_refuse(int fd);
void slu_soft_shm_unmap(void *map, size_t bytes);

/* copy.c */
/* Asks the peer to lend all large messages, until times are known. */
void slu_soft_shm_want(struct soft_tcp *tcp);

/* process.c */
/* Returns the token of this process. */
struct shm_token slu_soft_shm_token(void);
/*
 * Reads length bytes from the peer's process. Returns 0 or a positive errno value; ESRCH: the
 * process is gone, or is another one. The caller leaves the first element of both lists free, and
 * counts it.
 */
int slu_soft_shm_read_process(struct soft_tcp *tcp, struct iovec *to, uint32_t to_count,
                              struct iovec *from, uint32_t from_count, uint64_t length);

/* small.c */
/* Receives a record that is not of the stream. False: the queue pair has failed. */
bool slu_soft_shm_receive_small(struct soft_tcp *tcp, const struct shm_record *record);

/* words.c */
/* Publishes pending acknowledgements and credit in words. */
void slu_soft_shm_say_words(struct soft_tcp *tcp);
/* Reads the peer's words. False: the queue pair has failed. */
bool slu_soft_shm_take_words(struct soft_tcp *tcp);
/* Returns whether requests are in flight and the peer's words have changed. */
static inline bool slu_soft_shm_has_words(const struct soft_tcp *tcp)
{
    return tcp->qp->sends.posted != tcp->qp->sends.done &&
           !slu_soft_shm_has_said_nothing(&tcp->shm->writer);
}

/* socket.c */
/*
 * Sends a few bytes, and a descriptor unless it is -1. Returns 0 or a negative errno; -EAGAIN: the
 * socket has no room now.
 */
int slu_soft_shm_tell(int socket, const void *bytes, size_t length, int fd);
/* Sends a message with its argument, likewise. */
int slu_soft_shm_say(struct soft_tcp *tcp, enum shm_socket_word word, const void *argument,
                     size_t length, int fd);
/* messages.c */
/* Reads the socket empty. False: it has ended. *sound: all messages were valid. */
bool slu_soft_shm_hear_socket(struct soft_tcp *tcp, bool *sound);

/* export.c */
/* The table by which peers that map regions of a context learn that a region ends. */
struct soft_exports *slu_soft_exports_make(void);
void slu_soft_exports_destroy(struct soft_exports *exports);
void slu_soft_shm_begin_exports(struct soft_tcp *tcp);
/* Answers a request of the peer for a region. */
void slu_soft_shm_answer(struct soft_tcp *tcp, uint32_t key);
void slu_soft_shm_end_exports(struct soft_tcp *tcp);

/* import.c */
/* Returns the entry of a key, or NULL. */
struct shm_import *slu_soft_shm_find_import(const struct shm_imports *imports, uint32_t key);
/* Notes the use of a key whose region is not mapped. The second use asks for the region. */
void slu_soft_shm_wish(struct soft_tcp *tcp, uint32_t key);
/* Handle messages of the peer and take over their descriptors. False: the message is invalid. */
bool slu_soft_shm_accept_table(struct soft_tcp *tcp, int fd);
bool slu_soft_shm_accept_given(struct soft_tcp *tcp, const struct shm_given *given, int fd);
bool slu_soft_shm_accept_shown(struct soft_tcp *tcp, const struct shm_given *given);
bool slu_soft_shm_accept_denied(struct soft_tcp *tcp, uint32_t key);
/* Unmaps regions that the peer has deregistered. */
void slu_soft_shm_drop_imports(struct shm_imports *imports);
/* Returns whether the region is still registered. */
static inline bool slu_soft_shm_is_there(const struct shm_import *import)
{
    return atomic_load_explicit(import->word, memory_order_acquire) == import->value;
}
void slu_soft_shm_end_imports(struct soft_shm *shm);

/* direct.c */
/* Ends touching the peer's memory, at the end of a turn. */
void slu_soft_shm_end_touching(struct soft_shm *shm);

/* bulk.c */
/* Makes our ring and sends it. Until the peer has mapped it, all data goes through the slots. */
void slu_soft_shm_offer_bulk(struct soft_tcp *tcp);
/* Frees our ring. */
void slu_soft_shm_drop_bulk(struct soft_tcp *tcp);
/* Maps the ring that the peer has made. False: it has one already. */
bool slu_soft_shm_take_bulk(struct soft_tcp *tcp, int fd);
/* Unmaps the peer's ring. */
void slu_soft_shm_lose_bulk(struct soft_tcp *tcp);

/* wire.c */
void slu_soft_shm_leave_hot(struct soft_tcp *tcp);

#endif
