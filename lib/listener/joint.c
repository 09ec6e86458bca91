/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "listener/joint.h"

#include <poll.h>
#include <stdio.h>

#include "channel/channel.h"
#include "multichannel/multichannel.h"

/* Interval of checks whether the other side has left, or sent the reason why it failed. */
#define LOOK_TIME SLUICE_MS(20)
/* The same for a thread that has a duty, which it serves in between. */
#define DUTY_TIME SLUICE_MS(1)
/*
 * The other side sends its reason before it closes its channel, but over another connection: the
 * reason may come later.
 */
#define REASON_TIME SLUICE_MS(500)

int slu_joint_check(const struct slu_joint *joint)
{
    if (joint->multichannel == NULL)
        return slu_channel_check(joint->pd, joint->attr);
    return slu_is_multichannel(joint->multichannel)
               ? slu_scope_check(joint->multichannel->base.engine)
               : slu_not_a_multichannel(joint->multichannel);
}

static void enter(const struct slu_joint *joint)
{
    if (joint->guard != NULL)
        joint->guard->enter(joint->guard);
}

static void leave(const struct slu_joint *joint)
{
    if (joint->guard != NULL)
        joint->guard->leave(joint->guard);
}

static int add_peers(struct slu_joint *joint)
{
    while (joint->added < joint->count) {
        struct sluice_endpoint *own = &joint->own[joint->added];
        int peer = joint->rdmacm ? slu_multichannel_peer_add(joint->multichannel, own)
                                 : sluice_multichannel_peer_add(joint->multichannel, own);

        if (peer < 0)
            return peer;
        joint->generations[joint->added] =
            joint->multichannel->base.engine->peers[peer].name.index_generation;
        joint->peers[joint->added++] = (uint32_t)peer;
    }
    return 0;
}

int slu_joint_prepare(struct slu_joint *joint)
{
    int error;

    if (joint->multichannel == NULL) {
        joint->prepared = joint->rdmacm ? slu_channel_prepare(joint->pd, joint->attr)
                                        : sluice_channel_prepare(joint->pd, joint->attr);
        return joint->prepared == NULL
                   ? -errno
                   : sluice_prepared_channel_endpoint(joint->prepared, &joint->own[0]);
    }
    enter(joint);
    error = add_peers(joint);
    leave(joint);
    return error;
}

int slu_joint_prepare_for(struct slu_joint *joint, struct sluice_incoming *incoming)
{
    struct sluice_listener *listener = incoming->listener;
    int error = slu_joint_prepare(joint);

    if (error != -EMFILE || listener->magic != SLU_MAGIC_LISTENER ||
        listener->offers.acceptor.count == 0)
        return error;
    slu_acceptor_clear(&listener->offers.acceptor);
    return slu_joint_prepare(joint);
}

static struct slu_engine *engine_of(const struct slu_joint *joint)
{
    if (joint->multichannel != NULL)
        return joint->multichannel->base.engine;
    return joint->channel != NULL ? joint->channel->base.engine : joint->prepared->base.engine;
}

static uint32_t peer_of(const struct slu_joint *joint, uint32_t index)
{
    return joint->multichannel != NULL ? joint->peers[index] : 0;
}

struct slu_peer *slu_joint_peer(const struct slu_joint *joint, uint32_t index)
{
    return &engine_of(joint)->peers[peer_of(joint, index)];
}

static bool is_there(const struct slu_joint *joint, uint32_t index)
{
    const struct slu_peer *peer = slu_joint_peer(joint, index);

    return joint->multichannel == NULL ||
           (peer->state != SLUICE_STATE_REMOVED &&
            peer->name.index_generation == joint->generations[index]);
}

int slu_joint_check_peer(const struct slu_joint *joint, uint32_t index)
{
    if (is_there(joint, index))
        return 0;
    return slu_fail(ENOTCONN, "peer %u was removed before it was connected", joint->peers[index]);
}

/*
 * Removes a peer even while the program has a scope of the multichannel open: the program never
 * received the peer, and there may be no later time. Work that the scope posted to it ends
 * regardless.
 */
static void remove_peer(const struct slu_joint *joint, uint32_t index)
{
    struct slu_engine *engine = engine_of(joint);

    slu_engine_enter(engine);
    slu_peer_remove(engine, slu_joint_peer(joint, index));
    slu_engine_leave(engine);
}

