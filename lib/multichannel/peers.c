/* SPDX-License-Identifier: MIT */
/* The peers of a multichannel: state, first error, and reset. */
#include "config.h"

#include "engine/statistics/timing.h"
#include "multichannel/multichannel.h"

int slu_multichannel_find(const struct sluice_multichannel *multichannel, uint32_t peer,
                          struct slu_peer **found)
{
    uint32_t count;

    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    count = multichannel->base.engine->peer_count;
    if (count == 0)
        return slu_misuse(EINVAL, "peer %u: there are none yet", peer);
    if (peer >= count)
        return slu_misuse(EINVAL, "peer %u: there are peers 0..%u", peer, count - 1);
    *found = &multichannel->base.engine->peers[peer];
    return 0;
}

int slu_multichannel_find_present(const struct sluice_multichannel *multichannel, uint32_t peer,
                                  struct slu_peer **found)
{
    int error = slu_multichannel_find(multichannel, peer, found);

    if (error == 0 && (*found)->state == SLUICE_STATE_REMOVED)
        error = slu_fail(ENOTCONN, "peer %u was removed", peer);
    return error;
}

/* Fails: the node would be left with a multichannel or a peer that is gone. */
static int fail_owned(const char *node_call)
{
    return slu_misuse(EINVAL, "the multichannel belongs to a node: use %s", node_call);
}

static void end_users(struct slu_channel *object)
{
    struct slu_channel_user *user;

    while ((user = LIST_FIRST(&object->users)) != NULL) {
        LIST_REMOVE(user, link);
        user->closed(user);
    }
}

void sluice_multichannel_close(struct sluice_multichannel *multichannel)
{
    SLU_UNCANCELLED_BLOCK;
    if (!slu_may_end(multichannel, SLU_MAGIC_MULTICHANNEL, "multichannel"))
        return;
    if (multichannel->base.owned) {
        fail_owned("sluice_node_close()");
        return;
    }
    end_users(&multichannel->base);
    slu_channel_destroy(&multichannel->base);
}

int sluice_multichannel_shutdown(struct sluice_multichannel *multichannel, int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    if (multichannel->base.owned)
        return fail_owned("sluice_node_shutdown()");
    return slu_engine_shutdown(multichannel->base.engine, deadline);
}

uint32_t sluice_multichannel_peers(const struct sluice_multichannel *multichannel)
{
    if (slu_is_multichannel(multichannel))
        return multichannel->base.engine->peer_count;
    slu_not_a_multichannel(multichannel);
    return 0;
}

int sluice_multichannel_peer_state(const struct sluice_multichannel *multichannel, uint32_t peer)
{
    struct slu_peer *found;
    int error = slu_multichannel_find(multichannel, peer, &found);

    if (error == 0)
        error = slu_peer_state(multichannel->base.engine, found);
    return error == SLU_PEER_ABSENT ? SLUICE_STATE_PREPARED : error;
}

int sluice_multichannel_peer_error(const struct sluice_multichannel *multichannel, uint32_t peer,
                                   struct sluice_error *error)
{
    struct slu_peer *found;
    int result = slu_multichannel_find_present(multichannel, peer, &found);

    return result == 0 ? slu_peer_first_error(multichannel->base.engine, found, error) : result;
}

int sluice_multichannel_wait_connected(struct sluice_multichannel *multichannel, int64_t timeout)
{
    SLU_UNCANCELLED_BLOCK;
    return slu_is_multichannel(multichannel)
               ? slu_wait_connected(multichannel->base.engine, NULL, timeout)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_peer_wait_connected(struct sluice_multichannel *multichannel, uint32_t peer,
                                            int64_t timeout)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_peer *found;
    int error = slu_multichannel_find_present(multichannel, peer, &found);

    return error == 0 ? slu_wait_connected(multichannel->base.engine, found, timeout) : error;
}

int sluice_multichannel_peer_query(const struct sluice_multichannel *multichannel, uint32_t peer,
                                   struct sluice_channel_info *info)
{
    struct slu_peer *found;
    int error = slu_multichannel_find_present(multichannel, peer, &found);

    return error == 0 ? slu_peer_query(multichannel->base.engine, found, info) : error;
}

int sluice_multichannel_counters(const struct sluice_multichannel *multichannel,
                                 struct sluice_counters *counters)
{
    return slu_is_multichannel(multichannel)
               ? slu_counters(multichannel->base.engine, NULL, counters)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_peer_counters(const struct sluice_multichannel *multichannel, uint32_t peer,
                                      struct sluice_counters *counters)
{
    struct slu_peer *found;
    int error = slu_multichannel_find(multichannel, peer, &found);

    return error == 0 ? slu_counters(multichannel->base.engine, found, counters) : error;
}

int sluice_multichannel_histogram(const struct sluice_multichannel *multichannel, uint32_t opcode,
                                  struct sluice_histogram *histogram)
{
    return slu_is_multichannel(multichannel)
               ? slu_histogram_read(multichannel->base.engine, NULL, opcode, histogram)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_peer_histogram(const struct sluice_multichannel *multichannel,
                                       uint32_t peer, uint32_t opcode,
                                       struct sluice_histogram *histogram)
{
    struct slu_peer *found;
    int error = slu_multichannel_find(multichannel, peer, &found);

    return error == 0 ? slu_histogram_read(multichannel->base.engine, found, opcode, histogram)
                      : error;
}

int sluice_multichannel_histogram_reset(struct sluice_multichannel *multichannel)
{
    return slu_is_multichannel(multichannel) ? slu_histogram_reset(multichannel->base.engine)
                                             : slu_not_a_multichannel(multichannel);
}

/* Fails for a multichannel whose peers connect on their own. */
static int check_connects(const struct sluice_multichannel *multichannel)
{
    if (multichannel->base.engine->lazy == NULL)
        return 0;
    return slu_misuse(EINVAL, "the ranks of a lazy node connect on their own, those that have "
                              "failed by sluice_node_reach()");
}

int sluice_multichannel_peer_reset(struct sluice_multichannel *multichannel, uint32_t peer,
                                   struct sluice_endpoint *endpoint)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_peer *found;
    int error = slu_multichannel_find_present(multichannel, peer, &found);

    if (error == 0)
        error = check_connects(multichannel);
    if (error < 0)
        return error;
    if (endpoint == NULL)
        return slu_misuse(EINVAL, "endpoint must not be NULL");
    if (multichannel->base.engine->scope.open)
        return slu_scope_in_use();
    return slu_channel_reset(&multichannel->base, peer, endpoint);
}

int sluice_multichannel_peer_handshake(struct sluice_multichannel *multichannel, uint32_t peer,
                                       const struct sluice_endpoint *remote)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_peer *found;
    int error = slu_multichannel_find_present(multichannel, peer, &found);

    if (error == 0)
        error = check_connects(multichannel);
    if (error < 0)
        return error;
    if (remote == NULL)
        return slu_misuse(EINVAL, "a handshake needs the peer's endpoint");
    if (multichannel->base.engine->scope.open)
        return slu_scope_in_use();
    if (found->state == SLUICE_STATE_FAILED)
        return slu_fail(EINVAL, "peer %u has failed: reset it first", peer);
    if (found->state != SLUICE_STATE_PREPARED)
        return slu_misuse(EINVAL, "peer %u is connected: reset it first", peer);
    return slu_channel_connect(&multichannel->base, peer, remote);
}
