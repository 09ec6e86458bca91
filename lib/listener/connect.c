/* SPDX-License-Identifier: MIT */
/* The dialing side of a connect by address. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <sluice/version.h>

#include "base/bytes.h"
#include "base/descriptor.h"
#include "connect/target.h"
#include "listener/rdmacm.h"

struct call {
    const char *name;                /* as given by the program */
    const struct slu_dialed *dialed; /* known addresses and secret; NULL: none */
    struct sluice_connect_attr options;
    struct slu_joint *joint;
    struct slu_secret secret;
    struct slu_target target;
    struct slu_passage passage;
    int64_t time; /* its deadline, for texts */
    uint8_t body[SLU_CONNECT_HEAD + SLUICE_PRIVATE_DATA_BYTES];
};

static int check_options(const struct sluice_connect_attr *given,
                         struct sluice_connect_attr *options)
{
    int error = SLU_ATTR_COPY(sluice_connect_attr, options, given);

    if (error < 0)
        return error;
    if ((options->flags & ~SLUICE_CONNECT_WAIT) != 0)
        return slu_misuse(EINVAL, "sluice_connect_attr.flags 0x%x: not known", options->flags);
    return slu_private_data_check(options->own);
}

static int find(struct call *call)
{
    const struct slu_dialed *dialed = call->dialed;
    struct slu_address found[SLU_DIAL_MOST];
    const struct slu_address *addresses = dialed != NULL ? dialed->addresses : found;
    int count = dialed != NULL
                    ? (int)dialed->count
                    : slu_connect_find(call->name, call->name, call->passage.until, found);

    for (int i = 0; i < count; i++)
        slu_dial_add(&call->target.dial, &addresses[i]);
    return count > 0 ? 0 : count;
}

static uint32_t make_body(const struct call *call, uint8_t *body)
{
    const struct sluice_private_data *own = call->options.own;
    uint8_t *at = slu_put(slu_put(body, SLUICE_VERSION_CODE, 4), call->joint->count, 4);

    if (own != NULL)
        memcpy(at, own->data, own->bytes);
    return SLU_CONNECT_HEAD + (own != NULL ? own->bytes : 0);
}

static int start(struct call *call)
{
    struct slu_target *target = &call->target;
    const struct slu_dialed *dialed = call->dialed;
    int error = dialed != NULL
                    ? slu_secret_copy(dialed->secret.bytes, dialed->secret.count, &call->secret)
                    : slu_listener_secret(call->options.secret_file, &call->secret);

    if (error < 0)
        return error;
    slu_target_init(target);
    target->dial.duty = call->joint->duty;
    target->purpose = SLU_PURPOSE_CONNECT;
    target->means = call->secret.bytes != NULL ? SLU_MEANS_SECRET : SLU_MEANS_NONE;
    target->secret = call->secret.bytes;
    target->secret_bytes = call->secret.count;
    target->not_there = (call->options.flags & SLUICE_CONNECT_WAIT) == 0;
    target->body = call->body;
    target->body_bytes = make_body(call, call->body);
    return find(call);
}

static int fail_target(const struct call *call, bool late)
{
    char why[200], text[SLU_ADDRESS_TEXT], time[SLU_DURATION_BYTES];
    int error = slu_target_explain(&call->target, why, sizeof why);

    if (late && call->target.proven)
        return slu_fail(
            ETIMEDOUT, "%.64s (%s) did not let us in within %s", call->name,
            slu_address_text(&call->target.dial.attempts[call->target.chosen].address, text),
            slu_say_duration(call->time, time));
    if (late)
        return slu_fail(ETIMEDOUT, "cannot connect to %.64s within %s: %s", call->name,
                        slu_say_duration(call->time, time), why);
    return slu_fail(-error, "cannot connect to %.64s: %s", call->name, why);
}

/* Fails with the reason that the other side gave in its verdict. */
static int fail_refused(const struct call *call)
{
    char text[SLU_PASSAGE_TEXT];
    uint32_t count;
    const uint8_t *body = slu_target_verdict(&call->target, &count);

    slu_passage_clean(text, body, count);
    return slu_fail(ECONNREFUSED, "%.64s refused us%s%.220s", call->name, count > 0 ? ": " : "",
                    text);
}

/* Returns 0 if the other side let us in, 1 if not yet, or an error. */
static int go_on(const struct call *call, enum slu_target_state state)
{
    switch (state) {
    case SLU_TARGET_ADMITTED:
        return 0;
    case SLU_TARGET_REFUSED:
        return fail_refused(call);
    case SLU_TARGET_HOPELESS:
        return fail_target(call, false);
    default:
        return 1;
    }
}

/* Dials until one of the addresses lets us in. Returns 0, or an error. */
static int dial(struct call *call)
{
    struct slu_target *target = &call->target;
    int result;

    do {
        int64_t next = call->passage.until;

        result = go_on(call, slu_target_tick(target, slu_now(), &next));
        if (result > 0 && slu_is_late(call->passage.until))
            result = fail_target(call, true);
        if (result > 0)
            result = go_on(call, slu_target_wait(target, next));
    } while (result > 0);
    return result;
}

static int keep_private_data(const struct call *call)
{
    uint32_t count;
    const uint8_t *body = slu_target_verdict(&call->target, &count);

    if (count > SLUICE_PRIVATE_DATA_BYTES)
        return slu_fail(EPROTO, "%.64s says %u bytes of private data", call->name, count);
    if (call->options.peer == NULL)
        return 0;
    call->options.peer->bytes = count;
    memcpy(call->options.peer->data, body, count);
    return 0;
}

