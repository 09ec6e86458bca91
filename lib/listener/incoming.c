/* SPDX-License-Identifier: MIT */
/* Those who want to connect: who they are, and what becomes of them. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "listener/rdmacm.h"

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
    error = slu_info_check(info, sizeof known, sizeof known, "sluice_incoming_info");
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

static void refuse(struct sluice_incoming *incoming, const char *reason)
{
    SLU_PROBE1(refused, reason);
    if (incoming->fd < 0)
        slu_rdmacm_reject(incoming, reason);
    else
        slu_offer_say(incoming->fd, &incoming->session, SLU_WORD_REFUSED, reason,
                      (uint32_t)strnlen(reason, SLU_PASSAGE_TEXT - 1));
    slu_incoming_free(incoming);
}

void sluice_incoming_refuse(struct sluice_incoming *incoming, const char *reason)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;

    if (slu_may_end(incoming, SLU_MAGIC_INCOMING, "incoming connection"))
        refuse(incoming, reason != NULL ? reason : "");
}

int slu_incoming_give_up(struct sluice_incoming *incoming, int error, const char *reason)
{
    struct slu_text text;

    slu_text_save(&text);
    refuse(incoming, reason != NULL ? reason : text.bytes);
    slu_text_restore(&text);
    return error;
}

int slu_incoming_check(const struct sluice_incoming *incoming)
{
    if (incoming->channels == 1)
        return 0;
    return slu_fail(EINVAL, "a single channel is let in here, and %u are wanted",
                    incoming->channels);
}

/* Our program's mistake is told to it, and is not for the other side. */
static int give_up_mistaken(struct sluice_incoming *incoming, int error)
{
    return slu_incoming_give_up(incoming, error, "its program could not let us in");
}

/* Arguments are right; the incoming connection ends in each case. */
static int let_in(struct sluice_incoming *incoming, struct slu_joint *joint,
                  const struct sluice_private_data *own, int64_t until)
{
    struct slu_passage passage = {.fd = incoming->fd,
                                  .listener = incoming->listener,
                                  .until = until,
                                  .session = incoming->session};
    int error;

    slu_address_text(&incoming->address, passage.who);
    error = slu_is_late(until) ? slu_fail(ETIMEDOUT, "the deadline of the accept has passed")
                               : slu_joint_prepare_for(joint, incoming);

    if (error < 0) {
        slu_joint_undo(joint);
        return slu_incoming_give_up(incoming, error, NULL);
    }
    if (incoming->fd < 0) {
        error = slu_rdmacm_let_in(incoming, joint, own, until);
    } else if (slu_offer_say(incoming->fd, &incoming->session, SLU_WORD_ADMITTED,
                             own != NULL ? own->data : NULL, own != NULL ? own->bytes : 0)) {
        error = slu_joint_connect(joint, &passage);
    } else {
        error = slu_fail(ECONNRESET, "%s left before it was let in", passage.who);
        slu_joint_undo(joint);
    }
    slu_incoming_free(incoming);
    return error;
}

static int check_words(const struct sluice_incoming *incoming,
                       const struct sluice_private_data *own, int64_t deadline)
{
    if (deadline < 0)
        return slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    return incoming->fd < 0 ? slu_rdmacm_check_answer(own) : slu_private_data_check(own);
}

struct sluice_channel *sluice_incoming_accept(struct sluice_incoming *incoming,
                                              struct sluice_pd *pd,
                                              const struct sluice_channel_attr *attr,
                                              const struct sluice_private_data *own,
                                              int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_joint joint = {.pd = pd, .attr = attr, .count = 1};
    int error;

    if (!is_incoming(incoming))
        return slu_none(not_incoming(incoming));
    error = check_words(incoming, own, deadline);
    if (error == 0)
        error = slu_joint_check(&joint);
    if (error < 0)
        return slu_none(give_up_mistaken(incoming, error));
    error = slu_incoming_check(incoming);
    error = error < 0 ? slu_incoming_give_up(incoming, error, NULL)
                      : let_in(incoming, &joint, own, slu_after(deadline));
    if (error < 0)
        return slu_none(error);
    slu_made();
    return joint.channel;
}

int sluice_incoming_accept_into(struct sluice_incoming *incoming,
                                struct sluice_multichannel *multichannel,
                                const struct sluice_private_data *own, int64_t deadline,
                                uint32_t *peers, uint32_t count)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct slu_joint joint = {.multichannel = multichannel, .count = count};
    int error;

    if (!is_incoming(incoming))
        return not_incoming(incoming);
    error = check_words(incoming, own, deadline);
    if (error == 0 && (multichannel == NULL || peers == NULL))
        error = slu_misuse(EINVAL, "%s must not be NULL",
                           multichannel == NULL ? "multichannel" : "peers");
    if (error == 0)
        error = slu_joint_check(&joint);
    if (error < 0)
        return give_up_mistaken(incoming, error);
    if (count != incoming->channels)
        error = slu_fail(EINVAL, "room for %u channel%s, and %u are wanted", count, SLU_S(count),
                         incoming->channels);
    error = error < 0 ? slu_incoming_give_up(incoming, error, NULL)
                      : let_in(incoming, &joint, own, slu_after(deadline));
    if (error == 0)
        memcpy(peers, joint.peers, count * sizeof *peers);
    return error;
}
