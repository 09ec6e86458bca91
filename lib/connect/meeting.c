/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/meeting.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/log.h"

/*
 * How long the side that does not lead waits before it dials, and each address for the one before
 * it.
 */
#define FOLLOW_TIME SLUICE_MS(200)
#define STAGGER_TIME SLUICE_MS(250)
/* How long an attempt may connect or be silent, while others are tried. */
#define SILENT_TIME SLUICE_S(10)
/* How long a peer may take to choose, once reached, before other addresses are tried. */
#define CHOICE_TIME SLUICE_S(1)
/*
 * A peer that hangs up on an attempt before it has stood for so long may do so for ever, and each
 * attempt costs three proofs: the pauses before these are doubled more often.
 */
#define STOOD_TIME SLUICE_S(1)
#define HANG_UP_DOUBLINGS 5
#define STANDING_MOST 2
/* The first pause before the same address is dialed again, and how often it is doubled. */
#define PAUSE_TIME SLUICE_MS(50)
#define SHORT_PAUSE_TIME SLUICE_MS(10)
#define PAUSE_DOUBLINGS 3
#define LONG_PAUSE_TIME SLUICE_S(5)
/*
 * A pause if the backlog of a Unix socket is full: connect(2) fails then, and does not wait as TCP
 * does.
 */
#define FULL_PAUSE_TIME SLUICE_MS(1)

#define SAID_BYTES (SLU_HELLO_BYTES + SLU_ANSWER_BYTES)

void slu_meeting_init(struct slu_meeting *meeting, int epoll, uint64_t tag,
                      const struct slu_side *own, uint32_t number)
{
    memset(meeting, 0, sizeof *meeting);
    meeting->epoll = epoll;
    meeting->tag = tag;
    meeting->own = *own;
    meeting->number = number;
    for (uint32_t i = 0; i < SLU_MEETING_ADDRESSES; i++)
        meeting->attempts[i].talk.fd = -1;
    for (uint32_t i = 0; i < SLU_MEETING_GUESTS; i++)
        meeting->guests[i].talk.fd = -1;
}

static void add_address(struct slu_meeting *meeting, const struct slu_address *address)
{
    meeting->attempts[meeting->attempt_count++].address = *address;
}

/*
 * In one network, the loopback works whatever happens to the interfaces, if the peer listens there.
 */
static void list_addresses(struct slu_meeting *meeting)
{
    const struct slu_address *given = meeting->peer.addresses;

    if (meeting->near) {
        add_address(meeting, &(struct slu_address){0});
        return;
    }
    if (meeting->same_network && meeting->peer.everywhere) {
        struct slu_address loopback4 = {.family = 4, .port = given[0].port, .ip = {127, 0, 0, 1}};
        struct slu_address loopback6 = {.family = 6, .port = given[0].port, .ip = {[15] = 1}};

        add_address(meeting, given[0].family == 6 ? &loopback6 : &loopback4);
        add_address(meeting, given[0].family == 6 ? &loopback4 : &loopback6);
    }
    for (int i = 0; i < SLU_ENDPOINT_ADDRESSES; i++)
        if ((given[i].family == 4 || given[i].family == 6) && given[i].port != 0)
            add_address(meeting, &given[i]);
}

void slu_meeting_begin(struct slu_meeting *meeting, const struct slu_identity *own,
                       const struct slu_meeting_peer *peer)
{
    int64_t now = slu_now();

    meeting->peer = *peer;
    meeting->near = slu_identity_near(own, &peer->identity);
    meeting->same_network = slu_identity_same_network(own, &peer->identity);
    meeting->anywhere = !slu_identity_is_placed(own) || !slu_identity_is_placed(&peer->identity);
    meeting->leads = memcmp(meeting->own.key, peer->side.key, SLU_SIDE_KEY) > 0;
    meeting->known = meeting->fresh = true;
    list_addresses(meeting);
    for (uint32_t i = 0; i < meeting->attempt_count; i++)
        meeting->attempts[i].next = now + (meeting->leads ? 0 : FOLLOW_TIME) + i * STAGGER_TIME;
}

