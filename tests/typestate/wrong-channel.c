/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef ENDPOINT_AFTER_HANDSHAKE /* expect: -Wuse-after-free */
int ask_late(struct sluice_pd *pd, const struct sluice_endpoint *remote,
             struct sluice_endpoint *own)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);
    int result = sluice_prepared_channel_endpoint(prepared, own);

    sluice_channel_close(channel);
    return result;
}
#endif

#ifdef FORGOTTEN_PREPARED /* expect: -Wanalyzer-malloc-leak */
int prepare_and_forget(struct sluice_pd *pd, struct sluice_endpoint *endpoint)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);

    return sluice_prepared_channel_endpoint(prepared, endpoint);
}
#endif

#ifdef FORGOTTEN /* expect: -Wanalyzer-malloc-leak */
int connect_and_forget(struct sluice_prepared_channel *prepared,
                       const struct sluice_endpoint *remote)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);

    return sluice_channel_state(channel);
}
#endif

#ifdef FREE_PREPARED /* expect: -Wmismatched-dealloc */
void free_prepared(struct sluice_pd *pd)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);

    free(prepared);
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_channel(struct sluice_prepared_channel *prepared, const struct sluice_endpoint *remote)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);

    free(channel);
}
#endif

#ifdef HANDSHAKE_AFTER_FREE /* expect: -Wuse-after-free */
struct sluice_channel *connect_freed(struct sluice_pd *pd, const struct sluice_endpoint *remote)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);

    sluice_prepared_channel_free(prepared);
    return sluice_prepared_channel_handshake(prepared, remote);
}
#endif

#ifdef HANDSHAKE_AGAIN /* expect: -Wincompatible-pointer-types */
struct sluice_channel *connect_connected(struct sluice_channel *channel,
                                         const struct sluice_endpoint *remote)
{
    return sluice_prepared_channel_handshake(channel, remote);
}
#endif

#ifdef IGNORED_CANCEL /* expect: -Wunused-result */
/* If it failed, the memory is still in use. */
void give_up(struct sluice_channel *channel, const struct sluice_handle *handle)
{
    struct sluice_completion completion;

    sluice_channel_cancel(channel, handle, &completion);
}
#endif

#ifdef IGNORED_FLUSH /* expect: -Wunused-result */
/* If it timed out, the memory is still in use. */
void flush(struct sluice_channel *channel)
{
    sluice_channel_flush(channel, SLUICE_S(1));
}
#endif

#ifdef IGNORED_HANDSHAKE /* expect: -Wunused-result */
void connect_nothing(struct sluice_prepared_channel *prepared, const struct sluice_endpoint *remote)
{
    sluice_prepared_channel_handshake(prepared, remote);
}
#endif

#ifdef IGNORED_POST /* expect: -Wunused-result */
void post_blindly(struct sluice_channel *channel, const struct sluice_request *request)
{
    sluice_channel_post(channel, request, 1, SLUICE_S(1), NULL);
}
#endif

#ifdef IGNORED_PREPARE /* expect: -Wunused-result */
void prepare_nothing(struct sluice_pd *pd)
{
    sluice_channel_prepare(pd, NULL);
}
#endif

#ifdef IGNORED_SEND_UNPOLLED /* expect: -Wunused-result */
/* Ignores that it may not have been posted at all. */
void send_unpolled(struct sluice_channel *channel, const struct sluice_sge *sge)
{
    sluice_channel_send_unpolled(channel, sge, 1, SLUICE_S(1), NULL);
}
#endif

#ifdef IGNORED_SEND /* expect: -Wunused-result */
void send_blindly(struct sluice_channel *channel, const struct sluice_sge *sge)
{
    sluice_channel_send(channel, sge, 1, SLUICE_S(1));
}
#endif

#ifdef SECOND_HANDSHAKE /* expect: -Wuse-after-free */
void connect_twice(struct sluice_pd *pd, const struct sluice_endpoint *remote)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    struct sluice_channel *one = sluice_prepared_channel_handshake(prepared, remote);
    struct sluice_channel *two = sluice_prepared_channel_handshake(prepared, remote);

    sluice_channel_close(one);
    sluice_channel_close(two);
}
#endif

#ifdef SEND_AFTER_CLOSE /* expect: -Wuse-after-free */
int send_late(struct sluice_prepared_channel *prepared, const struct sluice_endpoint *remote,
              const struct sluice_sge *sge)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);

    sluice_channel_close(channel);
    return sluice_channel_send(channel, sge, 1, SLUICE_S(1));
}
#endif

#ifdef SEND_AFTER_RESET /* expect: -Wuse-after-free */
int send_after_reset(struct sluice_prepared_channel *prepared, const struct sluice_endpoint *remote,
                     const struct sluice_sge *sge)
{
    struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, remote);
    struct sluice_prepared_channel *again = sluice_channel_reset(channel);
    int result = sluice_channel_send(channel, sge, 1, SLUICE_S(1));

    sluice_prepared_channel_free(again);
    return result;
}
#endif

#ifdef SEND_BEFORE_HANDSHAKE /* expect: -Wincompatible-pointer-types */
int send_early(struct sluice_prepared_channel *prepared, const struct sluice_sge *sge)
{
    return sluice_channel_send(prepared, sge, 1, SLUICE_S(1));
}
#endif
