/* SPDX-License-Identifier: MIT */
/*
 * The life of a peer as the program drives it: its queue pair is made, connected, drained and made
 * anew, and its state is told.
 */
#include "config.h"

#include <string.h>

#include "engine/engine.h"
#include "engine/life.h"
#include "engine/peer/arrivals.h"
#include "engine/peer/probe.h"
#include "engine/progress/progress.h"

int slu_peer_identify(struct slu_peer *peer)
{
    struct slu_name *name = &peer->name;
    int error = 0;

    name->generation = 1;
    while (error == 0 && name->identity == 0)
        error = slu_random(&name->identity, sizeof name->identity);
    return error == 0
               ? 0
               : slu_listed(slu_fail(-error, "no random numbers for peers: %s", strerror(-error)));
}

int slu_peer_create(struct slu_engine *engine, struct slu_peer *peer)
{
    int error;

    slu_peer_init(engine, peer);
    slu_peer_tell_state(engine, peer);
    error = slu_listed(
        engine->transport->qp_create(engine->pd->transport, engine->cq, &engine->attr, &peer->qp));
    if (error == 0)
        peer->qp->peer = slu_peer_index(engine, peer);
    return error;
}

void slu_peer_endpoint(const struct slu_engine *engine, const struct slu_peer *peer,
                       struct sluice_endpoint *endpoint)
{
    struct slu_endpoint filled = {.transport = engine->transport->id,
                                  .identity = peer->name.identity,
                                  .generation = peer->name.generation,
                                  .access = engine->attr.access};

    engine->transport->qp_endpoint(peer->qp, &filled);
    slu_endpoint_encode(&filled, endpoint);
}

static const char *transport_name(uint32_t id)
{
    return id == SLU_TRANSPORT_VERBS ? "verbs" : "soft";
}

/*
 * Checks whether an endpoint is stale. An endpoint from before the peer's last reset is. So is the
 * endpoint of a connection that this side has reset, if the peer had used it. If the peer had not
 * got as far as that connection, it may still use the same endpoint.
 */
static int check_generation(const struct slu_peer *peer, const struct slu_endpoint *remote)
{
    const struct slu_name *name = &peer->name;

    if (remote->identity != name->remote_identity || remote->generation > name->remote_generation ||
        (remote->generation == name->remote_generation && !name->remote_used))
        return 0;
    return slu_fail(ESTALE,
                    "endpoint is stale: it is generation %llu of a peer to whose generation %llu "
                    "this side was connected before; the peer must be reset too, and its new "
                    "endpoint be exchanged",
                    (unsigned long long)remote->generation,
                    (unsigned long long)peer->name.remote_generation);
}

/*
 * Maps an error of a handshake with slu_listed(), except those that only a handshake has: about the
 * endpoint, and on RoCE about resolving the peer's host.
 */
static int listed_of_handshake(int error)
{
    switch (-error) {
    case EPROTO:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ETIMEDOUT:
        return error;
    default:
        return slu_listed(error);
    }
}

int slu_peer_connect(struct slu_engine *engine, struct slu_peer *peer,
                     const struct sluice_endpoint *remote)
{
    struct slu_endpoint decoded;
    int error = slu_endpoint_decode(remote, &decoded);

    if (error == 0 && decoded.transport != engine->transport->id)
        error = slu_fail(EPROTOTYPE,
                         "endpoint is of transport %s, this side runs %s: open devices of one kind "
                         "on both sides",
                         transport_name(decoded.transport), engine->transport->name);
    if (error == 0)
        error = check_generation(peer, &decoded);
    if (error == -ESTALE)
        return error;
    if (error == 0 && engine->keepalive > 0)
        error = slu_probe_check(engine, slu_peer_index(engine, peer), decoded.access);
    if (error == 0)
        error = listed_of_handshake(engine->transport->qp_connect(peer->qp, &decoded));
    if (error == 0) {
        peer->state = SLUICE_STATE_READY;
        engine->ready_count++;
        slu_peer_tell_state(engine, peer);
        peer->name.remote_identity = decoded.identity;
        peer->name.remote_generation = decoded.generation;
        peer->name.remote_used = false;
        slu_probe_connected(engine, peer, decoded.access);
        return slu_arrivals_begin(engine, peer);
    }
    peer->connect_error = error;
    slu_peer_keep_reason(peer);
    slu_peer_fail(engine, peer, SLUICE_STATUS_BAD_RESP_ERR, SLUICE_OP_NONE, 0);
    return error;
}

void slu_peer_end(struct slu_engine *engine, struct slu_peer *peer)
{
    SLU_PROBE4(drain_begin, engine, slu_peer_index(engine, peer), engine->pending[SLU_SEND_QUEUE],
               engine->pending[SLU_RECEIVE_QUEUE]);
    slu_peer_close(engine, peer);
    peer->drain_by = slu_now() + SLU_DRAIN_TIME;
    if (peer->drain_by < engine->next_drain)
        engine->next_drain = peer->drain_by;
    slu_peer_await_idle(engine, peer);
    slu_peer_abandon(engine, peer);
    /* Receives of the pool that the queue pair has used are of this peer, not of its successor. */
    if (engine->attr.pool != NULL)
        slu_progress_all(engine);
    SLU_PROBE4(drain_end, engine, slu_peer_index(engine, peer), engine->pending[SLU_SEND_QUEUE],
               engine->pending[SLU_RECEIVE_QUEUE]);
}

int slu_peer_renew(struct slu_engine *engine, struct slu_peer *peer)
{
    int error;

    slu_peer_end(engine, peer);
    peer->name.remote_used |= slu_probe_heard(peer);
    peer->name.generation++;
    error = slu_peer_create(engine, peer);
    if (error < 0) {
        peer->connect_error = error;
        slu_peer_keep_reason(peer);
        slu_peer_fail(engine, peer, SLUICE_STATUS_GENERAL_ERR, SLUICE_OP_NONE, (uint32_t)-error);
    }
    return error;
}

int slu_peer_reset(struct slu_engine *engine, struct slu_peer *peer)
{
    int error = slu_peer_renew(engine, peer);

    peer->counts.resets += error == 0;
    SLU_PROBE4(reset, engine, slu_peer_index(engine, peer), peer->name.generation, error);
    return error;
}

int slu_peer_state(struct slu_engine *engine, struct slu_peer *peer)
{
    bool armed = slu_query_enter(engine);

    slu_peer_notice_loss(engine, peer);
    slu_query_leave(engine, armed);
    return (int)peer->state;
}
