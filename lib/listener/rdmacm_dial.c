/* SPDX-License-Identifier: MIT */
/*
 * The dialing side over rdma_cm. Each channel has a connection. The channels are connected one
 * after another, and for each the addresses are tried one after another until one of them answers.
 */
#include "config.h"

#include <stdio.h>

#include "connect/cm.h"
#include "listener/rdmacm.h"
#include "transport/verbs/pairs/pairs.h"

/* Pauses between two rounds over the addresses: the first one, and the longest. */
#define PAUSE_TIME SLUICE_MS(5)
#define LONG_PAUSE_TIME SLUICE_MS(400)

struct call {
    const char *name; /* as given by the program */
    const struct sluice_connect_attr *options;
    struct slu_joint *joint;
    int64_t until;
    struct rdma_event_channel *events;
    uint32_t count;
    struct slu_address addresses[SLU_DIAL_MOST];
    bool iwarp;   /* rdma_cm connects the queue pair by itself */
    bool used_up; /* an attempt has left the queue pair unusable */
    bool again;   /* the last failure may be temporary */
    bool over;    /* do not try another address */
};

static int check(const struct sluice_connect_attr *options, const struct slu_joint *joint)
{
    const struct sluice_private_data *own = options->own;
    struct slu_secret secret;
    int error = slu_rdmacm_check_context(joint);

    if (error == 0)
        error = slu_listener_secret(options->secret_file, &secret);
    if (error < 0)
        return error;
    error = slu_rdmacm_refuse_secret(&secret);
    slu_secret_forget(&secret);
    if (error == 0 && own != NULL && own->bytes > SLU_CM_ASK_BYTES)
        error =
            slu_misuse(EINVAL, "private data of %u bytes: rdma_cm takes %d along with a connect",
                       own->bytes, SLU_CM_ASK_BYTES);
    return error;
}

/* Fails with the reason in the rejection of a program, as far as the reason is text. */
static int fail_rejected(struct call *call, const struct slu_cm *cm)
{
    char text[SLU_PASSAGE_TEXT];
    uint32_t count = (uint32_t)strnlen((const char *)cm->said, cm->said_bytes);

    slu_passage_clean(text, cm->said, count);
    call->again = strcmp(text, SLU_RDMACM_BUSY) == 0;
    return slu_fail(ECONNREFUSED, "%.64s refused us%s%.220s", call->name, count > 0 ? ": " : "",
                    text);
}

static int fail_ended(struct call *call, const struct slu_cm *cm, const struct slu_address *address)
{
    char text[SLU_ADDRESS_TEXT];

    if (cm->reason == SLU_CM_REASON_REJECTED)
        return fail_rejected(call, cm);
    call->again =
        cm->reason == SLU_CM_REASON_STALE ||
        (cm->reason == SLU_CM_REASON_NOBODY && (call->options->flags & SLUICE_CONNECT_WAIT) != 0);
    return slu_fail(cm->error, "cannot connect to %.64s: %s: %s", call->name,
                    slu_address_text(address, text), cm->why);
}

/* Fails because a step failed at once. The thread's text has the cause. */
static int fail_step(const struct call *call, int error, const struct slu_address *address)
{
    struct slu_text reason;
    char text[SLU_ADDRESS_TEXT];

    slu_text_save(&reason);
    return slu_fail(-error, "cannot connect to %.64s: %s: %.200s", call->name,
                    slu_address_text(address, text), reason.bytes);
}

static int fail_late(const struct call *call, const struct slu_address *address)
{
    char text[SLU_ADDRESS_TEXT];

    return slu_fail(ETIMEDOUT, "cannot connect to %.64s: %s did not answer in time", call->name,
                    slu_address_text(address, text));
}

/* Waits until the connection is in this state. */
static int await(struct call *call, const struct slu_cm *cm, enum slu_cm_state state,
                 const struct slu_address *address, int64_t until)
{
    struct slu_cm_reader reader = {.came = NULL};
    struct pollfd fds[2] = {{.fd = call->events->fd, .events = POLLIN}};

    for (;;) {
        slu_cm_read(call->events, &reader);
        if (cm->state == SLU_CM_ENDED)
            return fail_ended(call, cm, address);
        if (cm->state == state)
            return 0;
        if (slu_is_late(until))
            return fail_late(call, address);
        (void)!slu_duty_poll(call->joint->duty, fds, 1, until);
    }
}

/* Resolves the address and the route, and checks that the channel's device leads there. */
static int find(struct call *call, struct slu_cm *cm, const struct slu_address *address,
                int64_t until)
{
    int error = slu_cm_find(cm, address, until);

    if (error < 0)
        return fail_step(call, error, address);
    error = await(call, cm, SLU_CM_FOUND, address, until);
    if (error == 0)
        error = slu_verbs_cm_check(slu_joint_context(call->joint), cm, call->name);
    if (error < 0)
        return error;
    error = slu_cm_route(cm, until);
    return error < 0 ? fail_step(call, error, address)
                     : await(call, cm, SLU_CM_ROUTED, address, until);
}

