/* SPDX-License-Identifier: MIT */
/* All forms of calls on a channel, on a peer of a multichannel, and on all its peers at once. */
#ifndef SIM_FORMS_H
#define SIM_FORMS_H

#include "programs.h"

enum { FORM_BYTES = 3000, FORM_RANKS = 16 };

/* Parts of the memory of a rank, and of its window, which has a place for each rank. */
enum { OUT = 0, IN = FORM_RANKS * FORM_BYTES, WINDOW = 2 * IN, WORD = 3 * IN, ALL = WORD + 64 };

struct forms {
    struct sluice_context *context;
    struct sluice_context_info limits;
    struct sluice_pd *pd;
    struct sluice_mr *mr;
    uint8_t *memory;
    struct sluice_multichannel *all;
    struct sluice_channel *channels[2]; /* to the next rank, and from the one before */
    struct sluice_remote_mr remotes[FORM_RANKS];
    uint32_t step;
    uint64_t done[7];  /* requests on the multichannel that succeeded, by opcode */
    uint64_t timed[7]; /* of these, those that its histograms have forgotten */
    uint64_t added;    /* to the word of the next rank */
};
extern struct forms forms;

/* One end of a connection, and calls on it by both of their names. */
struct end {
    struct sluice_channel *channel; /* NULL: a peer of the multichannel */
    uint32_t peer;
};
#define AT(end, call, ...)                                                       \
    ((end)->channel != NULL ? sluice_channel_##call((end)->channel, __VA_ARGS__) \
                            : sluice_multichannel_##call(forms.all, (end)->peer, __VA_ARGS__))
#define OF(end, call, ...)                                                         \
    ((end)->channel != NULL ? sluice_channel_##call((end)->channel, ##__VA_ARGS__) \
                            : sluice_multichannel_##call(forms.all, ##__VA_ARGS__))

uint8_t form_value(uint32_t from, uint32_t to, uint32_t at);
void form_fill(size_t place, uint32_t bytes, uint32_t from, uint32_t to);
bool form_holds(size_t place, uint32_t bytes, uint32_t from, uint32_t to);
struct sluice_sge form_sge(size_t place, uint32_t bytes);
/* Where a rank writes in the window of another one. */
struct sluice_remote_mr form_remote(uint32_t rank, uint32_t bytes);
/* Sets the ends that lead to the next rank, and from the one before. */
enum { SENT, RECEIVED };
void form_ends(struct end ends[2]);
/* Counts a request that was done, if it was one of the multichannel. */
void form_count(const struct end *end, uint32_t opcode, bool well);

/* forms_memory.c */
/* Takes the result of one request that was posted without waiting; posted: result of the post. */
int form_finish(const struct end *end, int posted, const struct sluice_handle *handle);
bool form_touch(void);
/* Reads of ranks that wait for a message, and then do something else. */
bool form_elsewhere(void);

/* forms_vector.c: messages of each rank to all, and one-sided work on all windows. */
bool form_messages(void);
bool form_windows(void);

/* forms_inside.c: channels of two threads of this process. */
bool form_inside(void);

#endif
