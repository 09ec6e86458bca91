/* SPDX-License-Identifier: MIT */
/*
 * Connects queue pairs of different contexts with the calls of lib/connect/. A queue pair has its
 * own proof from its creation on, and knows its peer from its handshake on; a peer that comes
 * before that waits. The helper thread does all of this under the lock of the context, except for
 * what can be done when the queue pair connects, such as dialing. The CQ of the queue pair is sent
 * the connection, or the news that there will be none.
 */
#include "transport/soft/helper/meet.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/zeroed.h"
#include "connect/address.h"
#include "connect/meeting.h"
#include "transport/soft/helper/helper.h"

/*
 * Connections to a queue pair that keep their places in the acceptor; its peer may use a few
 * addresses.
 */
#define KNOWN_MOST 4

/* Messages that are sent once the lock is released. */
struct news {
    struct soft_message *first;
};

static int fail_listen(const struct slu_address *listen, int err)
{
    char text[SLU_ADDRESS_IP] = "any address";
    if (listen->family != 0)
        slu_address_ip(listen, text);
    /* The kernel chooses the port. */
    if (err == EADDRINUSE)
        return slu_fail(EADDRNOTAVAIL,
                        "cannot listen for peers at %s: no port is free; connections that have "
                        "ended keep theirs for a minute, and net.ipv4.ip_local_port_range of "
                        "sysctl(8) has how many there are",
                        text);
    return slu_fail(err, "cannot listen for peers at %s: %s%s", text, strerrordesc_np(err),
                    err == EADDRNOTAVAIL ? " (sluice_context_attr.address or SLUICE_TCP_ADDRESS "
                                           "must be an address of this host)"
                                         : "");
}

/* Returns a socket that listens at the address of the context, or a negative errno. */
static int listen_for_all(struct soft_context *context)
{
    const struct slu_address *listen = &context->listen;
    bool ipv6 = listen->family != 4;
    int made = slu_stream_listen(listen, ipv6);
    if (made < 0 && listen->family == 0) {
        ipv6 = false;
        made = slu_stream_listen(listen, false);
    }
    if (made < 0)
        return made;
    uint16_t port = slu_stream_port(made);
    if (listen->family != 0) {
        context->addresses[0] = *listen;
        context->addresses[0].port = port;
    } else {
        slu_stream_addresses(context->addresses, SLU_ENDPOINT_ADDRESSES, ipv6, port);
    }
    return made;
}

static enum slu_received receive(struct slu_acceptor *acceptor, struct slu_pending_conn *conn);

int slu_soft_meet_listen(struct soft_context *context, struct slu_acceptor *acceptor, int epoll,
                         uint64_t tag)
{
    int everywhere = listen_for_all(context);
    if (everywhere < 0)
        return fail_listen(&context->listen, -everywhere);
    slu_acceptor_init(acceptor, epoll, tag);
    acceptor->receive = receive;
    acceptor->hello = SLU_HELLO_BYTES;
    acceptor->magic = slu_hello_magic;
    acceptor->magic_bytes = SLU_HELLO_MAGIC_BYTES;
    int err = slu_acceptor_add(acceptor, everywhere);
    bool can_be_near = context->who.users != 0 && context->who.processes != 0;
    int here = err == 0 && can_be_near ? slu_stream_listen_here(context->identity) : -1;
    if (here >= 0)
        err = slu_acceptor_add(acceptor, here);
    if (err == 0 && here < 0 && can_be_near) {
        context->who.users = context->who.processes = 0;
        slu_log(SLUICE_LOG_WARN, "no Unix socket for peers of this host, which use TCP: %s",
                strerrordesc_np(-here));
    }
    if (err == 0)
        return 0;
    slu_acceptor_close(acceptor);
    return slu_fail(-err, "the helper thread cannot watch its listeners: %s",
                    strerrordesc_np(-err));
}

