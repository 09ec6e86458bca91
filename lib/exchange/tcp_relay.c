/* SPDX-License-Identifier: MIT */
/*
 * The result of a large allgather, for all ranks but rank 0. Rank 0 sends it to a few ranks, and
 * names for each other rank one that passes it on. A rank receives the result, tells rank 0, and
 * passes the result on until rank 0 says that all ranks have it.
 *
 * The tree only saves rank 0 work: a rank that does not get the result by it, for whatever reason,
 * asks rank 0. So a failure has the same consequences as without a tree. Both ends of a connection
 * of the tree prove that they are of this call by tokens of rank 0.
 */
#include "config.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/environment.h"
#include "connect/proof.h"
#include "connect/stream.h"
#include "exchange/tcp.h"

/* Ranks that are passed the result at a time; further ones wait in the backlog. */
#define CHILDREN 16
/* How long the rank that passes the result on may send nothing, before rank 0 is asked. */
#define PARENT_TIME SLUICE_S(5)
#define KNOCK_BYTES (TCP_TOKEN_BYTES + 8)

struct child {
    struct tcp_link link;
    uint8_t knock[KNOCK_BYTES];
    bool answered;
};

struct relay {
    struct tcp *tcp;
    const struct tcp_call *call;
    uint8_t *head; /* of the next frame of rank 0 */
    size_t all;    /* bytes of the result */
    uint8_t body[TCP_RELAY_BYTES];
    uint8_t note[TCP_FRAME_BYTES];  /* to rank 0 */
    uint8_t knock[KNOCK_BYTES];     /* to the rank that passes the result on */
    uint8_t proof[TCP_TOKEN_BYTES]; /* from that rank, before the result */
    struct tcp_link parent;
    bool connected; /* to the parent */
    bool proven;    /* the parent is the right one */
    bool fetched, asked;
    bool inside;      /* a frame of rank 0 has come in part */
    int64_t patience; /* until when the parent has to send something */
    struct child children[CHILDREN];
};

static const uint8_t *knock_token(const struct relay *relay)
{
    return relay->body + TCP_RELAY_BYTES - 2 * TCP_TOKEN_BYTES;
}

static const uint8_t *answer_token(const struct relay *relay)
{
    return relay->body + TCP_RELAY_BYTES - TCP_TOKEN_BYTES;
}

static void send_note(struct relay *relay, uint8_t type)
{
    struct tcp_frame frame = {
        .type = type, .sequence = relay->tcp->sequence, .bytes = relay->call->bytes};

    slu_tcp_frame_encode(&frame, relay->note);
    slu_tcp_link_queue(&relay->tcp->link, relay->note, sizeof relay->note);
}

static void have_fetched(struct relay *relay)
{
    relay->fetched = true;
    slu_tcp_link_close(&relay->parent);
    send_note(relay, TCP_TAKEN);
}

static void ask_root(struct relay *relay)
{
    slu_tcp_link_close(&relay->parent);
    relay->asked = true;
    send_note(relay, TCP_ASK);
}

static void dial_parent(struct relay *relay)
{
    const uint8_t *at = relay->body;
    struct slu_address address = {.family = 0};
    uint64_t family, port;
    int fd;

    at = slu_get(at, &family, 2);
    at = slu_get(at, &port, 2);
    address.family = (uint16_t)family;
    address.port = (uint16_t)port;
    memcpy(address.ip, at, sizeof address.ip);
    fd = slu_stream_dial(&address);
    if (fd < 0) {
        ask_root(relay);
        return;
    }
    slu_tcp_link_open(&relay->parent, fd, &address);
    memcpy(relay->knock, knock_token(relay), TCP_TOKEN_BYTES);
    slu_put(relay->knock + TCP_TOKEN_BYTES, relay->tcp->sequence, 8);
    relay->patience = slu_after(PARENT_TIME);
}

/* Sends the token of this call once the connection is there. Returns false if it is lost. */
static bool begin_parent(struct relay *relay)
{
    if (slu_stream_error(relay->parent.fd) != 0)
        return false;
    relay->connected = true;
    slu_tcp_link_queue(&relay->parent, relay->knock, sizeof relay->knock);
    relay->parent.in = relay->proof;
    relay->parent.want = sizeof relay->proof;
    return true;
}