/* On iWARP the answer connects the queue pair, and an attempt that fails leaves it unusable. */
static int ask(struct call *call, struct slu_cm *cm, uint32_t index,
               const struct slu_address *address, int64_t until)
{
    struct rdma_conn_param param;
    int error = call->used_up ? slu_joint_renew(call->joint, index) : 0;

    call->used_up = false;
    if (error < 0)
        return error;
    param = slu_rdmacm_param(call->joint, index, NULL, call->options->own);
    call->used_up = call->iwarp;
    error = slu_cm_ask(cm, &param, until);
    return error < 0
               ? fail_step(call, error, address)
               : await(call, cm, call->iwarp ? SLU_CM_CONNECTED : SLU_CM_ANSWERED, address, until);
}

static void keep_answer(const struct call *call, const struct slu_cm *cm)
{
    struct sluice_private_data *peer = call->options->peer;

    if (peer == NULL)
        return;
    peer->bytes = cm->said_bytes;
    memcpy(peer->data, cm->said, cm->said_bytes);
}

/*
 * Completes an answered connection. This uses up the prepared channel, so no other address is tried
 * even if it fails.
 */
static int finish(struct call *call, struct slu_cm *cm, uint32_t index)
{
    int error = slu_rdmacm_join(call->joint, index, cm);

    call->over = true;
    if (error == 0 && !call->iwarp)
        error = slu_cm_confirm(cm);
    if (error == 0)
        error = slu_rdmacm_hand_over(call->joint, index, cm);
    return error;
}

static int try(struct call *call, uint32_t index, const struct slu_address *address, int64_t until)
{
    struct slu_cm *cm = slu_cm_make(call->events);
    int error;

    call->again = false;
    if (cm == NULL)
        return -errno;
    error = find(call, cm, address, until);
    if (error == 0)
        error = ask(call, cm, index, address, until);
    if (error == 0) {
        keep_answer(call, cm);
        error = finish(call, cm, index);
    }
    if (error < 0) {
        struct slu_text text;

        slu_text_save(&text);
        slu_cm_end(cm);
        slu_text_restore(&text);
    }
    return error;
}

/*
 * Returns the deadline for one address: an equal share of the remaining time, and for the last
 * address all of it.
 */
static int64_t part_of(const struct call *call, uint32_t index)
{
    int64_t now = slu_now();

    if (call->until == INT64_MAX || now >= call->until || index + 1 == call->count)
        return call->until;
    return now + (call->until - now) / (call->count - index);
}

static int try_all(struct call *call, uint32_t index, bool *again)
{
    int error = 0;

    *again = false;
    for (uint32_t i = 0; i < call->count; i++) {
        error = try(call, index, &call->addresses[i], part_of(call, i));
        if (error == 0 || call->over)
            break;
        *again |= call->again;
    }
    return error;
}

static int connect_one(struct call *call, uint32_t index)
{
    int64_t pause = PAUSE_TIME;
    struct pollfd fds[1];

    for (;;) {
        bool again;
        int error = try_all(call, index, &again);
        int64_t next = slu_now() + pause;

        if (error == 0 || call->over || !again || next >= call->until || slu_is_interrupted())
            return error;
        (void)!slu_duty_poll(call->joint->duty, fds, 0, next);
        pause = pause * 2 < LONG_PAUSE_TIME ? pause * 2 : LONG_PAUSE_TIME;
    }
}

/* Connects all channels. The first failure undoes all of them. */
static int connect_all(struct call *call)
{
    int error = slu_joint_prepare(call->joint);

    if (error == 0)
        error = slu_rdmacm_expect(call->joint);
    for (uint32_t i = 0; i < call->joint->count && error == 0; i++) {
        call->over = call->used_up = false;
        error = connect_one(call, i);
    }
    if (error < 0)
        slu_joint_undo(call->joint);
    return error;
}

int slu_rdmacm_connect(const char *address, const struct sluice_connect_attr *options,
                       struct slu_joint *joint, int64_t until)
{
    struct call call = {.name = address, .options = options, .joint = joint, .until = until};
    int error = check(options, joint);
    int count;

    if (error < 0)
        return error;
    joint->rdmacm = true;
    call.iwarp = slu_joint_context(joint)->by_rdmacm;
    count = slu_connect_find(address, slu_rdmacm_address(address), until, call.addresses);
    if (count < 0)
        return count;
    call.count = (uint32_t)count;
    call.events = slu_cm_events_open();
    if (call.events == NULL)
        return -errno;
    error = connect_all(&call);
    slu_cm_events_close(call.events);
    return error;
}