static void make_side(const struct slu_endpoint *endpoint, struct slu_side *side)
{
    uint8_t *at = side->name;
    memset(side, 0, sizeof(*side));
    memcpy(side->key, endpoint->soft.nonce, sizeof(side->key));
    memcpy(at, endpoint->soft.who.host, sizeof(endpoint->soft.who.host));
    at = slu_put(at + sizeof(endpoint->soft.who.host), endpoint->soft.who.network, 8);
    at = slu_put(at, endpoint->soft.context, 8);
    at = slu_put(at, endpoint->soft.generation, 8);
    at = slu_put(at, endpoint->soft.who.start, 8);
    at = slu_put(at, endpoint->soft.who.pid, 4);
    at = slu_put(at, endpoint->soft.who.uid, 4);
    slu_put(at, endpoint->qpn, 4);
}

/*
 * Returns the meeting of a queue pair, made when it is first needed; NULL: no memory. The caller
 * holds the lock of the context.
 */
static struct slu_meeting *find_meeting(struct soft_qp *qp)
{
    struct slu_endpoint own;
    struct slu_side side;
    if (qp->meeting != NULL)
        return qp->meeting;
    qp->meeting = slu_zeroed_alloc(1, sizeof(*qp->meeting));
    if (qp->meeting == NULL)
        return NULL;
    slu_soft_qp_endpoint(&qp->base, &own);
    make_side(&own, &side);
    slu_meeting_init(qp->meeting, slu_soft_context(qp)->helper->epoll,
                     (uint64_t)HELPER_MEETING << 32 | (uint64_t)qp->qpn << SLU_MEETING_BITS, &side,
                     qp->qpn);
    return qp->meeting;
}

static void free_meeting(struct soft_qp *qp)
{
    if (qp->meets.link != NULL)
        SOFT_REMOVE(qp, meets);
    qp->met = true;
    if (qp->meeting == NULL)
        return;
    slu_meeting_end(qp->meeting);
    slu_proof_forget(qp->meeting, sizeof(*qp->meeting));
    slu_zeroed_free(qp->meeting, 1, sizeof(*qp->meeting));
    qp->meeting = NULL;
}

/*
 * Logs that a peer on this host can be reached only over TCP. A process that chose TCP with
 * SLUICE_WIRE has namespaces of 0, and is not logged.
 */
static void tell_apart(const struct soft_qp *qp, const struct slu_identity *peer)
{
    struct soft_context *context = slu_soft_context(qp);
    const struct slu_identity *own = &context->who;
    if (!slu_identity_same_network(own, peer) || slu_identity_near(own, peer) || own->users == 0 ||
        peer->users == 0)
        return;
    slu_log(slu_soft_notice_level(context, SOFT_NOTICE_APART),
            "queue pair %u: its peer on this host has another namespace of %s, so that they use "
            "TCP, which is slower",
            qp->qpn, own->users != peer->users ? "users" : "processes");
}

const char *slu_soft_meet_obstacle(const struct soft_qp *qp)
{
    struct soft_context *context = slu_soft_context(qp);
    const char *obstacle;
    int starved = 0;
    pthread_mutex_lock(&context->lock);
    obstacle = qp->meeting != NULL ? slu_meeting_obstacle(qp->meeting) : qp->obstacle;
    if (obstacle == NULL && context->helper != NULL)
        starved = atomic_load(&context->helper->acceptor.starved);
    pthread_mutex_unlock(&context->lock);
    return starved != 0 ? slu_shortage_text(starved) : obstacle;
}

void slu_soft_meet_end(struct soft_qp *qp)
{
    struct soft_context *context = slu_soft_context(qp);
    pthread_mutex_lock(&context->lock);
    free_meeting(qp);
    pthread_mutex_unlock(&context->lock);
}

/*
 * Work of the helper thread, or of a thread that connects. All of it needs the lock, except sending
 * news.
 */

static void add_news(struct news *news, struct soft_message *message, struct soft_qp *qp,
                     enum soft_message_kind kind)
{
    slu_soft_qp_hold(qp);
    message->kind = kind;
    message->from = NULL;
    message->to = qp;
    message->next = news->first;
    news->first = message;
}

static void add_loss(struct news *news, struct soft_qp *qp)
{
    if (!atomic_exchange(&qp->lost_sent, true))
        add_news(news, &qp->lost, qp, SOFT_LOST);
}