/* Receives the proof, and then the result in its place. Returns false if the parent is lost. */
static bool serve_parent(struct relay *relay)
{
    struct tcp_link *parent = &relay->parent;

    if (!relay->connected && !begin_parent(relay))
        return false;
    if (slu_tcp_link_send(parent) < 0 || slu_tcp_link_receive(parent) < 0)
        return false;
    relay->patience = slu_after(PARENT_TIME);
    if (parent->want == 0 && !relay->proven) {
        if (!slu_proof_equal(relay->proof, answer_token(relay), sizeof relay->proof))
            return false;
        relay->proven = true;
        parent->in = relay->call->from;
        parent->want = relay->all;
        if (slu_tcp_link_receive(parent) < 0)
            return false;
    }
    if (parent->want == 0)
        have_fetched(relay);
    return true;
}

static void let_in(struct relay *relay)
{
    struct child *child = relay->children;
    struct slu_address nowhere = {.family = 0};
    int fd;

    while (child < relay->children + CHILDREN && child->link.fd >= 0)
        child++;
    if (child == relay->children + CHILDREN)
        return;
    fd = slu_fd_accept(relay->tcp->door, NULL, NULL);
    if (fd < 0)
        return;
    slu_tcp_link_open(&child->link, fd, &nowhere);
    child->link.in = child->knock;
    child->link.want = sizeof child->knock;
    child->answered = false;
}

/* A rank that knocks for another call may be late: it asks rank 0. */
static void serve_child(const struct relay *relay, struct child *child)
{
    uint8_t sequence[8];

    slu_put(sequence, relay->tcp->sequence, 8);
    if (slu_tcp_link_send(&child->link) < 0 || slu_tcp_link_receive(&child->link) < 0) {
        slu_tcp_link_close(&child->link);
        return;
    }
    if (child->link.want > 0)
        return;
    if (!child->answered && slu_proof_equal(child->knock, knock_token(relay), TCP_TOKEN_BYTES) &&
        memcmp(child->knock + TCP_TOKEN_BYTES, sequence, sizeof sequence) == 0) {
        child->answered = true;
        slu_tcp_link_queue(&child->link, answer_token(relay), TCP_TOKEN_BYTES);
        slu_tcp_link_queue(&child->link, relay->call->from, relay->all);
        if (slu_tcp_link_send(&child->link) == 0 && child->link.out_count > 0)
            return;
    }
    if (child->link.out_count == 0 || !child->answered)
        slu_tcp_link_close(&child->link);
}

static short events_of(const struct tcp_link *link)
{
    return (short)((link->want > 0 ? POLLIN : 0) | (link->out_count > 0 ? POLLOUT : 0));
}

/* Waits for any of the connections. Places without one have a descriptor of -1. */
static int wait_for_any(struct relay *relay, struct pollfd fds[3 + CHILDREN])
{
    int64_t until = relay->call->until;
    bool full = true;

    if (relay->parent.fd >= 0)
        until = slu_earlier(until, relay->patience);
    fds[0] = (struct pollfd){.fd = relay->tcp->link.fd, .events = events_of(&relay->tcp->link)};
    fds[1] = (struct pollfd){.fd = relay->parent.fd,
                             .events = relay->connected ? events_of(&relay->parent) : POLLOUT};
    for (uint32_t i = 0; i < CHILDREN; i++) {
        const struct tcp_link *link = &relay->children[i].link;

        fds[3 + i] = (struct pollfd){.fd = link->fd, .events = events_of(link)};
        full &= link->fd >= 0;
    }
    fds[2] =
        (struct pollfd){.fd = relay->fetched && !full ? relay->tcp->door : -1, .events = POLLIN};
    return poll(fds, 3 + CHILDREN, slu_milliseconds(until));
}

static void serve_tree(struct relay *relay, const struct pollfd *fds)
{
    bool patient = slu_now() < relay->patience;

    if (relay->parent.fd >= 0 &&
        ((fds[1].revents != 0 && !serve_parent(relay)) || (!relay->fetched && !patient)))
        ask_root(relay);
    for (uint32_t i = 0; i < CHILDREN; i++)
        if (fds[3 + i].revents != 0)
            serve_child(relay, &relay->children[i]);
    if (fds[2].revents != 0)
        let_in(relay);
}

/*
 * Handles a frame of rank 0. Returns 1 to go on, 0 if all ranks have the result, or TCP_OTHER if it
 * is another frame, whose head the caller has.
 */