static void drop(const struct slu_meeting *meeting, struct slu_talk *talk)
{
    if (talk->fd >= 0)
        epoll_ctl(meeting->epoll, EPOLL_CTL_DEL, talk->fd, NULL);
    slu_talk_close(talk);
}

void slu_meeting_end(struct slu_meeting *meeting)
{
    for (uint32_t i = 0; i < SLU_MEETING_ADDRESSES; i++)
        drop(meeting, &meeting->attempts[i].talk);
    for (uint32_t i = 0; i < SLU_MEETING_GUESTS; i++)
        drop(meeting, &meeting->guests[i].talk);
}

static int watch(const struct slu_meeting *meeting, int what, int fd, uint32_t events,
                 uint32_t slot)
{
    struct epoll_event event = {.events = events, .data.u64 = meeting->tag + slot};

    return epoll_ctl(meeting->epoll, what, fd, &event);
}

/* Takes this connection and drops all others. */
static enum slu_meeting_state take(struct slu_meeting *meeting, struct slu_talk *talk, int *fd)
{
    epoll_ctl(meeting->epoll, EPOLL_CTL_DEL, talk->fd, NULL);
    *fd = talk->fd;
    talk->fd = -1;
    slu_meeting_end(meeting);
    return SLU_MEETING_MET;
}

/* Guests. */

/* Tells whether the other end is where the peer can be. */
static bool is_in_place(const struct slu_meeting *meeting, int fd, bool is_unix)
{
    if (is_unix != meeting->near)
        return false;
    if (meeting->near)
        return slu_identity_holds(&meeting->peer.identity, fd);
    return meeting->same_network || meeting->anywhere || !slu_stream_is_local(fd);
}

static bool send_proof(const struct slu_meeting *meeting, const struct slu_talk *talk,
                       enum slu_proof_part part, bool dialed)
{
    uint8_t proof[SLU_PROOF_BYTES];

    slu_greeting_prove(talk->bytes, part, dialed ? &meeting->own : &meeting->peer.side,
                       dialed ? &meeting->peer.side : &meeting->own, proof);
    return slu_talk_say(talk, proof, sizeof proof);
}

static bool is_proven(const struct slu_meeting *meeting, const struct slu_talk *talk,
                      enum slu_proof_part part, bool dialed)
{
    return slu_greeting_proves(talk->bytes, part, dialed ? &meeting->own : &meeting->peer.side,
                               dialed ? &meeting->peer.side : &meeting->own,
                               talk->bytes + talk->got - SLU_PROOF_BYTES);
}

static enum slu_meeting_state follow(struct slu_meeting *meeting, struct slu_guest *guest, int *fd)
{
    switch (slu_talk_receive(&guest->talk)) {
    case SLU_TALK_MORE:
        return SLU_MEETING_ON;
    case SLU_TALK_WHOLE:
        if (is_proven(meeting, &guest->talk, SLU_PROOF_CHOICE, false))
            return take(meeting, &guest->talk, fd);
        break;
    case SLU_TALK_ENDED:
        break;
    }
    drop(meeting, &guest->talk);
    return SLU_MEETING_ON;
}

/* Checks whether a guest is the peer, which is known now. */
static enum slu_meeting_state check_guest(struct slu_meeting *meeting, struct slu_guest *guest,
                                          int *fd)
{
    struct slu_hello hello;

    slu_hello_read(guest->talk.bytes, &hello);
    if (hello.own != meeting->peer.number ||
        (!guest->answered && !is_in_place(meeting, guest->talk.fd, guest->is_unix)) ||
        !is_proven(meeting, &guest->talk, SLU_PROOF_DIALER, false) ||
        (!guest->answered && (slu_stream_ended(guest->talk.fd) ||
                              !send_proof(meeting, &guest->talk, SLU_PROOF_ACCEPTOR, false)))) {
        slu_log(SLUICE_LOG_DEBUG, "dropped a connection that is not from the peer");
        drop(meeting, &guest->talk);
        return SLU_MEETING_ON;
    }
    meeting->reached = true;
    if (meeting->leads)
        return take(meeting, &guest->talk, fd);
    guest->proven = true;
    guest->talk.want += SLU_PROOF_BYTES;
    return follow(meeting, guest, fd);
}

