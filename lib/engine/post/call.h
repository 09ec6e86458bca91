/* SPDX-License-Identifier: MIT */
/* A call that posts a list: beginning it, posting what there is room for, and ending it. */
#ifndef SLU_ENGINE_POST_CALL_H
#define SLU_ENGINE_POST_CALL_H

#include "engine/state/call.h"

/* The requests of a posted list from one index to before another. */
struct slu_prefix {
    uint32_t from, count;
    bool counted; /* all of them are known to have room */
    int why;      /* -ENOTCONN or -EAGAIN: why the first was not posted */
};

/*
 * Posts the requests of a prefix that are for the queue: all of them if they are counted, else as
 * far as there is room. Returns the index of the first that was not handled.
 */
uint32_t slu_post_prefix(struct slu_call *call, struct slu_prefix *prefix, enum slu_queue queue);

/* Begins a blocking call of a list. The caller sets its queues, if it posts by slu_post_call(). */
static inline void slu_call_begin(struct slu_call *call, struct slu_engine *engine,
                                  const struct slu_source *source, int64_t deadline,
                                  struct sluice_completion *completions)
{
    /* real and other are left unset: first_real and first_other say whether they are valid. */
    call->engine = engine;
    call->source = source;
    call->completions = completions;
    call->handles = NULL;
    call->time = deadline;
    call->deadline = SLUICE_FOREVER;
    call->owner = SLU_OWNER_CALL;
    call->expired = deadline == 0;
    call->incomplete = source->count;
    call->first_real = call->first_other = SLU_NONE;
}

/* Starts the deadline of a call. Failures of the call before this are not a missed deadline. */
void slu_call_set_due(struct slu_call *call);
/* Waits for what the call has posted, leaves the engine, and returns the result. */
int slu_call_finish(struct slu_call *call);
/* Returns the first failure of a complete call, with its text. */
int slu_call_failure(const struct slu_call *call);

static inline int slu_call_error(const struct slu_call *call)
{
    return SLU_LIKELY((call->first_real & call->first_other) == SLU_NONE) ? 0
                                                                          : slu_call_failure(call);
}

#endif
