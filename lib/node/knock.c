/* SPDX-License-Identifier: MIT */
/* Knocks: the bodies of the hellos by which ranks connect, and how a rank lets them in. */
#include "config.h"

#include <string.h>

#include "base/bytes.h"
#include "base/descriptor.h"
#include "node/connector.h"

struct knock {
    uint32_t from, id, serial;
    bool retires;
    struct sluice_endpoint remote;
};

/* Reads the body of a hello. Returns the reason why it is wrong, or NULL. */
static const char *read_knock(const struct slu_connector *connector, const uint8_t *body,
                              uint32_t bytes, struct knock *knock)
{
    uint64_t magic, dialer, listener, ranks, id, serial;
    const uint8_t *at = body;

    if (bytes != SLU_KNOCK_BYTES)
        return "what it sent is no knock of a rank";
    at = slu_get(at, &magic, 4);
    at = slu_get(at, &dialer, 4);
    at = slu_get(at, &listener, 4);
    at = slu_get(at, &ranks, 4);
    at = slu_get(at, &id, 4);
    at = slu_get(at, &serial, 4);
    knock->retires = magic == SLU_RETIRE_MAGIC;
    if ((magic != SLU_KNOCK_MAGIC && !knock->retires) || listener != connector->rank ||
        ranks != connector->ranks || dialer >= ranks || dialer == listener)
        return "what it sent is no knock of a rank for this one";
    knock->from = (uint32_t)dialer;
    knock->id = (uint32_t)id;
    knock->serial = (uint32_t)serial;
    memcpy(knock->remote.bytes, at, sizeof knock->remote.bytes);
    return NULL;
}

/* Returns whether a knock has to wait because of other links with its rank; else ends those. */
static bool is_busy(struct slu_connector *connector, const struct slu_link *knock)
{
    struct slu_link *link, *after;
    bool busy = false;

    for (link = TAILQ_FIRST(&connector->links); link != NULL; link = after) {
        after = TAILQ_NEXT(link, next);
        if (link == knock || link->rank != knock->rank || link->retires || link->waits)
            continue;
        /* The lower rank leads. A link in a job cannot be ended now. */
        if (link->job != SLU_JOB_NONE || (link->dials && connector->rank < link->rank))
            busy = true;
        else
            slu_link_free(connector, link);
    }
    return busy;
}

static void refuse(const struct slu_session *session, int fd, enum slu_reply_code word,
                   const char *why)
{
    slu_negotiation_reply(fd, session, word, why, (uint32_t)strlen(why));
    slu_fd_close(fd);
}

void slu_link_knock(struct slu_connector *connector, const struct slu_negotiation *negotiation,
                    const struct slu_session *session, int fd)
{
    struct knock knock = {.from = 0};
    uint64_t value;
    struct slu_link *link = NULL;
    const char *wrong =
        read_knock(connector, slu_negotiation_body(negotiation), negotiation->hello.bytes, &knock);

    if (wrong != NULL) {
        refuse(session, fd, SLU_REPLY_REFUSED, wrong);
        return;
    }
    /* Other links with that rank are kept if there is no room or memory for this one. */
    if (connector->knocks < SLU_KNOCKS_MOST)
        link = slu_link_create(connector, knock.from, false, knock.retires);
    if (link != NULL && !knock.retires && is_busy(connector, link)) {
        slu_link_free(connector, link);
        link = NULL;
    }
    if (link == NULL) {
        refuse(session, fd, SLU_REPLY_BUSY, "");
        return;
    }
    link->fd = fd;
    link->session = *session;
    link->remote = knock.remote;
    link->id = knock.id;
    link->remote_serial = knock.serial;
    slu_get(knock.remote.bytes, &value, 4);
    link->endpoint = (uint32_t)value;
    slu_link_give(connector, link, knock.retires ? SLU_JOB_YIELD : SLU_JOB_ACCEPT);
}