static struct slu_guest *find_guest_place(struct slu_meeting *meeting)
{
    struct slu_guest *first = &meeting->guests[0];

    for (uint32_t i = 0; i < SLU_MEETING_GUESTS; i++) {
        struct slu_guest *guest = &meeting->guests[i];

        if (guest->talk.fd >= 0 && !guest->proven && slu_stream_ended(guest->talk.fd))
            drop(meeting, &guest->talk);
        if (guest->talk.fd < 0)
            return guest;
        if (guest->proven == first->proven ? guest->since < first->since : !guest->proven)
            first = guest;
    }
    drop(meeting, &first->talk);
    return first;
}

bool slu_meeting_prove_early(const struct slu_meeting *meeting, const struct slu_pending_conn *conn,
                             uint8_t proof[SLU_PROOF_BYTES])
{
    struct slu_hello hello;

    if (!meeting->known || meeting->leads || !meeting->near)
        return false;
    slu_hello_read(conn->talk.bytes, &hello);
    if (hello.own != meeting->peer.number || !is_in_place(meeting, conn->talk.fd, conn->is_unix))
        return false;
    slu_greeting_prove(conn->talk.bytes, SLU_PROOF_ACCEPTOR, &meeting->peer.side, &meeting->own,
                       proof);
    return true;
}

enum slu_meeting_state slu_meeting_welcome(struct slu_meeting *meeting,
                                           const struct slu_pending_conn *conn, int *fd)
{
    struct slu_guest *guest = find_guest_place(meeting);
    enum slu_meeting_state state = SLU_MEETING_ON;

    *guest = (struct slu_guest){.talk = conn->talk,
                                .since = slu_now(),
                                .is_unix = conn->is_unix,
                                .answered = conn->answered};
    if (meeting->known)
        state = check_guest(meeting, guest, fd);
    /* The acceptor has added it to the set. */
    if (state == SLU_MEETING_ON && guest->talk.fd >= 0 &&
        watch(meeting, EPOLL_CTL_MOD, guest->talk.fd, EPOLLIN,
              SLU_MEETING_ADDRESSES + (uint32_t)(guest - meeting->guests)) != 0)
        drop(meeting, &guest->talk);
    return state;
}

