/* SPDX-License-Identifier: MIT */
/*
 * Two near sides agree on shared memory, over the socket on which they have met. They greet each
 * other, and are connected. Nothing is shared until one of them has something to send: so an idle
 * connection needs no memory but that of its two ends. The side that led the meeting then makes a
 * file with both segments and sends it; the other one asks for it if it is the first. It maps the
 * file and answers whether it could. After that the socket carries bells and descriptors, or frames
 * if one side could not.
 */
#include "transport/soft/shm/shm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "endpoint/versions.h"

/* Versions of these messages and of all that is in the segments. Both use the lower VERSION. */
#define VERSION (7 + SLU_VERSIONS_NEXT)
#define READABLE 7

static const uint8_t magic[4] = {'s', 'l', 'u', 'm'};

/*
 * The kinds of messages before memory is shared. Between its offer and the answer, the side that
 * leads sends none.
 */
enum join_kind {
    JOIN_GREETING = 1, /* the first of each side, with its token */
    JOIN_PROBE,        /* asks for a sign of life */
    JOIN_ECHO,         /* answers a probe */
    JOIN_WISH,         /* asks the side that leads for its offer */
    JOIN_OFFER,        /* with the descriptor of the segments if there are any */
    JOIN_ANSWER,       /* whether they are mapped */
    JOIN_FAREWELL,     /* the last one: why the connection ends */
    JOIN_KINDS
};

struct join_message {
    uint8_t magic[4];
    uint8_t readable; /* readable from version */
    uint8_t kind;
    uint8_t has_segments; /* offer, answer: mapped by this side */
    uint8_t written;      /* by version */
    union {
        struct shm_token token; /* of a greeting */
        uint32_t value;         /* probe, echo: number of the probe; farewell: enum slu_farewell */
    } about;
};

#define MESSAGE_BYTES ((uint32_t)sizeof(struct join_message))
/* Messages that one event handles: more than a peer sends that keeps to the protocol. */
#define MESSAGES_MOST 16
#define BOTH_BYTES (2 * SHM_SEGMENT_BYTES)

#define LOST_WHILE_CONNECTING "the peer closed, or its process ended, while the two connected"

_Static_assert(sizeof(struct join_message) == 32 && sizeof(struct join_message) <= TCP_CARRY_BYTES,
               "as it is sent");

bool slu_soft_shm_offer(struct soft_tcp *tcp, const struct slu_endpoint *remote)
{
    tcp->shm = calloc(1, sizeof(*tcp->shm));
    if (tcp->shm == NULL)
        return false;
    tcp->shm->passed_fd = -1;
    tcp->shm->leads = memcmp(tcp->qp->nonce, remote->soft.nonce, SLU_NONCE_BYTES) > 0;
    return true;
}

/*
 * Sets where this side receives: the side that made the segments in the first one. If there is no
 * memory for what belongs to them, there are none.
 */
static void set_segments(struct soft_shm *shm, void *map, bool made)
{
    struct shm_segment *segments = map;
    if (segments != NULL && shm->loans == NULL)
        shm->loans = calloc(1, sizeof(*shm->loans));
    if (shm->loans == NULL) {
        slu_soft_shm_unmap(map, BOTH_BYTES);
        segments = NULL;
    }
    shm->segments = segments;
    shm->reader.segment = segments == NULL || made ? segments : segments + 1;
    shm->writer.segment = segments != NULL && made ? segments + 1 : segments;
}

/*
 * Sends a message. Returns whether it is sent. Without memory or room in the socket, the owner of
 * the CQ tries again later. Other errors mean that the socket has ended, which is detected later.
 */
static bool say(struct soft_tcp *tcp, enum join_kind kind, uint32_t value, int fd)
{
    struct join_message message = {
        .readable = READABLE,
        .written = VERSION,
        .kind = (uint8_t)kind,
        .has_segments = tcp->shm->segments != NULL,
    };
    memcpy(message.magic, magic, sizeof(magic));
    if (kind == JOIN_GREETING)
        message.about.token = slu_soft_shm_token();
    else
        message.about.value = value;
    int err = slu_soft_shm_tell(tcp->fd, &message, sizeof(message), fd);
    /* Too many references: the user has as many descriptors in flight as it may. */
    if (slu_is_shortage(-err) || err == -ETOOMANYREFS || err == -EAGAIN)
        slu_soft_tcp_starve(tcp);
    return err == 0;
}

/* Sends the message of the stage, which is due until it is sent. */
static void say_stage(struct soft_tcp *tcp, enum join_kind kind, int fd)
{
    tcp->shm->unsent = !say(tcp, kind, 0, fd);
}

