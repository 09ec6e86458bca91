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

struct slu_link *slu_link_create(struct slu_connector *connector, uint32_t rank, bool dials)
{
    struct slu_link *link = calloc(1, sizeof *link);

    if (link == NULL)
        return NULL;
    link->rank = rank;
    link->dials = dials;
    link->fd = -1;
    TAILQ_INSERT_TAIL(&connector->links, link, next);
    connector->dials += dials;
    connector->knocks += !dials;
    return link;
}

void slu_link_end_target(struct slu_link *link)
{
    if (link->target != NULL)
        slu_target_end(link->target);
    free(link->target);
    link->target = NULL;
}

void slu_link_free(struct slu_connector *connector, struct slu_link *link)
{
    connector->dials -= link->dials;
    connector->knocks -= !link->dials;
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

/* The key of the card is the secret. */
void slu_link_call(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_target *target = malloc(sizeof *target);
    struct slu_card card;

    if (target == NULL || slu_card_decode(link->card, link->rank, &card) < 0) {
        free(target);
        if (link->retires)
            slu_link_end(connector, link, SLU_JOB_REVIVE);
        else
            slu_link_fail(connector, link, "no memory to dial it");
        return;
    }
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
}

/* Each side waits for a byte of the other. If it does not come, the dialer tries again. */
void slu_link_send_byte(struct slu_link *link)
{
    struct slu_talk talk = {.fd = link->fd};

    link->check_at = slu_now() + SLU_LINK_BYTE_TIME;
    slu_talk_say(&talk, "", 1);
}