static void add_connection(struct news *news, struct soft_qp *qp, int fd)
{
    struct tcp_attach *attach = malloc(sizeof(*attach));
    if (attach == NULL) {
        slu_fd_close(fd);
        add_loss(news, qp);
        return;
    }
    attach->fd = fd;
    add_news(news, &attach->message, qp, SOFT_ATTACH);
}

static void conclude(struct news *news, struct soft_qp *qp, enum slu_meeting_state state,
                     const int *fd)
{
    if (state == SLU_MEETING_ON)
        return;
    if (state == SLU_MEETING_MET) {
        add_connection(news, qp, *fd);
    } else {
        qp->obstacle = slu_meeting_obstacle(qp->meeting);
        slu_log(SLUICE_LOG_INFO, "queue pair %u: %s", qp->qpn,
                qp->obstacle != NULL ? qp->obstacle : "the peer is at none of its addresses");
        add_loss(news, qp);
    }
    free_meeting(qp);
}

static void send_news(struct news *news)
{
    while (news->first != NULL) {
        struct soft_message *message = news->first;
        news->first = message->next;
        slu_soft_send(slu_soft_cq_of(message->to), message, NULL);
    }
}

/*
 * The thread that connects dials at once. The helper goes on with the events of the sockets, and is
 * woken only if it would sleep beyond the time when the meeting is due again.
 */
int slu_soft_meet_begin(struct soft_qp *qp, const struct slu_endpoint *remote)
{
    SLU_UNCANCELLED_BLOCK;
    struct soft_context *context = slu_soft_context(qp);
    struct slu_meeting_peer peer = {
        .identity = remote->soft.who,
        .listener = remote->soft.context,
        .number = remote->qpn,
        .everywhere = remote->soft.everywhere != 0,
    };
    struct news news = {NULL};
    int64_t next = INT64_MAX;
    int fd = -1;
    make_side(remote, &peer.side);
    tell_apart(qp, &peer.identity);
    memcpy(peer.addresses, remote->soft.addresses, sizeof(peer.addresses));
    pthread_mutex_lock(&context->lock);
    struct slu_meeting *meeting = find_meeting(qp);
    if (meeting != NULL) {
        slu_meeting_begin(meeting, &context->who, &peer);
        SOFT_INSERT(&context->meeting, qp, meets);
        conclude(&news, qp, slu_meeting_tick(meeting, slu_now(), &next, &fd), &fd);
    }
    pthread_mutex_unlock(&context->lock);
    if (meeting == NULL)
        return slu_fail(ENOMEM, "no memory for a connection");
    send_news(&news);
    atomic_store(&context->meet_due, true);
    slu_soft_helper_wake_before(context->helper, next);
    return 0;
}

static struct soft_qp *find_qp(struct soft_context *context, uint32_t qpn)
{
    return qpn > 0 && qpn <= context->qps.size ? context->qps.items[qpn - 1] : NULL;
}

/*
 * Returns the queue pair that a hello names, if the sender has proven that it knows the nonce.
 * Otherwise returns NULL; that takes as long, so that timing reveals nothing.
 */
static struct soft_qp *find_target(struct soft_context *context, const struct slu_talk *talk)
{
    static const uint8_t nobody[SLU_NONCE_BYTES];
    struct slu_hello hello;
    slu_hello_read(talk->bytes, &hello);
    struct soft_qp *qp = find_qp(context, hello.target);
    bool proven = slu_hello_proves(talk->bytes, qp != NULL ? qp->nonce : nobody);
    return qp != NULL && proven && !qp->met && !slu_soft_in_error(qp) ? qp : NULL;
}

static enum slu_received deny(const struct slu_talk *talk)
{
    uint8_t denial[SLU_DENIAL_BYTES];
    slu_denial_make(denial);
    slu_talk_say(talk, denial, sizeof(denial));
    return SLU_RECEIVED_DROP;
}

/*
 * Returns whether few connections have sent a hello for the same queue pair. A hello may be a
 * recorded one that is replayed, so only few of them keep their places against others.
 */