static void make_offer(struct soft_tcp *tcp)
{
    void *map = NULL;
    int fd = tcp->shm->apart ? -EPROTO : slu_soft_shm_make(BOTH_BYTES, SHM_READ_WRITE, &map);
    if (fd < 0)
        slu_log(SLUICE_LOG_INFO, "queue pair %u: no shared memory, it uses a socket: %s",
                tcp->qp->qpn, strerrordesc_np(-fd));
    tcp->shm->stage = SHM_OFFERING;
    set_segments(tcp->shm, map, true);
    say_stage(tcp, JOIN_OFFER, tcp->shm->segments != NULL ? fd : -1);
    if (fd >= 0)
        slu_fd_close(fd);
}

/* Leaves the idle phase: memory is needed now. */
static void begin_joining(struct soft_tcp *tcp)
{
    tcp->phase = PHASE_JOINING;
    slu_soft_cq_of(tcp->qp)->shared--;
    if (tcp->shm->leads) {
        make_offer(tcp);
    } else {
        tcp->shm->stage = SHM_WISHING;
        say_stage(tcp, JOIN_WISH, -1);
    }
}

void slu_soft_shm_speak(struct soft_tcp *tcp)
{
    struct soft_qp *qp = tcp->qp;
    if (tcp->starved)
        return;
    if (qp->sends.posted != qp->sends.done) {
        begin_joining(tcp);
        return;
    }
    tcp->probe = tcp->probe && !say(tcp, JOIN_PROBE, tcp->probe_seq, -1);
    tcp->echo = tcp->echo && !say(tcp, JOIN_ECHO, tcp->echo_seq, -1);
}

/* Both sides have greeted: they are connected. */
static void begin_idling(struct soft_tcp *tcp)
{
    struct soft_cq *cq = slu_soft_cq_of(tcp->qp);
    if (tcp->shm->unsent || !tcp->greeted)
        return;
    tcp->phase = PHASE_IDLE;
    cq->shared++;
    tcp->qp->level = tcp->shm->apart ? SLUICE_LEVEL_TCP : SLUICE_LEVEL_MEMORY;
    if (!tcp->shm->apart)
        slu_soft_shm_begin_exports(tcp);
    atomic_store_explicit(&cq->opened, !cq->base.messages_only, memory_order_relaxed);
    slu_soft_shm_speak(tcp);
}

void slu_soft_shm_join(struct soft_tcp *tcp)
{
    tcp->phase = PHASE_JOINING;
    say_stage(tcp, JOIN_GREETING, -1);
}

static int take_fd(struct soft_shm *shm)
{
    int fd = shm->passed_fd;
    shm->passed_fd = -1;
    return fd;
}

/*
 * Receives length bytes, and keeps a descriptor that comes with them. Returns 1 when they are
 * complete, 0 if not yet, -1 at the end.
 */
static int hear(struct soft_tcp *tcp, uint32_t length)
{
    struct soft_shm *shm = tcp->shm;
    while (tcp->carry_length < length) {
        int fd = -1;
        ssize_t got = slu_fd_receive(tcp->fd, tcp->carry + tcp->carry_length,
                                     length - tcp->carry_length, &fd);
        if (shm->passed_fd < 0)
            shm->passed_fd = fd;
        else
            slu_soft_shm_refuse(fd);
        if (got < 0 && errno == EAGAIN)
            return 0;
        if (got <= 0)
            return -1;
        tcp->carry_length += (uint32_t)got;
    }
    tcp->carry_length = 0;
    tcp->heard = slu_now();
    return 1;
}

/* Counts requests that were posted on the idle connection as the first uses of their keys. */
static void wish_posted(struct soft_tcp *tcp)
{
    const struct soft_ring *sends = &tcp->qp->sends;
    for (uint32_t at = sends->done; at != sends->posted; at++)
        if (slu_soft_wqe(tcp->qp, at)->opcode != SLUICE_OP_SEND)
            slu_soft_shm_wish(tcp, slu_soft_wqe(tcp->qp, at)->rkey);
}

static void begin_sharing(struct soft_tcp *tcp)
{
    struct soft_cq *cq = slu_soft_cq_of(tcp->qp);
    tcp->shm->stage = SHM_ON;
    tcp->shared = tcp->qp->swift = true;
    tcp->shm->passed_fd = -1;
    slu_soft_shm_want(tcp);
    tcp->qp->direct = true;
    wish_posted(tcp);
    cq->shared++;
    slu_log(SLUICE_LOG_DEBUG, "queue pair %u: shared memory with its peer", tcp->qp->qpn);
    slu_soft_shm_heat(tcp);
}

