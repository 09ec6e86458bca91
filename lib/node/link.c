/* SPDX-License-Identifier: MIT */
/*
 * The steps of a connection between two ranks. A failed step ends the link. The peer fails only if
 * no address of the other rank can be reached, or the other rank refuses; a link that another one
 * has replaced ends without notice.
 */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/descriptor.h"
#include "node/connector.h"

#define MAGIC UINT32_C(0x736c756e) /* "slun" */
/* How often a dial checks whether the connection is still wanted. */
#define CHECK_TIME SLUICE_S(1)
/* How long a dial keeps its place while others wait for one. */
#define TURN_TIME SLUICE_S(3)
/* The longest wait for the byte of the other side, which may be gone without a sign. */
#define BYTE_TIME SLUICE_S(10)
/* Attempts of a dial whose connection ends early; then the rank is wanted anew. */
#define TRIES 16

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

static void end_target(struct slu_link *link)
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
    end_target(link);
    if (link->fd >= 0)
        slu_fd_close(link->fd);
    slu_proof_forget(&link->session, sizeof link->session);
    free(link);
}

/* Does the last job of a link. */
static void end_with(struct slu_connector *connector, struct slu_link *link, enum slu_link_job job)
{
    end_target(link);
    link->ends = true;
    slu_link_give(connector, link, job);
}

static void fail_rank(struct slu_connector *connector, struct slu_link *link, const char *why)
{
    char text[sizeof link->text];

    /* The reason may be in the text of the link. */
    snprintf(text, sizeof text, "it could not be reached: %.120s", why);
    memcpy(link->text, text, sizeof text);
    end_with(connector, link, SLU_JOB_FAIL);
}

/* Jobs: the completion queue is entered. */

/* A connection of the rank with itself needs no other side. */
static int connect_self(struct slu_deferred *deferred, struct slu_link *link)
{
    int error = slu_deferred_connect(deferred, link->rank, link->serial, &link->own);

    return error == 0 ? slu_deferred_begin(deferred, link->rank, link->serial) : error;
}

static const uint8_t *card_of(const struct slu_connector *connector, uint32_t rank)
{
    return connector->cards + (size_t)rank * SLU_CARD_BYTES;
}

static int make(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_deferred *deferred = connector->deferred;
    int error;

    if (slu_deferred_state(deferred, link->rank) == SLU_DEFERRED_READY)
        return -ECANCELED;
    if (!slu_deferred_is_wanted(deferred, link->rank)) {
        slu_deferred_quit(deferred, link->rank);
        return -ECANCELED;
    }
    error = slu_deferred_make(deferred, link->rank, &link->serial, &link->own);
    if (error == 0 && link->rank == connector->rank)
        return connect_self(deferred, link);
    memcpy(link->card, card_of(connector, link->rank), sizeof link->card);
    if (error == 0 && !slu_card_is_there(link->card))
        return slu_fail(ECONNRESET, "it has not come, or not come again since its reset");
    return error;
}

static int check(struct slu_deferred *deferred, const struct slu_link *link)
{
    if (slu_deferred_is_made(deferred, link->rank, link->serial) &&
        slu_deferred_is_wanted(deferred, link->rank))
        return 0;
    slu_deferred_drop(deferred, link->rank, link->serial);
    return -ECANCELED;
}

/*
 * Tells whether a rank that knocks may be another process than this side knows: that of before its
 * reset, or the one that comes again. It tries again until this side has taken its card.
 */
static bool is_foreign(const struct slu_connector *connector, const struct slu_link *link)
{
    const uint8_t *card = card_of(connector, link->rank);

    return connector->open && (!slu_card_is_there(card) || slu_card_id(card) != link->id);
}

/*
 * A rank that knocks with the endpoint that this side is connected to resumes an attempt of which
 * it does not know how far it came. With another one, it has no connection any more. If this side
 * has not noticed that, the connection fails here as well. The rank tries again until the program
 * of this side has reached it anew. It also tries again, until its deadline, while this side has no
 * memory for the connection.
 */
static int let_in(const struct slu_connector *connector, struct slu_link *link)
{
    struct slu_deferred *deferred = connector->deferred;
    int error;

    if (is_foreign(connector, link))
        return -EBUSY;
    slu_deferred_lose(deferred, link->rank, &link->remote,
                      "the peer has ended the connection, and connects anew");
    if (slu_deferred_has_failed(deferred, link->rank))
        return -EBUSY;
    error = slu_deferred_make(deferred, link->rank, &link->serial, &link->own);
    if (error == 0) {
        error = slu_deferred_connect(deferred, link->rank, link->serial, &link->remote);
        if (slu_is_shortage(-error))
            slu_deferred_drop(deferred, link->rank, link->serial);
    }
    return slu_is_shortage(-error) ? -EBUSY : error;
}