static bool is_rare(const struct slu_acceptor *acceptor, const struct slu_pending_conn *conn)
{
    struct slu_hello hello, other;
    uint32_t known = 0;
    slu_hello_read(conn->talk.bytes, &hello);
    for (uint32_t i = 0; i < acceptor->places; i++) {
        const struct slu_pending_conn *at = &acceptor->conns[i];
        if (at->talk.fd < 0 || !at->known)
            continue;
        slu_hello_read(at->talk.bytes, &other);
        known += other.target == hello.target;
    }
    return known < KNOWN_MOST;
}

/* Answers a complete hello, and sends our proof as well if a meeting is under way. */
static enum slu_received answer(const struct slu_acceptor *acceptor, struct slu_pending_conn *conn,
                                const struct soft_qp *qp)
{
    struct slu_talk *talk = &conn->talk;
    uint8_t *answered = talk->bytes + SLU_HELLO_BYTES;
    if (qp == NULL)
        return deny(talk);
    if (slu_answer_make(talk->bytes, qp->nonce) < 0)
        return SLU_RECEIVED_DROP;
    conn->known = is_rare(acceptor, conn);
    conn->answered = conn->known && qp->meeting != NULL &&
                     slu_meeting_prove_early(qp->meeting, conn, answered + SLU_ANSWER_BYTES);
    if (!slu_talk_say(talk, answered, SLU_ANSWER_BYTES + (conn->answered ? SLU_PROOF_BYTES : 0)))
        return SLU_RECEIVED_DROP;
    conn->spoke = true;
    talk->got = SLU_HELLO_BYTES + SLU_ANSWER_BYTES;
    talk->want = talk->got + SLU_PROOF_BYTES;
    return SLU_RECEIVED_MORE;
}

/* Checks the proof behind a hello that was checked before. */
static enum slu_received welcome(struct slu_pending_conn *conn, struct soft_qp *qp,
                                 struct news *news)
{
    struct slu_meeting *meeting = qp != NULL ? find_meeting(qp) : NULL;
    int fd = -1;
    if (meeting == NULL)
        return SLU_RECEIVED_DROP;
    conclude(news, qp, slu_meeting_welcome(meeting, conn, &fd), &fd);
    return SLU_RECEIVED_TAKEN;
}

static enum slu_received receive(struct slu_acceptor *acceptor, struct slu_pending_conn *conn)
{
    struct soft_helper *helper = slu_container_of(acceptor, struct soft_helper, acceptor);
    struct soft_context *context = helper->context;
    struct news news = {NULL};
    enum slu_received received;
    if (!slu_hello_fits(conn->talk.bytes))
        return SLU_RECEIVED_DROP;
    pthread_mutex_lock(&context->lock);
    struct soft_qp *qp = find_target(context, &conn->talk);
    received =
        conn->talk.got == SLU_HELLO_BYTES ? answer(acceptor, conn, qp) : welcome(conn, qp, &news);
    pthread_mutex_unlock(&context->lock);
    send_news(&news);
    return received;
}

void slu_soft_meet_event(struct soft_helper *helper, uint32_t data)
{
    struct soft_context *context = helper->context;
    struct news news = {NULL};
    int fd = -1;
    pthread_mutex_lock(&context->lock);
    struct soft_qp *qp = find_qp(context, data >> SLU_MEETING_BITS);
    /* A late event may find another queue pair under the number, which is harmless. */
    if (qp != NULL && qp->meeting != NULL)
        conclude(&news, qp,
                 slu_meeting_event(qp->meeting, data & ((1U << SLU_MEETING_BITS) - 1), &fd), &fd);
    pthread_mutex_unlock(&context->lock);
    send_news(&news);
    atomic_store(&context->meet_due, true);
}

int64_t slu_soft_meet_tick(struct soft_helper *helper, int64_t now)
{
    struct soft_context *context = helper->context;
    struct news news = {NULL};
    int64_t next = INT64_MAX;
    pthread_mutex_lock(&context->lock);
    for (struct soft_qp *qp = context->meeting, *following; qp != NULL; qp = following) {
        int fd = -1;
        following = qp->meets.next;
        conclude(&news, qp, slu_meeting_tick(qp->meeting, now, &next, &fd), &fd);
    }
    pthread_mutex_unlock(&context->lock);
    send_news(&news);
    return next;
}