static enum slu_meeting_state receive_guest(struct slu_meeting *meeting, struct slu_guest *guest,
                                            int *fd)
{
    uint8_t byte;

    if (guest->talk.fd < 0)
        return SLU_MEETING_ON;
    if (guest->proven)
        return follow(meeting, guest, fd);
    /* Before it is answered, a guest sends nothing, so an event means its end. */
    if (recv(guest->talk.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
        (errno != EAGAIN && errno != EINTR))
        drop(meeting, &guest->talk);
    return SLU_MEETING_ON;
}

/* Attempts. */

/* How often the pause before the next attempt is doubled. */
static uint32_t doublings_of(struct slu_attempt *attempt, int64_t now)
{
    uint32_t most = PAUSE_DOUBLINGS, count = attempt->failures;

    if (attempt->state == SLU_ATTEMPT_STANDING) {
        attempt->hang_ups = now - attempt->since < STOOD_TIME ? attempt->hang_ups + 1 : 0;
        most = HANG_UP_DOUBLINGS;
        count = attempt->hang_ups > 0 ? attempt->hang_ups - 1 : 0;
    }
    return count < most ? count : most;
}

static void end_attempt(struct slu_meeting *meeting, struct slu_attempt *attempt,
                        enum slu_outcome outcome)
{
    bool hung_up = outcome == SLU_OUTCOME_HUNG_UP;
    struct slu_attempt *end = meeting->attempts + meeting->attempt_count;
    int64_t now = slu_now();
    uint32_t doublings = doublings_of(attempt, now);

    drop(meeting, &attempt->talk);
    attempt->state = SLU_ATTEMPT_NONE;
    attempt->outcome = outcome;
    attempt->failures++;
    attempt->next = now + ((hung_up ? SHORT_PAUSE_TIME : PAUSE_TIME) << doublings);
    if ((outcome == SLU_OUTCOME_AWAY || outcome == SLU_OUTCOME_NO_ROUTE) &&
        attempt->failures > PAUSE_DOUBLINGS)
        attempt->next = now + LONG_PAUSE_TIME;
    /* The next address was waiting for this one. */
    for (struct slu_attempt *other = meeting->attempts; other < end; other++) {
        if (other->outcome != SLU_OUTCOME_NONE || other->state != SLU_ATTEMPT_NONE)
            continue;
        if (attempt->failures == 1 && other->next > now)
            other->next = now;
        return;
    }
}

static enum slu_outcome outcome_of(struct slu_meeting *meeting, int error)
{
    if (error == ECONNREFUSED)
        return SLU_OUTCOME_REFUSED;
    if (error == ECONNRESET || error == EPIPE)
        return SLU_OUTCOME_HUNG_UP;
    if (slu_is_shortage(error)) {
        if (meeting->starved == 0)
            slu_log(SLUICE_LOG_ERROR, "cannot dial a peer, trying again: %s",
                    strerrordesc_np(error));
        meeting->starved = error;
        return SLU_OUTCOME_UNSURE;
    }
    if (error == EAGAIN)
        return SLU_OUTCOME_UNSURE;
    /* Without IPv6, the loopback has no address of it, and no route leads to others. */
    if (error == ENETUNREACH || error == EAFNOSUPPORT || error == EADDRNOTAVAIL)
        return SLU_OUTCOME_NO_ROUTE;
    return SLU_OUTCOME_AWAY;
}

/* Ends an attempt that has reached another process than the peer. */
static bool has_reached(struct slu_meeting *meeting, struct slu_attempt *attempt)
{
    if (is_in_place(meeting, attempt->talk.fd, meeting->near))
        return true;
    slu_log(SLUICE_LOG_INFO, "another process listens at an address of a peer");
    end_attempt(meeting, attempt, SLU_OUTCOME_REFUSED);
    return false;
}

/* Sends the hello and adds the socket to the set, or changes it there. */
static void send_hello(struct slu_meeting *meeting, struct slu_attempt *attempt, int what)
{
    struct slu_hello hello = {meeting->peer.number, meeting->number};
    int fd = attempt->talk.fd;

    if (!has_reached(meeting, attempt))
        return;
    attempt->talk.got = attempt->talk.want = SLU_HELLO_BYTES;
    if (slu_hello_make(&hello, meeting->peer.side.key, attempt->talk.bytes) < 0 ||
        !slu_talk_say(&attempt->talk, attempt->talk.bytes, SLU_HELLO_BYTES)) {
        end_attempt(meeting, attempt, SLU_OUTCOME_HUNG_UP);
        return;
    }
    attempt->state = SLU_ATTEMPT_ASKING;
    attempt->talk.want += SLU_DENIAL_BYTES;
    if (watch(meeting, what, fd, EPOLLIN, (uint32_t)(attempt - meeting->attempts)) != 0)
        end_attempt(meeting, attempt, SLU_OUTCOME_UNSURE);
}

/*
 * Sends our proof. If we lead, and the proof of the acceptor has come with its answer, our choice
 * goes with it.
 */
static bool prove_attempt(struct slu_meeting *meeting, struct slu_attempt *attempt)
{
    struct slu_talk *talk = &attempt->talk;
    uint8_t proofs[2 * SLU_PROOF_BYTES];

    talk->want += SLU_PROOF_BYTES;
    slu_greeting_prove(talk->bytes, SLU_PROOF_DIALER, &meeting->own, &meeting->peer.side, proofs);
    attempt->chosen = meeting->leads && slu_talk_receive(talk) == SLU_TALK_WHOLE &&
                      is_proven(meeting, talk, SLU_PROOF_ACCEPTOR, true);
    if (attempt->chosen)
        slu_greeting_prove(talk->bytes, SLU_PROOF_CHOICE, &meeting->own, &meeting->peer.side,
                           proofs + SLU_PROOF_BYTES);
    return slu_talk_say(talk, proofs, attempt->chosen ? sizeof proofs : SLU_PROOF_BYTES);
}

/* Handles the first 16 bytes of the answer, or all of it. */
static void receive_answer(struct slu_meeting *meeting, struct slu_attempt *attempt)
{
    struct slu_talk *talk = &attempt->talk;
    int verdict = slu_answer_verdict(talk->bytes + SLU_HELLO_BYTES);

    if (verdict != SLU_VERDICT_GO_ON) {
        end_attempt(meeting, attempt,
                    verdict == SLU_VERDICT_DENIED ? SLU_OUTCOME_REFUSED : SLU_OUTCOME_HUNG_UP);
    } else if (talk->want < SAID_BYTES) {
        talk->want = SAID_BYTES;
    } else if (!slu_answer_proves(talk->bytes, meeting->peer.side.key) ||
               !prove_attempt(meeting, attempt)) {
        end_attempt(meeting, attempt, SLU_OUTCOME_HUNG_UP);
    } else {
        meeting->reached = true;
        attempt->state = SLU_ATTEMPT_STANDING;
        attempt->since = slu_now();
        attempt->failures = 0;
    }
}

static enum slu_meeting_state receive_attempt(struct slu_meeting *meeting,
                                              struct slu_attempt *attempt, int *fd)
{
    struct slu_talk *talk = &attempt->talk;
    enum slu_talk_state state = SLU_TALK_MORE;

    while (talk->fd >= 0 && (state = slu_talk_receive(talk)) == SLU_TALK_WHOLE) {
        if (attempt->state == SLU_ATTEMPT_ASKING) {
            receive_answer(meeting, attempt);
        } else if (attempt->chosen ||
                   (is_proven(meeting, talk, SLU_PROOF_ACCEPTOR, true) &&
                    (!meeting->leads || send_proof(meeting, talk, SLU_PROOF_CHOICE, true)))) {
            return take(meeting, talk, fd);
        } else {
            end_attempt(meeting, attempt, SLU_OUTCOME_HUNG_UP);
        }
    }
    if (talk->fd >= 0 && state == SLU_TALK_ENDED)
        end_attempt(meeting, attempt, SLU_OUTCOME_HUNG_UP);
    return SLU_MEETING_ON;
}

/* A socket has a peer once it is connected. */
static bool is_connecting(int fd)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;

    return getpeername(fd, (struct sockaddr *)&peer, &length) != 0 && errno == ENOTCONN;
}

