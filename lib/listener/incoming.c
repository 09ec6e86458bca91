/* SPDX-License-Identifier: MIT */
/* Incoming connections: query, accept, admit and refuse. */
#include "config.h"

#include <string.h>

#include "listener/admission.h"
#include "listener/rdmacm.h"
#include "multichannel/multichannel.h"

/* Makes a joint with the arguments of a plan, only to check them. */
static struct slu_joint joint_of(const struct slu_admission_plan *plan, uint32_t count)
{
    return (struct slu_joint){
        .pd = plan->pd, .attr = plan->attr, .multichannel = plan->multichannel, .count = count};
}

static bool is_incoming(const struct sluice_incoming *incoming)
{
    return incoming != NULL && incoming->magic == SLU_MAGIC_INCOMING;
}

static int not_incoming(const struct sluice_incoming *incoming)
{
    return slu_misuse(EINVAL, "not an incoming connection (or it was accepted before)%s",
                      slu_none_hint(incoming));
}

int sluice_incoming_query(const struct sluice_incoming *incoming, struct sluice_incoming_info *info)
{
    SLU_KEEP_ERRNO;
    struct sluice_incoming_info known = {.size = sizeof known};
    int error;

    if (!is_incoming(incoming))
        return not_incoming(incoming);
    error = SLU_INFO_CHECK(sluice_incoming_info, info);
    if (error < 0)
        return error;
    known.version = incoming->version;
    known.channels = incoming->channels;
    known.proven = incoming->listener->secret.bytes != NULL;
    slu_address_text(&incoming->address, known.address);
    known.private_data = incoming->private_data;
    slu_info_copy(info, &known, sizeof known);
    return 0;
}

void sluice_incoming_refuse(struct sluice_incoming *incoming, const char *reason)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;

    if (slu_may_end(incoming, SLU_MAGIC_INCOMING, "incoming connection"))
        slu_incoming_refuse(incoming, reason != NULL ? reason : "");
}

int slu_incoming_check(const struct sluice_incoming *incoming)
{
    if (incoming->channels == 1)
        return 0;
    return slu_fail(EINVAL, "a single channel is let in here, and %u are wanted",
                    incoming->channels);
}

/*
 * Refuses the connection after a mistake of this program. The text is for the program; the other
 * side receives only that it was not let in.
 */
static int give_up_mistaken(struct sluice_incoming *incoming, int error)
{
    return slu_incoming_give_up(incoming, error, "its program could not let us in");
}

static int check_words(const struct sluice_incoming *incoming,
                       const struct sluice_private_data *own, int64_t deadline)
{
    if (deadline < 0)
        return slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    return incoming->fd < 0 ? slu_rdmacm_check_answer(own) : slu_private_data_check(own);
}

/* Checks the options of an accept, and takes them into the plan. */
static int apply_options(const struct sluice_accept_attr *given, struct slu_admission_plan *plan)
{
    struct sluice_accept_attr options;
    int error = SLU_ATTR_COPY(sluice_accept_attr, &options, given);

    if (error == 0 && options.flags != 0)
        error = slu_misuse(EINVAL, "sluice_accept_attr.flags 0x%x: not known", options.flags);
    plan->own = options.own;
    return error;
}

/*
 * Checks the arguments of an accept. On an error, refuses the connection; if the program made a
 * mistake, the other side receives no more than that.
 */
static int check_plan(struct sluice_incoming *incoming, const struct sluice_accept_attr *options,
                      struct slu_admission_plan *plan, int64_t deadline)
{
    const struct slu_joint joint = joint_of(plan, 1);
    int error = apply_options(options, plan);

    if (error == 0)
        error = check_words(incoming, plan->own, deadline);
    if (error == 0)
        error = slu_joint_check(&joint);
    if (error < 0)
        return give_up_mistaken(incoming, error);
    if (plan->multichannel == NULL)
        error = slu_incoming_check(incoming);
    return error < 0 ? slu_incoming_give_up(incoming, error, NULL) : 0;
}

/* Begins an admission, and waits for its end. Consumes the incoming connection in each case. */
static int let_in(struct sluice_incoming *incoming, const struct slu_admission_plan *plan,
                  struct slu_joint *joint)
{
    struct sluice_listener *listener = incoming->listener;
    struct slu_admission *admission;
    int error;

    /* Keeps the listener, which the program may have closed already. */
    listener->holds++;
    admission = slu_admission_make(incoming, plan);
    error = admission != NULL ? slu_admission_start(admission, plan) : -errno;
    if (error == 0) {
        slu_admission_await(admission);
        error = admission->error;
        *joint = admission->joint;
        if (error < 0)
            (void)slu_fail(-error, "%s", admission->text);
        slu_admission_free(admission);
    }
    if (listener->magic == SLU_MAGIC_LISTENER)
        slu_listener_leave(listener);
    slu_listener_drop(listener);
    return error;
}

