/* SPDX-License-Identifier: MIT */
/*
 * Links: connections that are being made or closed, and what their steps have in common. Jobs go to
 * the thread that has the completion queue, and dials to another rank.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/descriptor.h"
#include "node/connector.h"

/* The shortest and the longest pause until a link looks for room again. */
#define PAUSE_TIME SLUICE_MS(1)
#define LONGEST_PAUSE SLUICE_MS(64)

struct slu_link *slu_links_take(struct slu_connector *connector, struct slu_links *links)
{
    struct slu_link *link;

    pthread_mutex_lock(&connector->lock);
    link = connector->stopping ? NULL : TAILQ_FIRST(links);
    if (link != NULL)
        TAILQ_REMOVE(links, link, queued);
    pthread_mutex_unlock(&connector->lock);
    return link;
}

void slu_links_add(struct slu_connector *connector, struct slu_links *links, struct slu_link *link)
{
    pthread_mutex_lock(&connector->lock);
    TAILQ_INSERT_TAIL(links, link, queued);
    pthread_mutex_unlock(&connector->lock);
}

void slu_link_give(struct slu_connector *connector, struct slu_link *link, enum slu_link_job job)
{
    link->job = job;
    slu_links_add(connector, &connector->jobs, link);
    slu_deferred_ask(connector->deferred);
}

/* Returns the number of links that are counted with this one. */
static uint32_t *count_of(struct slu_connector *connector, const struct slu_link *link)
{
    if (!link->dials)
        return &connector->knocks;
    return link->retires ? &connector->closings : &connector->dials;
}

struct slu_link *slu_link_create(struct slu_connector *connector, uint32_t rank, bool dials,
                                 bool retires)
{
    struct slu_link *link = calloc(1, sizeof *link);

    if (link == NULL)
        return NULL;
    link->rank = rank;
    link->dials = dials;
    link->retires = retires;
    link->began = slu_now();
    link->fd = -1;
    TAILQ_INSERT_TAIL(&connector->links, link, next);
    ++*count_of(connector, link);
    return link;
}

void slu_link_end_target(struct slu_link *link)
{
    if (link->target != NULL)
        slu_target_end(link->target);
    free(link->target);
    link->target = NULL;
}

void slu_link_await(struct slu_link *link)
{
    link->waits = true;
    link->pause = link->pause == 0 ? PAUSE_TIME
                                   : (link->pause < LONGEST_PAUSE ? 2 * link->pause : link->pause);
    link->check_at = slu_now() + link->pause;
}

/* Has a link that is done with wait until its victim can be closed. */
static void linger(struct slu_link *link)
{
    slu_link_end_target(link);
    if (link->fd >= 0)
        slu_fd_close(link->fd);
    link->fd = -1;
    link->spent = true;
    slu_link_await(link);
}

void slu_link_free(struct slu_connector *connector, struct slu_link *link)
{
    if (!slu_link_hand_over(connector, link)) {
        linger(link);
        return;
    }
    --*count_of(connector, link);
    TAILQ_REMOVE(&connector->links, link, next);
    slu_link_end_target(link);
    if (link->fd >= 0)
        slu_fd_close(link->fd);
    slu_proof_forget(&link->session, sizeof link->session);
    free(link);
}

void slu_link_end(struct slu_connector *connector, struct slu_link *link, enum slu_link_job job)
{
    slu_link_end_target(link);
    link->ends = true;
    slu_link_give(connector, link, job);
}

void slu_link_fail(struct slu_connector *connector, struct slu_link *link, const char *why)
{
    char text[sizeof link->text];

    /* The reason may be in the text of the link. */
    snprintf(text, sizeof text, "it could not be reached: %.120s", why);
    memcpy(link->text, text, sizeof text);
    slu_link_end(connector, link, SLU_JOB_FAIL);
}

static void write_knock(const struct slu_connector *connector, struct slu_link *link)
{
    uint8_t *at = slu_put(link->knock, link->retires ? SLU_RETIRE_MAGIC : SLU_KNOCK_MAGIC, 4);

    at = slu_put(at, connector->rank, 4);
    at = slu_put(at, link->rank, 4);
    at = slu_put(at, connector->ranks, 4);
    at = slu_put(at, slu_checksum(connector->key, sizeof connector->key), 4);
    at = slu_put(at, link->serial, 4);
    if (link->retires)
        slu_put(at, link->endpoint, 4);
    else
        memcpy(at, link->own.bytes, sizeof link->own.bytes);
}

/* The key of the card is the secret. A rank without a card has left. */
bool slu_link_call(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_target *target;
    struct slu_card card;

    if (slu_card_decode(link->card, link->rank, &card) < 0) {
        if (link->retires)
            slu_link_end(connector, link, SLU_JOB_REVIVE);
        else
            slu_link_fail(connector, link, "its card is damaged");
        return true;
    }
    target = malloc(sizeof *target);
    if (target == NULL)
        return false;
    write_knock(connector, link);
    slu_target_init(target);
    for (uint32_t i = 0; i < card.address_count; i++)
        slu_dial_add(&target->dial, &card.addresses[i]);
    target->purpose = SLU_PURPOSE_NODE;
    target->means = SLU_MEANS_SECRET;
    target->secret = slu_card_key(link->card);
    target->secret_bytes = SLU_CARD_KEY_BYTES;
    target->body = link->knock;
    target->body_bytes = sizeof link->knock;
    target->not_there = true;
    link->target = target;
    link->began = slu_now();
    link->check_at = link->began + SLU_LINK_CHECK_TIME;
    return true;
}

/* Each side waits for a byte of the other. If it does not come, the dialer tries again. */
void slu_link_send_byte(struct slu_link *link)
{
    struct slu_talk talk = {.fd = link->fd};

    link->check_at = slu_now() + SLU_LINK_BYTE_TIME;
    slu_talk_say(&talk, "", 1);
}

bool slu_link_hand_over(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_victim *victim = &link->victim;
    struct slu_link *closing;

    if (!victim->there)
        return true;
    if (connector->closings >= SLU_DIALS_MOST)
        return false;
    closing = slu_link_create(connector, victim->rank, true, true);
    if (closing == NULL)
        return false;
    closing->promised = link->retires;
    closing->serial = victim->serial;
    closing->endpoint = victim->endpoint;
    memcpy(closing->card, victim->card, sizeof closing->card);
    if (slu_link_call(connector, closing))
        victim->there = false;
    else
        slu_link_free(connector, closing);
    return !victim->there;
}