static int do_job(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_deferred *deferred = connector->deferred;

    switch (link->job) {
    case SLU_JOB_MAKE:
        return make(connector, link);
    case SLU_JOB_CHECK:
        return check(deferred, link);
    case SLU_JOB_FINISH:
        return slu_deferred_connect(deferred, link->rank, link->serial, &link->remote);
    case SLU_JOB_FAIL:
        slu_deferred_fail(deferred, link->rank, link->serial, link->text);
        return 0;
    case SLU_JOB_ACCEPT:
        return let_in(connector, link);
    case SLU_JOB_BEGIN:
        return slu_deferred_begin(deferred, link->rank, link->serial);
    default:
        slu_deferred_drop(deferred, link->rank, link->serial);
        return 0;
    }
}

void slu_link_work(struct slu_connector *connector, struct slu_link *link)
{
    link->error = do_job(connector, link);
    if (link->error < 0 && link->error != -ECANCELED && link->error != -EBUSY)
        snprintf(link->text, sizeof link->text, "%s", sluice_last_error());
}

/* The thread of the connector. */

static void write_knock(const struct slu_connector *connector, struct slu_link *link)
{
    uint8_t *at = slu_put(link->knock, MAGIC, 4);

    at = slu_put(at, connector->rank, 4);
    at = slu_put(at, link->rank, 4);
    at = slu_put(at, connector->ranks, 4);
    at = slu_put(at, slu_checksum(connector->key, sizeof connector->key), 4);
    memcpy(at, link->own.bytes, sizeof link->own.bytes);
}

