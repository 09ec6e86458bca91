/* SPDX-License-Identifier: MIT */
/*
 * A peer of an engine: its queue pair, its state, and its first error.
 *
 *   PREPARED --connect--> READY --fail--> FAILED
 *       ^                   |                |
 *       +-------reset-------+----------------+
 *
 * In a multichannel, members.c adds --remove--> REMOVED from each of these.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/inside.h"

void slu_peer_init(const struct slu_engine *engine, struct slu_peer *peer)
{
    const struct slu_counts counts = peer->counts;
    const struct slu_name name = peer->name;

    memset(&peer->qp, 0, sizeof *peer - offsetof(struct slu_peer, qp));
    peer->counts = counts;
    peer->name = name;
    peer->free[SLU_SEND_QUEUE] = engine->attr.send_depth;
    peer->free[SLU_RECEIVE_QUEUE] = engine->attr.receive_depth;
    for (int queue = 0; queue < SLU_QUEUES; queue++)
        peer->stall[queue].index = SLU_NONE;
    peer->drain_by = SLUICE_FOREVER;
    slu_probe_init(peer);
    peer->state = SLUICE_STATE_PREPARED;
}

void slu_peer_tell_state(const struct slu_engine *engine, const struct slu_peer *peer)
{
    SLU_PROBE5(peer_state, engine, slu_peer_index(engine, peer), peer->state, peer->cause_status,
               peer->cause_vendor);
}

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

void slu_peer_keep_reason(struct slu_peer *peer)
{
    snprintf(peer->reason, sizeof peer->reason, "%s", sluice_last_error());
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

uint32_t slu_peer_judge_loss(const struct slu_engine *engine, struct slu_peer *peer,
                             uint32_t status)
{
    bool closed = false;

    if (status != SLUICE_STATUS_RETRY_EXC_ERR || engine->transport->qp_loss == NULL ||
        peer->qp == NULL)
        return status;
    peer->loss = engine->transport->qp_loss(peer->qp, &closed);
    return closed ? SLUICE_STATUS_PEER_CLOSED : status;
}

static void say_farewell(const struct slu_engine *engine, const struct slu_peer *peer,
                         enum slu_farewell why)
{
    if (engine->transport->qp_farewell != NULL && peer->qp != NULL)
        engine->transport->qp_farewell(peer->qp, why);
}

void slu_peer_say_closed(const struct slu_engine *engine, const struct slu_peer *peer)
{
    if (peer->state == SLUICE_STATE_READY)
        say_farewell(engine, peer, SLU_FAREWELL_CLOSED);
}

void slu_peer_close(struct slu_engine *engine, struct slu_peer *peer)
{
    slu_peer_say_closed(engine, peer);
    slu_peer_fail(engine, peer, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_OP_NONE, 0);
}

void slu_peer_fail(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                   uint32_t opcode, uint32_t vendor)
{
    bool real = status != SLUICE_STATUS_WR_FLUSH_ERR && status != SLUICE_STATUS_DEADLINE;

    if (peer->state == SLUICE_STATE_FAILED && peer->cause_inferred && real) {
        peer->cause_status = status;
        peer->cause_opcode = opcode;
        peer->cause_vendor = vendor;
        peer->cause_inferred = peer->async_error_pending = false;
        peer->reason[0] = '\0';
    }
    if (slu_peer_over(peer))
        return;
    peer->state = SLUICE_STATE_FAILED;
    engine->epoch++;
    peer->failed_in = engine->call_number;
    peer->failed_at = slu_now();
    peer->cause_status = status;
    peer->cause_opcode = opcode;
    peer->cause_vendor = vendor;
    peer->drain_by = peer->failed_at + SLU_DRAIN_TIME;
    if (peer->drain_by < engine->next_drain)
        engine->next_drain = peer->drain_by;
    slu_peer_tell_state(engine, peer);
    slu_probe_failed(engine, peer);
    if (!real)
        say_farewell(engine, peer, SLU_FAREWELL_GAVE_UP);
    if (peer->qp != NULL)
        engine->transport->qp_error(peer->qp);
    if (status != SLUICE_STATUS_WR_FLUSH_ERR)
        slu_log(SLUICE_LOG_DEBUG, "channel %llu, peer %u failed: %s",
                (unsigned long long)engine->tag, slu_peer_index(engine, peer),
                sluice_status_name(status));
}

void slu_peer_fail_alone(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                         uint32_t vendor, bool inferred, const char *reason)
{
    bool first = peer->state != SLUICE_STATE_FAILED;

    if (peer->state == SLUICE_STATE_REMOVED || (!first && (!peer->cause_inferred || inferred)))
        return;
    slu_peer_fail(engine, peer, status, SLUICE_OP_NONE, vendor);
    snprintf(peer->reason, sizeof peer->reason, "%s", reason);
    peer->async_error_pending = first;
    peer->cause_inferred = inferred;
}

void slu_peers_alerted(struct slu_engine *engine)
{
    struct slu_alert alert;

    while (engine->transport->cq_alert != NULL && engine->transport->cq_alert(engine->cq, &alert)) {
        struct slu_peer *peer = &engine->peers[alert.qp->peer];
        uint32_t status = slu_peer_judge_loss(engine, peer, alert.status);

        /*
         * The requests in flight will complete at once, and the oldest of them reports the failure.
         */
        if (status == SLUICE_STATUS_PEER_CLOSED && slu_peer_busy(peer))
            continue;
        /* The text of the peer's own farewell is better than that of the event that followed it. */
        slu_peer_fail_alone(engine, peer, status, alert.vendor, alert.inferred,
                            status == alert.status ? alert.reason : "");
    }
}

