/* SPDX-License-Identifier: MIT */
/*
 * Random traffic between ranks in rounds, and what is true of it. The messages of a round
 * follow from a number that all ranks know, so that a receiver knows the bytes of each.
 */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include "programs.h"

enum { MOST_RANKS = 16, MOST_MESSAGES = 6, MOST_WORK = 640, MOST_PIECES = 3, TICKETS = 4096 };

/* Mistakes of a rank, which must fail for it and one peer: bits of traffic.shared->spoiled. */
enum spoil { HASTY = 1, BAD_KEY = 2, CANCEL = 4, SHORT = 8, WITHDRAW = 16, CLOSE = 32 };

/* Memory of all ranks, which no real cluster has: they write down the truth in it. */
struct truth {
    uint64_t number; /* all messages follow from it */
    uint32_t spoiled[MOST_RANKS][MOST_RANKS];
    uint32_t receives[MOST_RANKS][MOST_RANKS];             /* of the round, [from][to] */
    uint32_t taken[MOST_RANKS][MOST_RANKS][MOST_MESSAGES]; /* the round, or UNTOLD */
    uint8_t *window[MOST_RANKS];
    struct sluice_remote_mr remote[MOST_RANKS];
    bool ticket[TICKETS];
};
#define UNTOLD UINT32_MAX

struct message {
    uint64_t key; /* its bytes follow from it */
    uint32_t bytes, pieces, flags, immediate;
    bool writes; /* a write with immediate, to the place of the message in the window */
    bool second; /* a write to that place goes before it */
};

/* One request of the round, and what is known of it. */
struct work {
    struct sluice_request request;
    struct sluice_sge sges[MOST_PIECES];
    struct sluice_handle handle;
    uint8_t *memory;
    uint32_t bytes, number; /* of the message, or UNTOLD */
    uint64_t key, expected;
    int64_t due;
    bool accepted, done, succeeded;
    bool bad; /* it must fail */
};

struct traffic {
    uint32_t rank, ranks, round, most_bytes, count;
    uint32_t most_send; /* bytes of a send; 0: any number */
    bool keepalive;     /* a peer that is silent for seconds counts as lost */
    struct truth *truth;
    struct sluice_context *context;
    struct sluice_context_info limits;
    struct sluice_pd *pd;
    struct sluice_mr *area_mr[2], *window_mr;
    uint8_t *area[2], *window; /* requests of even and odd rounds; what peers write and read */
    size_t used;               /* bytes of this round's area */
    struct sluice_multichannel *all;
    bool up[MOST_RANKS];      /* connected, as both ends agree */
    bool stopped[MOST_RANKS]; /* a message failed in this round: no more go to that rank */
    bool known[MOST_RANKS];   /* what our word in a rank's window holds */
    uint64_t word[MOST_RANKS];
    struct sluice_handle old[MOST_RANKS]; /* of the last request to each rank */
    int64_t deadline, entered;            /* of the calls of this round; when the last one began */
    struct work work[MOST_WORK];
};
extern struct traffic traffic;

/* message.c */
uint32_t messages(uint32_t from, uint32_t to);
struct message message(uint32_t from, uint32_t to, uint32_t number);
void fill(uint8_t *memory, uint32_t bytes, uint64_t key);
bool is_filled(const uint8_t *memory, uint32_t bytes, uint64_t key);
uint64_t mixed(uint64_t a, uint64_t b);
size_t window_bytes(void);
/* Offsets in a window: of the place of a message, of words, and of what never changes. */
size_t place_of(uint32_t from, uint32_t number);
size_t word_of(uint32_t from);
size_t constant(void);
#define CONSTANT_KEY UINT64_C(77)

/* truth.c: what must be true of a request that is complete, and of calls. */
void spoil(uint32_t peer, enum spoil how);
void complete(struct work *work, const struct sluice_completion *completion);
/* The request was not accepted, and leaves no trace. */
void refuse(struct work *work, int error);
/* Takes a completion of posted work, which may be of an earlier round. */
void take(const struct sluice_completion *completion);
/* A request that was done with nobody to know the result. */
void leave_untold(struct work *work);
/* Checks that the result of a call of a list follows from its completions. */
void check_list(int result, const struct sluice_completion *completions, uint32_t count);

/* styles.c */
void do_round(void);
/* Deregisters the window until the end of the round. */
void withdraw(void);

#endif