static void clean_up(struct call *call)
{
    struct slu_text text;

    slu_text_save(&text);
    if (call->passage.fd >= 0)
        slu_fd_close(call->passage.fd);
    slu_target_end(&call->target);
    slu_secret_forget(&call->secret);
    slu_proof_forget(&call->passage.session, sizeof call->passage.session);
    slu_text_restore(&text);
}

/* Prepares the joint before it dials: no listener is dialed if this side cannot connect. */
static int connect_over_tcp(struct call *call)
{
    struct slu_joint *joint = call->joint;
    int error = start(call);

    if (error == 0)
        error = slu_joint_prepare(joint);
    if (error == 0)
        error = dial(call);
    if (error == 0)
        error = keep_private_data(call);
    if (error == 0) {
        snprintf(call->passage.who, sizeof call->passage.who, "%s", call->name);
        call->passage.fd = slu_target_take(&call->target, &call->passage.session);
        error = slu_joint_connect(joint, &call->passage);
    } else {
        slu_joint_undo(joint);
    }
    clean_up(call);
    return error;
}

static int connect_call(struct call *call, const struct sluice_connect_attr *given,
                        int64_t deadline)
{
    int error = check_options(given, &call->options);

    if (error == 0 && deadline < 0)
        error = slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    if (error == 0)
        error = slu_joint_check(call->joint);
    if (error == 0 && call->name == NULL)
        error = slu_misuse(EINVAL, "address must not be NULL");
    if (error < 0)
        return error;
    call->time = deadline;
    call->passage = (struct slu_passage){.fd = -1,
                                         .dialed = true,
                                         .until = slu_after(deadline),
                                         .time = deadline,
                                         .duty = call->joint->duty};
    return call->dialed == NULL && slu_rdmacm_address(call->name) != NULL
               ? slu_rdmacm_connect(call->name, &call->options, call->joint, call->passage.until)
               : connect_over_tcp(call);
}

static int connect_joint(const char *name, const struct sluice_connect_attr *given,
                         struct slu_joint *joint, int64_t deadline)
{
    struct call call = {.name = name, .joint = joint};

    return connect_call(&call, given, deadline);
}

struct sluice_channel *slu_connect_dialed(const struct slu_dialed *dialed, struct sluice_pd *pd,
                                          const struct sluice_channel_attr *attr,
                                          const struct sluice_connect_attr *options,
                                          int64_t deadline)
{
    struct sluice_endpoint own, remote;
    struct slu_joint joint = {.pd = pd, .attr = attr, .count = 1, .own = &own, .remote = &remote};
    struct call call = {.name = dialed->name, .dialed = dialed, .joint = &joint};
    int error = connect_call(&call, options, deadline);

    return error < 0 ? slu_none(error) : joint.channel;
}

struct sluice_channel *slu_connect_serving(const char *address, struct sluice_pd *pd,
                                           const struct sluice_channel_attr *attr,
                                           const struct sluice_connect_attr *options,
                                           int64_t deadline, struct slu_duty *duty)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_endpoint own, remote;
    struct slu_joint joint = {
        .pd = pd, .attr = attr, .duty = duty, .count = 1, .own = &own, .remote = &remote};
    int error = connect_joint(address, options, &joint, deadline);

    if (error < 0)
        return slu_none(error);
    slu_made();
    return joint.channel;
}

int slu_connect_guarded(const char *address, struct sluice_multichannel *multichannel,
                        struct slu_guard *guard, const struct sluice_connect_attr *options,
                        int64_t deadline, struct slu_duty *duty, uint32_t *peer)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_endpoint own, remote;
    struct slu_joint joint = {.multichannel = multichannel,
                              .guard = guard,
                              .duty = duty,
                              .count = 1,
                              .own = &own,
                              .remote = &remote};
    int error = connect_joint(address, options, &joint, deadline);

    if (error == 0)
        *peer = joint.peers[0];
    return error;
}

struct sluice_channel *sluice_connect(const char *address, struct sluice_pd *pd,
                                      const struct sluice_channel_attr *attr,
                                      const struct sluice_connect_attr *options, int64_t deadline)
{
    return slu_connect_serving(address, pd, attr, options, deadline, NULL);
}

int sluice_connect_into(const char *address, struct sluice_multichannel *multichannel,
                        const struct sluice_connect_attr *options, int64_t deadline,
                        uint32_t *peers, uint32_t count)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct sluice_endpoint own[SLUICE_MAX_CONNECT_CHANNELS], remote[SLUICE_MAX_CONNECT_CHANNELS];
    struct slu_joint joint = {
        .multichannel = multichannel, .count = count, .own = own, .remote = remote};
    int error;

    if (multichannel == NULL || peers == NULL)
        return slu_misuse(EINVAL, "%s must not be NULL",
                          multichannel == NULL ? "multichannel" : "peers");
    if (count == 0 || count > SLUICE_MAX_CONNECT_CHANNELS)
        return slu_misuse(EINVAL, "%u channels: must be in 1..%d", count,
                          SLUICE_MAX_CONNECT_CHANNELS);
    error = connect_joint(address, options, &joint, deadline);
    if (error == 0)
        memcpy(peers, joint.peers, count * sizeof *peers);
    return error;
}