/* Ends the negotiation: both sides have mapped the segments, or not. */
static void conclude(struct soft_tcp *tcp, bool usable)
{
    if (usable) {
        begin_sharing(tcp);
    } else {
        slu_log(SLUICE_LOG_INFO, "queue pair %u: no shared memory with its peer, it uses a socket",
                tcp->qp->qpn);
        slu_soft_shm_part(tcp);
        tcp->shm->stage = SHM_OFF;
        tcp->qp->level = SLUICE_LEVEL_TCP;
    }
    slu_soft_tcp_opened(tcp);
}

static void answer(struct soft_tcp *tcp)
{
    tcp->shm->stage = SHM_ANSWERING;
    say_stage(tcp, JOIN_ANSWER, -1);
    if (!tcp->shm->unsent)
        conclude(tcp, tcp->shm->segments != NULL);
}

/* Both sides find by this whether they understand each other, and find the same. */
static bool understood(const struct soft_tcp *tcp, const struct join_message *message)
{
    static const struct slu_versions known = {NULL, VERSION, READABLE};
    if (slu_versions_fit(&known, message->written, message->readable))
        return true;
    slu_log(SLUICE_LOG_WARN,
            "queue pair %u: its peer shares memory by version %u, readable from version %u on, "
            "this process by version %d, readable from version %d on: they use a socket, which is "
            "slower",
            tcp->qp->qpn, message->written, message->readable, VERSION, READABLE);
    return false;
}

/* Handle a message of each kind. False: it is invalid now. */

static bool take_greeting(struct soft_tcp *tcp, const struct join_message *message)
{
    if (tcp->greeted)
        return false;
    tcp->greeted = true;
    tcp->shm->token = message->about.token;
    tcp->shm->apart = !understood(tcp, message);
    begin_idling(tcp);
    return true;
}

static bool take_probe(struct soft_tcp *tcp, const struct join_message *message)
{
    tcp->echo = true;
    tcp->echo_seq = message->about.value;
    if (tcp->phase == PHASE_IDLE)
        slu_soft_shm_speak(tcp);
    return true;
}

static bool take_echo(struct soft_tcp *tcp, const struct join_message *message)
{
    if (!tcp->qp->asking || tcp->probe || message->about.value != tcp->probe_seq)
        return false;
    slu_soft_answered(tcp->qp, SLUICE_STATUS_SUCCESS);
    return true;
}

/* If the offer and the wish have crossed, the wish is granted already. */
static bool take_wish(struct soft_tcp *tcp, const struct join_message *message)
{
    (void)message;
    if (!tcp->shm->leads)
        return false;
    if (tcp->phase == PHASE_IDLE)
        begin_joining(tcp);
    return true;
}

static bool take_offer(struct soft_tcp *tcp, const struct join_message *message)
{
    struct soft_shm *shm = tcp->shm;
    if (shm->leads || shm->stage == SHM_ANSWERING)
        return false;
    if (tcp->phase == PHASE_IDLE) {
        tcp->phase = PHASE_JOINING;
        slu_soft_cq_of(tcp->qp)->shared--;
    }
    if (message->has_segments == 1 && !shm->apart)
        set_segments(shm, slu_soft_shm_map(take_fd(shm), 0, BOTH_BYTES, SHM_READ_WRITE), false);
    else
        slu_soft_shm_part(tcp);
    answer(tcp);
    return true;
}

static bool take_answer(struct soft_tcp *tcp, const struct join_message *message)
{
    if (tcp->shm->stage != SHM_OFFERING || tcp->shm->unsent)
        return false;
    conclude(tcp, message->has_segments == 1 && tcp->shm->segments != NULL);
    return true;
}

static bool take_farewell(struct soft_tcp *tcp, const struct join_message *message)
{
    const struct tcp_frame frame = {.type = TCP_FAREWELL, .status = (uint8_t)message->about.value};
    slu_soft_tcp_take_farewell(tcp, &frame);
    return true;
}

