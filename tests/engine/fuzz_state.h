/* SPDX-License-Identifier: MIT */
/* State that the random calls share: the channel, its requests and their owners. */
#ifndef ENGINE_FUZZ_STATE_H
#define ENGINE_FUZZ_STATE_H

#include "../support/forms.h"
#include "rig.h"

#define MOST 64 /* requests in a list */
#define SGES 3
#define BLOCKS 32
#define SPAN 100000 /* bytes of memory that blocks are in */
#define KEPT 256    /* handles */

/* The owner of a request until its result is seen. */
enum owner { NOBODY, CALL, PROGRAM, SCOPE, SEEN, DETACHED };

struct entry {
    enum owner owner;
    uint32_t peer;
    uint32_t opcode;
    uint64_t bytes;
};

/* A list in flight while other calls go on; NULL if there is none. */
struct fuzz_list {
    struct sluice_list *list;
    uint32_t first; /* key */
    uint32_t count;
    struct sluice_completion completions[MOST];
};

struct fuzz {
    struct rig rig;
    uint32_t peers;
    uint32_t next; /* key of the next request; also its user data */
    struct entry entries[FAKE_KEYS];
    struct sluice_endpoint endpoints[RIG_PEERS];
    struct sluice_scope *scope;
    int64_t scope_until;
    uint32_t scope_posted;
    uint32_t scope_first;               /* key */
    struct sluice_handle handles[KEPT]; /* of posted requests, and their keys */
    uint32_t handle_keys[KEPT];
    uint32_t handle_count;
    uint32_t refused;                     /* posts, because of the state of a peer */
    struct sluice_request requests[MOST]; /* the list that is being posted */
    struct sluice_sge sges[MOST][SGES];
    struct sluice_blocks blocks[MOST];
    uint32_t indices[MOST][2][BLOCKS];
    uint32_t count;
    struct fuzz_list lists[3];
};

extern struct fuzz fuzz;

/* fuzz_blocks.c: request i gets blocks on one side or both, or on none; their bytes together. */
uint64_t fuzz_make_blocks(struct sluice_request *request, uint32_t i);
/* The same of a message, whose other side has its own. */
uint64_t fuzz_make_message(struct sluice_request *request, uint32_t i);

/* Returns value once in n times, else 0. */
uint32_t fuzz_one_in(uint32_t n, uint32_t value);
/* Chooses the call for a list: most often that for any requests, else any other. */
const struct form *fuzz_choose_list(enum form_of of, enum form_end end);
/*
 * Makes count random requests, of the operation unless that is SLUICE_OP_NONE. A call that accepts
 * them becomes their owner.
 */
void fuzz_make_requests(uint32_t count, uint32_t opcode);
/* Makes one for a call that takes its parts, and so has no blocks. */
void fuzz_make_single(void);
void fuzz_accept_requests(enum owner owner);
/* Checks the result of a request of this owner that was not seen yet. */
void fuzz_see_result(const struct sluice_completion *completion, enum owner owner);
/* Requires that the device is done with the request, so that its memory may go. */
void fuzz_check_released(uint32_t key);
int64_t fuzz_choose_deadline(void);
/* Requires that the call took no longer than its deadline and the drain bound. */
void fuzz_check_time(const char *call, int64_t start, int64_t deadline);

/* fuzz_posted.c: calls of posted requests; the last one makes any of the rarer calls. */
void fuzz_post(void);
void fuzz_poll(void);
void fuzz_wait(void);
void fuzz_posted(void);

/* fuzz_list.c: posts a list, waits for it, or frees it; waits for all that are complete. */
void fuzz_list(void);
void fuzz_end_lists(void);
/* Returns the requests of lists that have no result yet. */
uint32_t fuzz_pending_of_lists(void);
/* Notes the result of a refused post of a list. */
void fuzz_refused_list(int result);

/* fuzz_scope.c: opens a scope, or uses it; and ends it. */
void fuzz_scope(void);
void fuzz_end_scope(void);

#endif
