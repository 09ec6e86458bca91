/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef ACCEPT_TWICE /* expect: -Wuse-after-free */
void let_in_twice(struct sluice_listener *listener, struct sluice_pd *pd)
{
    struct sluice_incoming *incoming = sluice_listener_next(listener, 0);
    struct sluice_channel *channel = sluice_incoming_accept(incoming, pd, NULL, NULL, 0);

    sluice_channel_close(channel);
    channel = sluice_incoming_accept(incoming, pd, NULL, NULL, 0);
    sluice_channel_close(channel);
}
#endif

#ifdef ADMIT_TWICE /* expect: -Wuse-after-free */
int begin_twice(struct sluice_listener *listener, struct sluice_pd *pd)
{
    struct sluice_incoming *incoming = sluice_listener_next(listener, 0);
    int error = sluice_incoming_admit(incoming, pd, NULL, NULL, 0, 1);

    return error + sluice_incoming_admit(incoming, pd, NULL, NULL, 0, 2);
}
#endif

#ifdef FORGOTTEN_CHANNEL /* expect: -Wanalyzer-malloc-leak */
int connect_and_forget(struct sluice_pd *pd)
{
    struct sluice_channel *channel = sluice_connect("host:1", pd, NULL, NULL, 0);

    return sluice_channel_state(channel);
}
#endif

#ifdef FORGOTTEN_INCOMING /* expect: -Wanalyzer-malloc-leak */
int look_and_forget(struct sluice_listener *listener, struct sluice_incoming_info *info)
{
    struct sluice_incoming *incoming = sluice_listener_next(listener, 0);

    return sluice_incoming_query(incoming, info);
}
#endif

#ifdef FORGOTTEN_LISTENER /* expect: -Wanalyzer-malloc-leak */
int listen_and_forget(void)
{
    struct sluice_listener *listener = sluice_listen(":0", NULL);

    return sluice_listener_fd(listener);
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_listener(void)
{
    struct sluice_listener *listener = sluice_listen(":0", NULL);

    free(listener);
}
#endif

#ifdef IGNORED_ACCEPT /* expect: -Wunused-result */
void accept_blindly(struct sluice_listener *listener, struct sluice_pd *pd)
{
    sluice_accept(listener, pd, NULL, 0);
}
#endif

#ifdef IGNORED_CONNECT /* expect: -Wunused-result */
void connect_blindly(struct sluice_multichannel *multichannel, uint32_t *peers)
{
    sluice_connect_into("host:1", multichannel, NULL, 0, peers, 1);
}
#endif

#ifdef QUERY_AFTER_ADMIT /* expect: -Wuse-after-free */
int ask_too_late(struct sluice_listener *listener, struct sluice_multichannel *multichannel,
                 struct sluice_incoming_info *info)
{
    struct sluice_incoming *incoming = sluice_listener_next(listener, 0);
    int error = sluice_incoming_admit_into(incoming, multichannel, NULL, SLUICE_S(1), 0);

    return error + sluice_incoming_query(incoming, info);
}
#endif

#ifdef QUERY_AFTER_REFUSAL /* expect: -Wuse-after-free */
int ask_late(struct sluice_listener *listener, struct sluice_incoming_info *info)
{
    struct sluice_incoming *incoming = sluice_listener_next(listener, 0);

    sluice_incoming_refuse(incoming, NULL);
    return sluice_incoming_query(incoming, info);
}
#endif