static bool take(struct soft_tcp *tcp, const struct join_message *message)
{
    static bool (*const takers[JOIN_KINDS])(struct soft_tcp *, const struct join_message *) = {
        [JOIN_GREETING] = take_greeting, [JOIN_PROBE] = take_probe, [JOIN_ECHO] = take_echo,
        [JOIN_WISH] = take_wish,         [JOIN_OFFER] = take_offer, [JOIN_ANSWER] = take_answer,
        [JOIN_FAREWELL] = take_farewell,
    };
    if (message->kind >= JOIN_KINDS || takers[message->kind] == NULL || message->has_segments > 1 ||
        (message->kind != JOIN_GREETING && !tcp->greeted))
        return false;
    return takers[message->kind](tcp, message);
}

/*
 * Handles a message of the peer. A descriptor that no offer brought is closed. False: the message
 * is invalid, and the log says why.
 */
static bool judge(struct soft_tcp *tcp)
{
    struct join_message message;
    memcpy(&message, tcp->carry, sizeof(message));
    bool valid = memcmp(message.magic, magic, sizeof(magic)) == 0 && take(tcp, &message);
    slu_soft_shm_refuse(take_fd(tcp->shm));
    if (valid)
        return true;
    slu_log(SLUICE_LOG_WARN, "queue pair %u: the peer broke the protocol: no offer of memory",
            tcp->qp->qpn);
    return false;
}

void slu_soft_shm_join_event(struct soft_tcp *tcp)
{
    SLU_KEEP_ERRNO;
    uint32_t count = 0;
    int heard = 1;
    bool sound = true;
    /*
     * While a message of this side waits for memory, the end of the peer is noticed, too. A peer
     * that sends without end does not keep this thread: what is left makes the next event.
     */
    while ((tcp->phase == PHASE_JOINING || tcp->phase == PHASE_IDLE) && sound && heard == 1 &&
           count++ < MESSAGES_MOST) {
        heard = hear(tcp, MESSAGE_BYTES);
        if (heard == 1)
            sound = judge(tcp);
    }
    if (heard < 0) {
        tcp->ended = true;
        slu_soft_note_loss(tcp->qp, tcp->greeted ? SOFT_PEER_ENDED : LOST_WHILE_CONNECTING);
        slu_soft_tcp_lose(tcp, SLUICE_STATUS_RETRY_EXC_ERR);
    } else if (!sound) {
        slu_soft_tcp_lose(tcp, SLUICE_STATUS_BAD_RESP_ERR);
    }
}

void slu_soft_shm_join_again(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    if (tcp->phase == PHASE_IDLE) {
        slu_soft_shm_speak(tcp);
    } else if (!shm->unsent) {
        return;
    } else if (shm->stage == SHM_GREETING) {
        say_stage(tcp, JOIN_GREETING, -1);
        begin_idling(tcp);
    } else if (shm->stage == SHM_WISHING) {
        say_stage(tcp, JOIN_WISH, -1);
    } else if (shm->stage == SHM_OFFERING) {
        slu_soft_shm_unmap(shm->segments, BOTH_BYTES);
        make_offer(tcp);
    } else {
        answer(tcp);
    }
}

void slu_soft_shm_say_farewell(struct soft_tcp *tcp)
{
    uint8_t why = tcp->qp->farewell;
    if (tcp->shm == NULL || !tcp->greeted || tcp->ended)
        return;
    /* The peer may share memory already: this message is the first behind the offer. */
    if (tcp->shm->stage == SHM_OFFERING && !tcp->shm->unsent)
        slu_soft_shm_say(tcp, SHM_WORD_FAREWELL, &why, sizeof(why), -1);
    else
        say(tcp, JOIN_FAREWELL, why, -1);
}

void slu_soft_shm_part(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    if (shm == NULL)
        return;
    if (tcp->shared) {
        slu_soft_shm_say_words(tcp);
        slu_soft_shm_leave_hot(tcp);
        slu_soft_shm_end_exports(tcp);
        slu_soft_shm_end_imports(shm);
        slu_soft_cq_of(tcp->qp)->shared--;
        tcp->shared = tcp->qp->swift = false;
    } else if (tcp->phase == PHASE_IDLE) {
        slu_soft_cq_of(tcp->qp)->shared--;
    }
    slu_soft_shm_refuse(take_fd(shm));
    slu_soft_shm_unmap(shm->segments, BOTH_BYTES);
    slu_soft_shm_drop_bulk(tcp);
    slu_soft_shm_unmap((void *)(uintptr_t)shm->reader.bulk, SHM_BULK_BYTES);
    set_segments(shm, NULL, false);
    shm->reader.bulk = NULL;
}

void slu_soft_shm_forget(struct soft_tcp *tcp)
{
    if (tcp->shm != NULL)
        free(tcp->shm->loans);
    free(tcp->shm);
    tcp->shm = NULL;
}