/* The key of the card is the secret. */
static void dial(struct slu_connector *connector, struct slu_link *link)
{
    struct slu_target *target = malloc(sizeof *target);
    struct slu_card card;

    if (target == NULL || slu_card_decode(link->card, link->rank, &card) < 0) {
        free(target);
        fail_rank(connector, link, "no memory to dial it");
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
    link->check_at = link->began + CHECK_TIME;
}

/* Each side waits for a byte of the other. If it does not come, the dialer tries again. */
static void send_byte(struct slu_link *link)
{
    struct slu_talk talk = {.fd = link->fd};

    link->check_at = slu_now() + BYTE_TIME;
    slu_talk_say(&talk, "", 1);
}

static void answer(struct slu_connector *connector, struct slu_link *link)
{
    bool said;

    if (link->error == -EBUSY) {
        slu_negotiation_reply(link->fd, &link->session, SLU_REPLY_BUSY, NULL, 0);
        slu_link_free(connector, link);
        return;
    }
    if (link->error < 0) {
        slu_negotiation_reply(link->fd, &link->session, SLU_REPLY_REFUSED, link->text,
                              (uint32_t)strlen(link->text));
        end_with(connector, link, SLU_JOB_DROP);
        return;
    }
    said = slu_negotiation_reply(link->fd, &link->session, SLU_REPLY_ADMITTED, link->own.bytes,
                                 sizeof link->own.bytes);
    link->check_at = slu_now() + BYTE_TIME;
    if (!said)
        end_with(connector, link, SLU_JOB_DROP);
}

/*
 * Tells whether the rank is being connected by another link, which asks once more if it fails. An
 * earlier dial of another queue pair does not count, and ends when it notices that.
 */
static bool has_other(const struct slu_connector *connector, const struct slu_link *link)
{
    const struct slu_link *other;

    TAILQ_FOREACH(other, &connector->links, next)
    {
        if (other != link && other->rank == link->rank && !other->ends &&
            (!other->dials || other->serial == link->serial))
            return true;
    }
    return false;
}

static void made(struct slu_connector *connector, struct slu_link *link)
{
    if (link->error == -ECANCELED || (link->error == 0 && has_other(connector, link)) ||
        (link->error == 0 && link->rank == connector->rank))
        slu_link_free(connector, link);
    else if (link->error < 0)
        fail_rank(connector, link, link->text);
    else
        dial(connector, link);
}

static void finished(struct slu_connector *connector, struct slu_link *link)
{
    if (link->error == 0) {
        send_byte(link);
    } else if (link->error == -ECANCELED) {
        end_with(connector, link, SLU_JOB_DROP);
    } else {
        fail_rank(connector, link, link->text);
    }
}

/* Puts a rank behind those that wait to be dialed. Returns false if none does. */
static bool defer(struct slu_connector *connector, uint32_t rank)
{
    bool others;

    pthread_mutex_lock(&connector->lock);
    others = connector->want_count > 0;
    pthread_mutex_unlock(&connector->lock);
    if (others)
        connector->user.wanted(&connector->user, rank);
    return others;
}

/*
 * A link without a target begins to dial again. A rank that has not answered for TURN_TIME goes
 * behind those that wait for their turn; its queue pair stays for the next attempt.
 */
static void checked(struct slu_connector *connector, struct slu_link *link)
{
    if (link->target == NULL)
        dial(connector, link);
    else if (slu_now() - link->began >= TURN_TIME && defer(connector, link->rank))
        slu_link_free(connector, link);
    else
        link->check_at = slu_now() + CHECK_TIME;
}

/* The listener begins first, and tells the dialer. */
static void begun(struct slu_connector *connector, struct slu_link *link)
{
    if (link->error == 0 && !link->dials)
        send_byte(link);
    slu_link_free(connector, link);
}

void slu_link_done(struct slu_connector *connector, struct slu_link *link)
{
    enum slu_link_job job = link->job;

    link->job = SLU_JOB_NONE;
    if (link->ends)
        slu_link_free(connector, link);
    else if (job == SLU_JOB_MAKE)
        made(connector, link);
    else if (job == SLU_JOB_FINISH)
        finished(connector, link);
    else if (job == SLU_JOB_ACCEPT)
        answer(connector, link);
    else if (job == SLU_JOB_CHECK && link->error == 0)
        checked(connector, link);
    else if (job == SLU_JOB_BEGIN && link->error < 0)
        end_with(connector, link, SLU_JOB_DROP);
    else
        begun(connector, link);
}

static void admitted(struct slu_connector *connector, struct slu_link *link)
{
    uint32_t count;
    const uint8_t *verdict = slu_target_verdict(link->target, &count);

    if (count != sizeof link->remote.bytes) {
        fail_rank(connector, link, "it sent no endpoint");
        return;
    }
    memcpy(link->remote.bytes, verdict, count);
    link->fd = slu_target_take(link->target, &link->session);
    end_target(link);
    slu_link_give(connector, link, SLU_JOB_FINISH);
}

static void refused(struct slu_connector *connector, struct slu_link *link)
{
    uint32_t count;
    const uint8_t *verdict = slu_target_verdict(link->target, &count);
    char text[120];

    if (count >= sizeof text)
        count = sizeof text - 1;
    for (uint32_t i = 0; i < count; i++)
        text[i] = (char)(verdict[i] >= ' ' && verdict[i] < 0x7f ? verdict[i] : '?');
    text[count] = '\0';
    fail_rank(connector, link, text);
}

static void hopeless(struct slu_connector *connector, struct slu_link *link)
{
    char text[120];

    slu_target_explain(link->target, text, sizeof text);
    fail_rank(connector, link, text);
}

void slu_link_dial(struct slu_connector *connector, struct slu_link *link, int64_t now,
                   int64_t *next)
{
    enum slu_target_state state = slu_target_wait(link->target, now);

    if (state == SLU_TARGET_ON)
        state = slu_target_tick(link->target, now, next);
    if (state == SLU_TARGET_ADMITTED) {
        admitted(connector, link);
    } else if (state == SLU_TARGET_REFUSED) {
        refused(connector, link);
    } else if (state == SLU_TARGET_HOPELESS) {
        hopeless(connector, link);
    } else if (now >= link->check_at) {
        slu_link_give(connector, link, SLU_JOB_CHECK);
    } else if (link->check_at < *next) {
        *next = link->check_at;
    }
}

/*
 * The connection over which the ranks met ended early. The dialer tries again, because the listener
 * may have begun or not.
 */
static void hear_no_more(struct slu_connector *connector, struct slu_link *link)
{
    if (!link->dials || ++link->tries == TRIES) {
        end_with(connector, link, SLU_JOB_DROP);
        return;
    }
    slu_fd_close(link->fd);
    link->fd = -1;
    slu_link_give(connector, link, SLU_JOB_CHECK);
}

void slu_link_hear(struct slu_connector *connector, struct slu_link *link, int64_t now,
                   int64_t *next)
{
    uint8_t byte;
    ssize_t got = recv(link->fd, &byte, 1, MSG_DONTWAIT);

    if (got == 1)
        slu_link_give(connector, link, SLU_JOB_BEGIN);
    else if (got == 0 || (errno != EAGAIN && errno != EINTR) || now >= link->check_at)
        hear_no_more(connector, link);
    else
        *next = slu_earlier(*next, link->check_at);
}

struct knock {
    uint32_t from, id;
    struct sluice_endpoint remote;
};

/* Reads the body of a hello. Returns the reason why it is wrong, or NULL. */
static const char *read_knock(const struct slu_connector *connector, const uint8_t *body,
                              uint32_t bytes, struct knock *knock)
{
    uint64_t magic, dialer, listener, ranks, id;
    const uint8_t *at = body;

    if (bytes != SLU_KNOCK_BYTES)
        return "what it sent is no knock of a rank";
    at = slu_get(at, &magic, 4);
    at = slu_get(at, &dialer, 4);
    at = slu_get(at, &listener, 4);
    at = slu_get(at, &ranks, 4);
    at = slu_get(at, &id, 4);
    if (magic != MAGIC || listener != connector->rank || ranks != connector->ranks ||
        dialer >= ranks || dialer == listener)
        return "what it sent is no knock of a rank for this one";
    knock->from = (uint32_t)dialer;
    knock->id = (uint32_t)id;
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
        if (link == knock || link->rank != knock->rank)
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
    struct slu_link *link = NULL;
    const char *wrong =
        read_knock(connector, slu_negotiation_body(negotiation), negotiation->hello.bytes, &knock);

    if (wrong != NULL) {
        refuse(session, fd, SLU_REPLY_REFUSED, wrong);
        return;
    }
    /* Other links with that rank are kept if there is no room or memory for this one. */
    if (connector->knocks < SLU_KNOCKS_MOST)
        link = slu_link_create(connector, knock.from, false);
    if (link != NULL && is_busy(connector, link)) {
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
    slu_link_give(connector, link, SLU_JOB_ACCEPT);
}