static void connected(struct slu_meeting *meeting, struct slu_attempt *attempt)
{
    int error = slu_stream_error(attempt->talk.fd);

    if (error != 0)
        end_attempt(meeting, attempt, outcome_of(meeting, error));
    else if (!is_connecting(attempt->talk.fd))
        send_hello(meeting, attempt, EPOLL_CTL_MOD);
}

static void begin_attempt(struct slu_meeting *meeting, struct slu_attempt *attempt, int64_t now)
{
    bool here = attempt->address.family == 0;
    int fd =
        here ? slu_stream_dial_here(meeting->peer.listener) : slu_stream_dial(&attempt->address);

    attempt->since = now;
    if (fd == -EAGAIN) {
        attempt->outcome = SLU_OUTCOME_UNSURE;
        attempt->next = now + FULL_PAUSE_TIME;
        return;
    }
    if (fd < 0) {
        end_attempt(meeting, attempt, outcome_of(meeting, -fd));
        return;
    }
    meeting->starved = 0;
    attempt->talk = (struct slu_talk){.fd = fd};
    attempt->state = SLU_ATTEMPT_CONNECTING;
    if (here)
        send_hello(meeting, attempt, EPOLL_CTL_ADD);
    else if (watch(meeting, EPOLL_CTL_ADD, fd, EPOLLOUT, (uint32_t)(attempt - meeting->attempts)) !=
             0)
        end_attempt(meeting, attempt, SLU_OUTCOME_UNSURE);
}