static bool peer_idle(void *argument)
{
    return !slu_peer_busy(argument);
}

void slu_peer_await_idle(struct slu_engine *engine, struct slu_peer *peer)
{
    slu_wait(engine, peer_idle, peer, SLUICE_FOREVER);
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
    SLU_PROBE4(drain_end, engine, slu_peer_index(engine, peer), engine->pending[SLU_SEND_QUEUE],
               engine->pending[SLU_RECEIVE_QUEUE]);
}

int slu_peer_reset(struct slu_engine *engine, struct slu_peer *peer)
{
    int error;

    slu_peer_end(engine, peer);
    peer->name.remote_used |= slu_probe_heard(peer);
    peer->name.generation++;
    error = slu_peer_create(engine, peer);
    peer->counts.resets += error == 0;
    SLU_PROBE4(reset, engine, slu_peer_index(engine, peer), peer->name.generation, error);
    if (error < 0) {
        peer->connect_error = error;
        slu_peer_keep_reason(peer);
        slu_peer_fail(engine, peer, SLUICE_STATUS_GENERAL_ERR, SLUICE_OP_NONE, (uint32_t)-error);
    }
    return error;
}

bool slu_peer_has_message(const struct slu_peer *peer)
{
    const struct slu_ring *ring = &peer->rings[SLU_SEND_QUEUE];
    const struct slu_entry *entry = slu_ring_entry(ring, ring->oldest);

    return peer->state == SLUICE_STATE_READY && ring->oldest != ring->next &&
           entry->state == SLU_ENTRY_PENDING && entry->opcode == SLUICE_OP_SEND;
}

void slu_peer_notice_loss(struct slu_engine *engine, struct slu_peer *peer)
{
    slu_peers_alerted(engine);
    if (peer->state == SLUICE_STATE_READY &&
        engine->transport->qp_state(peer->qp) == SLU_QP_ERROR) {
        slu_peer_fail(engine, peer, slu_peer_judge_loss(engine, peer, SLUICE_STATUS_RETRY_EXC_ERR),
                      SLUICE_OP_NONE, 0);
        peer->cause_inferred = true;
    }
}

int slu_peer_state(struct slu_engine *engine, struct slu_peer *peer)
{
    slu_engine_enter(engine);
    slu_progress_all(engine);
    slu_peer_notice_loss(engine, peer);
    slu_engine_leave(engine);
    return (int)peer->state;
}

bool slu_peer_error(const struct slu_engine *engine, const struct slu_peer *peer,
                    struct sluice_error *error)
{
    enum sluice_error_class error_class;

    *error = (struct sluice_error){.size = sizeof *error, .peer = slu_peer_index(engine, peer)};
    if (peer->state != SLUICE_STATE_FAILED)
        return false;
    error_class = slu_class_of(peer->cause_status, peer->cause_opcode);
    error->opcode = peer->cause_opcode;
    error->status = peer->cause_status;
    error->vendor = peer->cause_vendor;
    error->error_class = error_class;
    error->error = peer->connect_error != 0 ? peer->connect_error : slu_class_error(error_class);
    slu_peer_describe(peer, error);
    return true;
}
