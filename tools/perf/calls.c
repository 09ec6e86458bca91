/* SPDX-License-Identifier: MIT */
/* Submits lists of requests at the level of the plan, and takes completions of posted ones. */
#include <errno.h>

#include "perf.h"

const struct calls calls_any = {sluice_multichannel_submit, sluice_scope_post,
                                sluice_multichannel_post};

uint32_t calls_flags(const struct team *team, size_t size)
{
    return size <= team->plan.inline_bytes ? SLUICE_INLINE : 0;
}

static int check(const struct team *team, const struct sluice_completion *completions, int count,
                 const char *what)
{
    if (count < 0)
        return team_fail(team, what);
    for (int i = 0; i < count; i++)
        if (completions[i].error != 0)
            return team_complain(team, "%s: peer %u: %s", what, completions[i].peer,
                                 sluice_status_name(completions[i].status));
    return count;
}

int calls_next(struct team *team, struct sluice_completion *completions, uint32_t most,
               const char *what)
{
    int count = sluice_multichannel_poll(team->channels, completions, most);

    if (count == 0) {
        count = sluice_multichannel_next(team->channels, team->deadline, completions);
        if (count == 0 || (count < 0 && completions[0].error != 0))
            count = 1;
    }
    return check(team, completions, count, what);
}

int calls_collect(struct team *team, uint32_t count, const char *what)
{
    struct sluice_completion completions[CALLS_BATCH];

    while (count > 0) {
        int got = calls_next(team, completions, count < CALLS_BATCH ? count : CALLS_BATCH, what);

        if (got < 0)
            return -1;
        count -= (uint32_t)got;
    }
    return 0;
}

static int post_all(struct team *team, const struct calls *calls,
                    const struct sluice_request *requests, uint32_t count, uint32_t *early,
                    const char *what)
{
    for (uint32_t posted = 0; posted < count;) {
        int done =
            calls->posted(team->channels, requests + posted, count - posted, team->deadline, NULL);

        if (done > 0) {
            posted += (uint32_t)done;
            continue;
        }
        if (done != -EAGAIN)
            return team_fail(team, what);
        if (calls_collect(team, 1, what) != 0)
            return -1;
        ++*early;
    }
    return 0;
}

int calls_post(struct team *team, const struct sluice_request *requests, uint32_t count,
               uint32_t *early, const char *what)
{
    return post_all(team, &calls_any, requests, count, early, what);
}

static int do_scoped(struct team *team, const struct calls *calls,
                     const struct sluice_request *requests, uint32_t count, const char *what)
{
    struct sluice_scope *scope = sluice_multichannel_scope_begin(team->channels, team->deadline);
    int posted;

    if (scope == NULL)
        return team_fail(team, what);
    posted = calls->scoped(scope, requests, count, NULL);
    if (posted < 0)
        team_fail(team, what);
    if (sluice_scope_end(scope, NULL) != 0 && posted >= 0)
        return team_fail(team, what);
    return posted < 0 ? -1 : 0;
}

int calls_do(struct team *team, const struct calls *calls, const struct sluice_request *requests,
             uint32_t count, const char *what)
{
    uint32_t early = 0;

    switch (team->plan.level) {
    case LEVEL_BLOCKING:
        if (calls->blocking(team->channels, requests, count, team->deadline, NULL) != 0)
            return team_fail(team, what);
        return 0;
    case LEVEL_SCOPED:
        return do_scoped(team, calls, requests, count, what);
    default:
        if (post_all(team, calls, requests, count, &early, what) != 0)
            return -1;
        return calls_collect(team, count - early, what);
    }
}