enum slu_meeting_state slu_meeting_event(struct slu_meeting *meeting, uint32_t slot, int *fd)
{
    struct slu_attempt *attempt;

    if (slot >= SLU_MEETING_ADDRESSES + SLU_MEETING_GUESTS)
        return SLU_MEETING_ON;
    if (slot >= SLU_MEETING_ADDRESSES)
        return receive_guest(meeting, &meeting->guests[slot - SLU_MEETING_ADDRESSES], fd);
    attempt = &meeting->attempts[slot];
    /* A late event may be of an earlier socket. */
    if (attempt->state == SLU_ATTEMPT_CONNECTING)
        connected(meeting, attempt);
    else if (attempt->state != SLU_ATTEMPT_NONE)
        return receive_attempt(meeting, attempt, fd);
    return SLU_MEETING_ON;
}

/* Time. */

/* Tells whether attempts that have reached the peer hold up all others. */
static bool is_standing(const struct slu_meeting *meeting, int64_t now)
{
    uint32_t standing = 0;

    for (uint32_t i = 0; i < meeting->attempt_count; i++) {
        const struct slu_attempt *attempt = &meeting->attempts[i];

        if (attempt->state != SLU_ATTEMPT_STANDING)
            continue;
        if (now - attempt->since < CHOICE_TIME || ++standing == STANDING_MOST)
            return true;
    }
    return false;
}

static void note_next(int64_t *next, int64_t when)
{
    if (when < *next)
        *next = when;
}

static void tend_attempt(struct slu_meeting *meeting, struct slu_attempt *attempt, int64_t now,
                         int64_t *next)
{
    if (attempt->state == SLU_ATTEMPT_NONE && now >= attempt->next) {
        if (is_standing(meeting, now))
            note_next(next, now + CHOICE_TIME);
        else
            begin_attempt(meeting, attempt, now);
    } else if ((attempt->state == SLU_ATTEMPT_CONNECTING || attempt->state == SLU_ATTEMPT_ASKING) &&
               now - attempt->since >= SILENT_TIME) {
        end_attempt(meeting, attempt,
                    attempt->state == SLU_ATTEMPT_ASKING ? SLU_OUTCOME_UNSURE : SLU_OUTCOME_AWAY);
    }
    if (attempt->state == SLU_ATTEMPT_NONE && attempt->next > now)
        note_next(next, attempt->next);
    else if (attempt->state != SLU_ATTEMPT_NONE && attempt->state != SLU_ATTEMPT_STANDING)
        note_next(next, attempt->since + SILENT_TIME);
}

enum slu_meeting_state slu_meeting_tick(struct slu_meeting *meeting, int64_t now, int64_t *next,
                                        int *fd)
{
    if (!meeting->known)
        return SLU_MEETING_ON;
    for (uint32_t i = 0; meeting->fresh && i < SLU_MEETING_GUESTS; i++)
        if (meeting->guests[i].talk.fd >= 0 && !meeting->guests[i].proven &&
            check_guest(meeting, &meeting->guests[i], fd) == SLU_MEETING_MET)
            return SLU_MEETING_MET;
    meeting->fresh = false;
    for (uint32_t i = 0; i < meeting->attempt_count; i++)
        tend_attempt(meeting, &meeting->attempts[i], now, next);
    if (!slu_meeting_is_lost(meeting, now, next))
        return SLU_MEETING_ON;
    slu_meeting_end(meeting);
    return SLU_MEETING_LOST;
}
