/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef BLOCK_OF_CHANNEL /* expect: -Wincompatible-pointer-types */
int send_in_channel(struct sluice_channel *channel, const struct sluice_sge *sge)
{
    SLUICE_SCOPE(scope, channel, NULL) {
        return sluice_scope_post_send(scope, 0, sge, 1, NULL);
    }
    return -1;
}
#endif

#ifdef END_IN_BLOCK /* expect: -Wanalyzer-double-free */
void end_what_ends_itself(struct sluice_channel *channel)
{
    SLUICE_SCOPE(scope, sluice_channel_scope_begin(channel, SLUICE_S(1)), NULL) {
        sluice_scope_end(scope, NULL);
    }
}
#endif

#ifdef FORGOTTEN_ATTACHED /* expect: -Wanalyzer-malloc-leak */
int attach_and_leave(struct sluice_channel *channel, struct sluice_scope_report *report)
{
    struct sluice_scope *scope =
        sluice_scope_attach(sluice_channel_scope_begin(channel, SLUICE_S(1)), report);

    return scope ? 0 : report->error;
}
#endif

#ifdef FORGOTTEN_END /* expect: -Wanalyzer-malloc-leak */
int begin_and_leave(struct sluice_channel *channel)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, SLUICE_S(1));

    return scope ? 0 : -1;
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_scope(struct sluice_channel *channel)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, SLUICE_S(1));

    free(scope);
}
#endif

#ifdef IGNORED_BEGIN /* expect: -Wunused-result */
void begin_nothing(struct sluice_channel *channel)
{
    sluice_channel_scope_begin(channel, SLUICE_S(1));
}
#endif

#ifdef IGNORED_POST_SEND /* expect: -Wunused-result */
void send_blindly(struct sluice_scope *scope, const struct sluice_sge *sge)
{
    sluice_scope_post_send(scope, 0, sge, 1, NULL);
}
#endif

#ifdef IGNORED_POST /* expect: -Wunused-result */
void post_blindly(struct sluice_scope *scope, const struct sluice_request *request)
{
    sluice_scope_post(scope, request, 1, NULL);
}
#endif

#ifdef IGNORED_SCATTER /* expect: -Wunused-result */
void scatter_blindly(struct sluice_scope *scope, const struct sluice_request *requests)
{
    sluice_scope_post_scatter_send(scope, requests, 2, NULL);
}
#endif

#ifdef KEEP_FROM_BLOCK /* expect: -Wuse-after-free */
int post_after_block(struct sluice_channel *channel, const struct sluice_sge *sge)
{
    struct sluice_scope *kept = NULL;

    SLUICE_SCOPE(scope, sluice_channel_scope_begin(channel, SLUICE_S(1)), NULL) {
        kept = scope;
    }
    return sluice_scope_post_send(kept, 0, sge, 1, NULL);
}
#endif

#ifdef OF_PD /* expect: -Wincompatible-pointer-types */
struct sluice_scope *begin_on_pd(struct sluice_pd *pd)
{
    return sluice_channel_scope_begin(pd, SLUICE_S(1));
}
#endif

#ifdef POST_AFTER_END /* expect: -Wuse-after-free */
int post_late(struct sluice_multichannel *mc, const struct sluice_request *request)
{
    struct sluice_scope *scope = sluice_multichannel_scope_begin(mc, SLUICE_S(1));

    sluice_scope_end(scope, NULL);
    return sluice_scope_post(scope, request, 1, NULL);
}
#endif

#ifdef POST_BY_CHANNEL /* expect: -Wincompatible-pointer-types */
int send_by_channel(struct sluice_channel *channel, const struct sluice_sge *sge)
{
    SLUICE_SCOPE(scope, sluice_channel_scope_begin(channel, SLUICE_S(1)), NULL) {
        return sluice_scope_post_send(channel, 0, sge, 1, NULL);
    }
    return -1;
}
#endif

#ifdef SECOND_END /* expect: -Wuse-after-free */
int end_twice(struct sluice_channel *channel)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, SLUICE_S(1));

    sluice_scope_end(scope, NULL);
    return sluice_scope_end(scope, NULL);
}
#endif