struct sluice_channel *sluice_incoming_accept(struct sluice_incoming *incoming,
                                              struct sluice_pd *pd,
                                              const struct sluice_channel_attr *attr,
                                              const struct sluice_accept_attr *options,
                                              int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_admission_plan plan = {.owner = SLU_OF_CALL,
                                      .pd = pd,
                                      .attr = attr,
                                      .until = slu_after(deadline),
                                      .time = deadline};
    struct slu_joint joint;
    int error;

    if (!is_incoming(incoming))
        return slu_none(not_incoming(incoming));
    error = check_plan(incoming, options, &plan, deadline);
    if (error == 0)
        error = let_in(incoming, &plan, &joint);
    if (error < 0)
        return slu_none(error);
    slu_made();
    return joint.channel;
}

static int check_multichannel(struct sluice_incoming *incoming,
                              const struct sluice_multichannel *multichannel, const char *missing)
{
    int error = missing != NULL ? slu_misuse(EINVAL, "%s must not be NULL", missing)
                : !slu_is_multichannel(multichannel) ? slu_not_a_multichannel(multichannel)
                                                     : 0;

    return error < 0 ? give_up_mistaken(incoming, error) : 0;
}

int sluice_incoming_accept_into(struct sluice_incoming *incoming,
                                struct sluice_multichannel *multichannel,
                                const struct sluice_accept_attr *options, int64_t deadline,
                                uint32_t *peers, uint32_t count)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct slu_admission_plan plan = {.owner = SLU_OF_CALL,
                                      .multichannel = multichannel,
                                      .until = slu_after(deadline),
                                      .time = deadline};
    struct slu_joint joint;
    int error;

    if (!is_incoming(incoming))
        return not_incoming(incoming);
    error = check_multichannel(incoming, multichannel,
                               multichannel == NULL ? "multichannel"
                               : peers == NULL      ? "peers"
                                                    : NULL);
    if (error == 0)
        error = check_plan(incoming, options, &plan, deadline);
    if (error < 0)
        return error;
    if (count != incoming->channels)
        return slu_incoming_give_up(incoming,
                                    slu_fail(EINVAL, "room for %u channel%s, and %u are wanted",
                                             count, SLU_S(count), incoming->channels),
                                    NULL);
    error = let_in(incoming, &plan, &joint);
    if (error == 0)
        memcpy(peers, joint.peers, count * sizeof *peers);
    return error;
}

/* Begins an admission, and returns. sluice_listener_admitted() has the result. */
static int admit(struct sluice_incoming *incoming, const struct slu_admission_plan *plan)
{
    struct sluice_listener *listener = incoming->listener;
    struct slu_admission *admission;
    int error;

    if (listener->magic != SLU_MAGIC_LISTENER) {
        error = slu_misuse(EINVAL, "the listener that it came to was closed");
        return give_up_mistaken(incoming, error);
    }
    admission = slu_admission_make(incoming, plan);
    error = admission != NULL ? slu_admission_start(admission, plan) : -errno;
    slu_listener_leave(listener);
    return error;
}

int sluice_incoming_admit(struct sluice_incoming *incoming, struct sluice_pd *pd,
                          const struct sluice_channel_attr *attr,
                          const struct sluice_accept_attr *options, int64_t deadline,
                          uint64_t user_data)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct slu_admission_plan plan = {.owner = SLU_OF_PROGRAM,
                                      .pd = pd,
                                      .attr = attr,
                                      .until = slu_after(deadline),
                                      .time = deadline,
                                      .user_data = user_data};
    int error;

    if (!is_incoming(incoming))
        return not_incoming(incoming);
    error = check_plan(incoming, options, &plan, deadline);
    return error == 0 ? admit(incoming, &plan) : error;
}

int sluice_incoming_admit_into(struct sluice_incoming *incoming,
                               struct sluice_multichannel *multichannel,
                               const struct sluice_accept_attr *options, int64_t deadline,
                               uint64_t user_data)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct slu_admission_plan plan = {.owner = SLU_OF_PROGRAM,
                                      .multichannel = multichannel,
                                      .until = slu_after(deadline),
                                      .time = deadline,
                                      .user_data = user_data};
    int error;

    if (!is_incoming(incoming))
        return not_incoming(incoming);
    error =
        check_multichannel(incoming, multichannel, multichannel == NULL ? "multichannel" : NULL);
    if (error == 0)
        error = check_plan(incoming, options, &plan, deadline);
    return error == 0 ? admit(incoming, &plan) : error;
}