void slu_joint_undo(struct slu_joint *joint)
{
    struct slu_text text;

    slu_text_save(&text);
    enter(joint);
    if (joint->prepared != NULL)
        sluice_prepared_channel_free(joint->prepared);
    if (joint->channel != NULL)
        sluice_channel_close(joint->channel);
    while (joint->added > 0)
        if (is_there(joint, --joint->added))
            remove_peer(joint, joint->added);
    leave(joint);
    joint->prepared = NULL;
    joint->channel = NULL;
    slu_text_restore(&text);
}

struct slu_qp *slu_joint_qp(const struct slu_joint *joint, uint32_t index)
{
    return slu_peer_first_qp(engine_of(joint), peer_of(joint, index));
}

struct slu_tcontext *slu_joint_context(const struct slu_joint *joint)
{
    const struct sluice_pd *pd =
        joint->multichannel != NULL ? joint->multichannel->base.engine->pd : joint->pd;

    return pd->context->transport;
}

int slu_joint_shake(struct slu_joint *joint, uint32_t index)
{
    int error = slu_joint_check_peer(joint, index);

    if (error < 0)
        return error;
    if (joint->multichannel != NULL)
        return sluice_multichannel_peer_handshake(joint->multichannel, joint->peers[index],
                                                  &joint->remote[index]);
    joint->channel = sluice_prepared_channel_handshake(joint->prepared, &joint->remote[0]);
    joint->prepared = NULL;
    return joint->channel == NULL ? -errno : 0;
}

int slu_joint_renew(struct slu_joint *joint, uint32_t index)
{
    struct slu_engine *engine = engine_of(joint);
    int error = slu_joint_check_peer(joint, index);

    if (error < 0)
        return error;
    slu_engine_enter(engine);
    error = slu_peer_renew(engine, slu_joint_peer(joint, index));
    slu_engine_leave(engine);
    return error;
}

bool slu_joint_is_busy(const struct slu_joint *joint)
{
    return joint->multichannel != NULL && joint->multichannel->base.engine->scope.open;
}

static int shake_hands(struct slu_joint *joint)
{
    int error = 0;

    enter(joint);
    for (uint32_t i = 0; i < joint->count && error == 0; i++)
        error = slu_joint_shake(joint, i);
    leave(joint);
    return error;
}

static int await_peer(const struct slu_joint *joint, uint32_t index, int64_t timeout)
{
    int error = slu_joint_check_peer(joint, index);
    struct slu_text text;

    if (error < 0)
        return error;
    slu_text_save(&text);
    error = slu_await_connected(engine_of(joint), slu_joint_peer(joint, index), timeout);
    if (error != -EOPNOTSUPP)
        return error;
    /* A peer that grants no access cannot be queried: the handshake has to be enough. */
    slu_text_restore(&text);
    return 0;
}

/* Waits; with a guard, lets the other threads use the multichannel in between. */
static int wait_for(const struct slu_joint *joint, uint32_t index, int64_t timeout)
{
    int64_t until = slu_after(timeout);
    int error;

    if (joint->guard == NULL)
        return await_peer(joint, index, timeout);
    for (;;) {
        enter(joint);
        error = await_peer(joint, index, 0);
        leave(joint);
        if (error != -ETIMEDOUT || slu_is_late(until))
            return error;
        (void)!SLU_UNCANCELLED(poll(NULL, 0, 1));
    }
}

/*
 * Fails with the thread's text. The other side reads it as well, and knows no numbers of peers:
 * "peer 9" is named by its role.
 */
static int fail_wire(const struct slu_passage *passage, int error)
{
    const char *role = passage->dialed ? "the server" : "the client";
    struct slu_text text;
    unsigned number;
    int skip = 0;

    slu_text_save(&text);
    if (sscanf(text.bytes, "peer %u%n", &number, &skip) != 1 || skip == 0)
        role = "";
    return slu_fail(-error, "%s answered, but the channel does not connect: %s%.200s", passage->who,
                    role, text.bytes + (role[0] != '\0' ? skip : 0));
}

/* Prefers the reason of the other side, which sends one before it closes its end, to an error. */
static int prefer_reason(struct slu_passage *passage, int error, bool *heard)
{
    struct slu_text text;
    int said = 0;

    slu_text_save(&text);
    if (!*heard && slu_passage_await_news(passage, REASON_TIME)) {
        *heard = true;
        said = slu_passage_receive(passage, NULL, 0);
    }
    if (said == -ECONNABORTED)
        return said;
    slu_text_restore(&text);
    return error;
}

static int explain_wire(struct slu_passage *passage, int error, bool *heard)
{
    int result = prefer_reason(passage, error, heard);

    return result == -ECONNABORTED ? result : fail_wire(passage, error);
}

