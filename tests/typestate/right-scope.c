/* SPDX-License-Identifier: MIT */
/* Requests in a scope, whose end is reached on every way out. */
#include <stddef.h>

#include <sluice.h>

int post_two(struct sluice_channel *channel, const struct sluice_request *requests);

int post_two(struct sluice_channel *channel, const struct sluice_request *requests)
{
    struct sluice_handle handles[2];
    struct sluice_completion completion;
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, SLUICE_S(1));
    int result, ended;

    if (!scope)
        return -1;
    result = sluice_scope_post(scope, requests, 2, handles);
    if (!result)
        result = sluice_scope_wait(scope, &handles[0], SLUICE_MS(100), &completion);
    ended = sluice_scope_end(scope, NULL);
    return result ? result : ended;
}