static int take_frame(struct relay *relay)
{
    struct tcp *tcp = relay->tcp;
    struct tcp_frame frame;
    int error;

    if (slu_tcp_frame_decode(relay->head, &frame) < 0 || frame.sequence != tcp->sequence)
        return TCP_OTHER;
    if (frame.type == TCP_DONE && relay->fetched)
        return 0;
    if (frame.type != TCP_ALLGATHER || !relay->asked || relay->fetched)
        return TCP_OTHER;
    tcp->link.in = relay->call->from;
    tcp->link.want = relay->all;
    relay->inside = true;
    error = slu_tcp_transfer(&tcp->link, relay->call->until);
    if (error < 0)
        return error;
    relay->inside = false;
    have_fetched(relay);
    tcp->link.in = relay->head;
    tcp->link.want = TCP_FRAME_BYTES;
    return 1;
}

static int run(struct relay *relay)
{
    struct tcp_link *root = &relay->tcp->link;
    int result = 1;

    while (result > 0) {
        struct pollfd fds[3 + CHILDREN];
        int ready = wait_for_any(relay, fds);

        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready == 0 && slu_is_late(relay->call->until))
            return -ETIMEDOUT;
        if (ready < 0)
            continue;
        serve_tree(relay, fds);
        /* A verdict may have come before the connection ended. */
        if (root->out_count > 0 && slu_tcp_link_send(root) < 0)
            root->out_count = 0;
        if (fds[0].revents != 0 && slu_tcp_link_receive(root) < 0)
            return -ECONNRESET;
        if (root->want == 0)
            result = take_frame(relay);
        /* A door that cannot accept is ready again and again. */
        if (result > 0 && slu_is_late(relay->call->until))
            return -ETIMEDOUT;
    }
    return result;
}

/* Receives what follows the head of rank 0's answer. */
static int begin(struct relay *relay)
{
    struct tcp_link *root = &relay->tcp->link;
    uint64_t family;
    int error;

    root->in = relay->body;
    root->want = sizeof relay->body;
    relay->inside = true;
    error = slu_tcp_transfer(root, relay->call->until);
    if (error < 0)
        return error;
    slu_get(relay->body, &family, 2);
    if (family != 0) {
        dial_parent(relay);
    } else {
        root->in = relay->call->from;
        root->want = relay->all;
        error = slu_tcp_transfer(root, relay->call->until);
        if (error < 0)
            return error;
        have_fetched(relay);
    }
    relay->inside = false;
    root->in = relay->head;
    root->want = TCP_FRAME_BYTES;
    return 0;
}

int slu_tcp_relay(struct tcp *tcp, const struct tcp_call *call, uint8_t head[TCP_FRAME_BYTES])
{
    struct relay relay = {.tcp = tcp,
                          .call = call,
                          .head = head,
                          .all = call->bytes * tcp->ranks,
                          .parent = {.fd = -1}};
    int result;

    for (uint32_t i = 0; i < CHILDREN; i++)
        relay.children[i].link.fd = -1;
    result = begin(&relay);
    if (result == 0)
        result = run(&relay);
    for (uint32_t i = 0; i < CHILDREN; i++)
        slu_tcp_link_close(&relay.children[i].link);
    slu_tcp_link_close(&relay.parent);
    if (result < 0)
        tcp->link.out_count = 0;
    /* The rest would go to memory that is gone, and no verdict can be told apart from it. */
    if (relay.inside)
        tcp->link.want = 0;
    return result == -ETIMEDOUT && relay.inside ? TCP_CUT : result;
}

/* Tells whether SLUICE_TCP_ADDRESS, if it is set, allows a listener at this address. */
static bool may_listen(const struct slu_address *own)
{
    const char *ip = slu_env_value(SLU_ENV_TCP_ADDRESS);
    struct slu_address allowed;
    struct slu_text text;
    bool may = true;

    if (ip == NULL)
        return true;
    slu_text_save(&text);
    if (slu_address_parse(ip, slu_env_name(SLU_ENV_TCP_ADDRESS), &allowed) < 0)
        may = false;
    else
        allowed.port = own->port;
    slu_text_restore(&text);
    return may && slu_address_equal(&allowed, own);
}

/* Others are told the address of this end of the connection to rank 0. */
void slu_tcp_relay_listen(struct tcp *tcp)
{
    struct slu_address own;

    if (tcp->door >= 0 || tcp->ranks < TCP_RELAY_RANKS)
        return;
    own = slu_address_of_own(tcp->link.fd);
    own.port = 0;
    if (own.family == 0 || !may_listen(&own))
        return;
    tcp->door = slu_stream_listen_again(&own);
    if (tcp->door >= 0)
        tcp->port = slu_stream_port(tcp->door);
    else
        tcp->door = -1;
}