int slu_joint_look(const struct slu_joint *joint, struct slu_passage *passage, uint32_t index,
                   int64_t timeout, bool *heard)
{
    int waited = wait_for(joint, index, timeout);

    return waited == 0 || waited == -ETIMEDOUT ? waited : explain_wire(passage, waited, heard);
}

int slu_joint_fail_late(const struct slu_joint *joint, const struct slu_passage *passage,
                        uint32_t index)
{
    (void)wait_for(joint, index, 0);
    return fail_wire(passage, -ETIMEDOUT);
}

/* Waits until all peers are connected. *heard: the other side has reported that it is done. */
static int await_wires(const struct slu_joint *joint, struct slu_passage *passage, bool *heard)
{
    int64_t pause = passage->duty != NULL ? DUTY_TIME : LOOK_TIME;
    int error = 0;

    for (uint32_t i = 0; i < joint->count && error == 0;) {
        int looked = slu_joint_look(joint, passage, i, pause, heard);

        if (looked == 0) {
            i++;
            continue;
        }
        if (passage->duty != NULL)
            (void)passage->duty->serve(passage->duty);
        error = looked != -ETIMEDOUT          ? looked
                : slu_is_late(passage->until) ? fail_wire(passage, -ETIMEDOUT)
                                              : 0;
        if (error == 0 && !*heard && slu_passage_has_news(passage)) {
            error = slu_passage_receive(passage, NULL, 0);
            *heard = true;
        }
    }
    return error;
}

int slu_joint_offer(struct slu_joint *joint, struct slu_passage *passage)
{
    return slu_passage_send(passage, joint->own, joint->count * SLUICE_ENDPOINT_BYTES);
}

int slu_joint_answer(struct slu_joint *joint, struct slu_passage *passage)
{
    int error = slu_passage_receive(passage, joint->remote, joint->count * SLUICE_ENDPOINT_BYTES);

    return error == 0 ? shake_hands(joint) : error;
}

/*
 * Tells whether the listener alone probes the connection. A device loses the probe of a side whose
 * peer is not ready yet, and sends it again only when a timer expires. This side is ready before
 * its endpoint reaches the listener, but not the other way round.
 */
static bool is_probed_once(const struct slu_joint *joint)
{
    return slu_joint_context(joint)->transport->probe_is_request;
}

/* Notes that the listener has reported the success of its probes. */
static void note_probed(const struct slu_joint *joint)
{
    struct slu_engine *engine = engine_of(joint);

    enter(joint);
    slu_engine_enter(engine);
    for (uint32_t i = 0; i < joint->count; i++)
        if (is_there(joint, i))
            slu_peer_heard(slu_joint_peer(joint, i));
    slu_engine_leave(engine);
    leave(joint);
}

/*
 * Receives the endpoints of the listener, and sends ours: before this side connects, so that a
 * listener on this host knows whom it meets; or after that, if the listener probes.
 */
static int exchange_endpoints(struct slu_joint *joint, struct slu_passage *passage)
{
    int error = slu_passage_receive(passage, joint->remote, joint->count * SLUICE_ENDPOINT_BYTES);

    if (error == 0 && !is_probed_once(joint))
        error = slu_joint_offer(joint, passage);
    if (error == 0)
        error = shake_hands(joint);
    if (error == 0 && is_probed_once(joint))
        error = slu_joint_offer(joint, passage);
    return error;
}

static int go_on(struct slu_joint *joint, struct slu_passage *passage)
{
    bool heard = false;
    int error = exchange_endpoints(joint, passage);

    if (error == 0 && !is_probed_once(joint))
        error = await_wires(joint, passage, &heard);
    /* The listener reports success last, after it has read that this side is done. */
    if (error == 0)
        error = slu_passage_send(passage, NULL, 0);
    if (error == 0 && !heard)
        error = slu_passage_receive(passage, NULL, 0);
    if (error == -ECONNRESET)
        error = prefer_reason(passage, error, &heard);
    if (error == 0 && is_probed_once(joint))
        note_probed(joint);
    return error;
}

int slu_joint_connect(struct slu_joint *joint, struct slu_passage *passage)
{
    int error = go_on(joint, passage);

    if (error == 0)
        return 0;
    /*
     * A reset may come from the channel alone, so the other side may still be there: send it the
     * error.
     */
    if (error != -ECONNABORTED)
        slu_passage_fail(passage, error);
    slu_joint_undo(joint);
    return error;
}
