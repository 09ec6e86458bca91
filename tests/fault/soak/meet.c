/* SPDX-License-Identifier: MIT */
/*
 * How two ranks connect, part, and connect again. Each pair has three connections:
 * a peer of the mail's multichannel, one of the assembly's, and a channel of its own.
 */
#include <stdlib.h>

#include "soak.h"

#define SELF_MEETING (UINT64_C(1) << 40)

static struct sluice_channel_attr attributes(void)
{
    static const uint32_t modes[] = {SLUICE_WAIT_ADAPTIVE, SLUICE_WAIT_EVENT};
    struct sluice_channel_attr attr = {.size = sizeof(attr),
                                       .send_depth = DEPTH,
                                       .receive_depth = 2 * DEPTH,
                                       .wait_mode = modes[random_below(&soak.rng, COUNT(modes))]};
    /*
     * A device still answers for a killed process; only keep-alive reports the loss to a rank that
     * waits.
     */
    if (is_verbs()) {
        attr.keepalive = SLUICE_S(2);
        attr.ack_timeout = 18; /* 1 s, seven times: an emulated machine stands still at times */
    }
    return attr;
}

static struct sluice_mr *allocate(size_t length, uint32_t access)
{
    struct sluice_mr *mr = CALL(mr_alloc, soak.pd, length, access);
    expect(mr, "%zu bytes: %s", length, sluice_last_error());
    return mr;
}

static void open_memory(void)
{
    const uint32_t remote =
        SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ;
    soak.common_mr =
        allocate(sizeof(struct common), remote | (soak.atomics ? SLUICE_ACCESS_REMOTE_ATOMIC : 0));
    soak.common = sluice_mr_addr(soak.common_mr);
    int fds = count_fds();
    soak.board_mr = allocate(BOARD, SLUICE_ACCESS_REMOTE_READ);
    soak.alloc_fds = count_fds() - fds;
    soak.board = sluice_mr_addr(soak.board_mr);
    fill_pattern(soak.board, 0, BOARD, board_key(soak.index, soak.epoch));
    soak.arena_mr = allocate((size_t)FLIGHTS * (SMALL + 64), SLUICE_ACCESS_LOCAL_WRITE);
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        soak.free_flights[i] = FLIGHTS - 1 - i;
    }
    soak.free_count = FLIGHTS;
}

/* No peer is connected yet, except the rank itself. */
static struct sluice_multichannel *open_multichannel(struct sluice_endpoint *endpoints)
{
    struct sluice_endpoint remotes[RANKS_MAX];
    struct sluice_channel_attr attr = attributes();
    struct sluice_prepared_multichannel *prepared =
        CALL(multichannel_prepare, soak.pd, soak.size, &attr);
    expect(prepared, "%s", sluice_last_error());
    if (one_in(&soak.rng, 2)) { /* a connection that is given up */
        CALL_VOID(prepared_multichannel_free, prepared);
        prepared = CALL(multichannel_prepare, soak.pd, soak.size, &attr);
        expect(prepared, "%s", sluice_last_error());
    }
    expect(CALL(prepared_multichannel_endpoints, prepared, endpoints, soak.size) == 0, "%s",
           sluice_last_error());
    memset(remotes, 0, sizeof(remotes));
    remotes[soak.index] = endpoints[soak.index];
    struct sluice_multichannel *mc =
        CALL(prepared_multichannel_handshake, prepared, remotes, soak.size);
    expect(mc, "%s", sluice_last_error());
    return mc;
}

static void meet_self(void)
{
    struct peer *peer = &soak.peers[soak.index];
    peer->state = PEER_UP;
    peer->meeting = SELF_MEETING | soak.epoch;
    peer->epoch = soak.epoch;
    expect(sluice_mr_remote(soak.common_mr, &peer->common) == 0, "%s", sluice_last_error());
    expect(sluice_mr_remote(soak.board_mr, &peer->board) == 0, "%s", sluice_last_error());
}

void open_rank(void)
{
    struct sluice_context_info info = {.size = sizeof(info)};
    soak.context = sluice_context_open(soak.options.device, NULL);
    expect(soak.context, "%s", sluice_last_error());
    expect(sluice_context_query(soak.context, &info) == 0, "%s", sluice_last_error());
    soak.max_message = info.max_message;
    soak.atomics = info.atomics != SLUICE_ATOMICS_NONE;
    soak.pd = sluice_pd_alloc(soak.context);
    expect(soak.pd, "%s", sluice_last_error());
    open_memory();
    soak.mail = (struct office){.kind = OFFICE_MAIL, .mc = open_multichannel(soak.first[0])};
    soak.assembly =
        (struct office){.kind = OFFICE_ASSEMBLY, .mc = open_multichannel(soak.first[1])};
    for (uint32_t i = 0; i < soak.size; i++) {
        soak.lines[i] = (struct office){.kind = OFFICE_LINE, .rank = i};
    }
    meet_self();
}

/* Parting. */

/* Requests in flight with the peer have ended, so all of their results can be taken. */
static void take_back(uint32_t rank)
{
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        struct flight *flight = &soak.flights[i];
        while (flight->state == FLIGHT_MADE && flight->peer == rank) {
            struct sluice_completion completions[16];
            int count = CALL(multichannel_poll, soak.mail.mc, completions, 16);
            expect(
                count > 0,
                "an operation of kind %d, opcode %u, number %llu, has not ended with the connection"
                " to rank %u: poll gives %d",
                flight->kind, flight->request.opcode, (unsigned long long)flight->number, rank,
                count);
            for (int j = 0; j < count; j++) {
                conclude(find_flight(&soak.mail, &completions[j]), &completions[j]);
            }
        }
        if (flight->state == FLIGHT_DETACHED && flight->peer == rank) {
            end_flight(flight);
        }
    }
    expect(soak.peers[rank].sending == 0, "%u operations with rank %u", soak.peers[rank].sending,
           rank);
}

/* RC cannot cancel a single request: the connection ends with it. */
static void cancel_one(uint32_t rank)
{
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        struct flight *flight = &soak.flights[i];
        struct sluice_completion completion;
        if (flight->state == FLIGHT_MADE && flight->peer == rank && flight->has_handle) {
            int result = CALL(multichannel_cancel, soak.mail.mc, &flight->handle, &completion);
            expect(result == 0, "%d: %s", result, sluice_last_error());
            conclude(flight, &completion);
            return;
        }
    }
}

/* Removes the peer and adds it again. It gets the same index, as no other is free. */
static void replace_peer(struct office *office, uint32_t rank, struct sluice_endpoint *endpoint)
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    int result = CALL(multichannel_peer_remove, office->mc, rank);
    expect(result == 0, "%d: %s", result, sluice_last_error());
    result = CALL(multichannel_peer_state, office->mc, rank);
    expect(result == SLUICE_STATE_REMOVED, "state %d of one that was removed", result);
    expect(CALL(multichannel_peer_counters, office->mc, rank, &counters) == 0, "%s",
           sluice_last_error());
    office->past += counters.requests[SLUICE_OP_SEND];
    result = CALL(multichannel_peer_add, office->mc, endpoint);
    expect(result == (int)rank, "%d, not %u: %s", result, rank, sluice_last_error());
    if (office == &soak.mail) {
        soak.peers[rank].life++;
        soak.peers[rank].older_epoch = soak.peers[rank].last_epoch = 0;
    }
}

static void reset_peer(struct office *office, uint32_t rank, struct sluice_endpoint *endpoint)
{
    if (one_in(&soak.rng, 2)) {
        replace_peer(office, rank, endpoint);
        return;
    }
    int result = CALL(multichannel_peer_reset, office->mc, rank, endpoint);
    expect(result == 0, "%d: %s", result, sluice_last_error());
}

/* Tests the same on a channel, with a receive that stays empty. */
static void cancel_on_line(struct office *line)
{
    struct sluice_handle handle;
    struct sluice_completion completion;
    int result = CALL(channel_post_receive, line->channel, NULL, 0, SLUICE_FOREVER, &handle);
    expect(result == 0 || result == -ENOTCONN, "%d: %s", result, sluice_last_error());
    if (result == 0) {
        result = CALL(channel_cancel, line->channel, &handle, &completion);
        expect(result == 0 && (completion.error_class == SLUICE_CLASS_CANCELLED ||
                               completion.error_class == SLUICE_CLASS_PEER_LOST),
               "%d, error %d: %s", result, completion.error, sluice_last_error());
    }
}

static void prepare_line(struct office *line, struct sluice_endpoint *endpoint)
{
    struct sluice_channel_attr attr = attributes();
    if (line->channel && one_in(&soak.rng, 3)) {
        cancel_on_line(line);
    }
    if (line->channel && one_in(&soak.rng, 2)) {
        line->prepared = CALL(channel_reset, line->channel);
    } else {
        if (line->channel) {
            CALL(channel_shutdown, line->channel, SLUICE_MS(100));
            CALL_VOID(channel_close, line->channel);
        }
        CALL_VOID(prepared_channel_free, line->prepared);
        line->prepared = CALL(channel_prepare, soak.pd, &attr);
    }
    line->channel = NULL;
    expect(line->prepared, "%s", sluice_last_error());
    expect(CALL(prepared_channel_endpoint, line->prepared, endpoint) == 0, "%s",
           sluice_last_error());
}

static void begin_meeting(struct peer *peer, uint32_t rank, uint64_t meeting)
{
    forget_words(rank);
    peer->meeting = meeting;
    peer->state = PEER_MEETING;
    peer->lost = false;
    peer->sent = peer->written = 0;
    peer->posted = peer->received = peer->granted = peer->checked = 0;
}

/* Meeting. */

void meet_peer(uint32_t rank, uint64_t meeting)
{
    struct peer *peer = &soak.peers[rank];
    struct message message = {.word = SAY_OFFER, .peer = rank, .id = meeting};
    expect(peer->state != PEER_UP && peer->state != PEER_SUSPECT, "rank %u is in state %d", rank,
           peer->state);
    set_task("meeting %llu with rank %u", (unsigned long long)meeting, rank);
    if (peer->state == PEER_QUIET && one_in(&soak.rng, 2)) {
        cancel_one(rank);
    }
    if (soak.used[rank]) {
        reset_peer(&soak.mail, rank, &message.offer.ends[0]);
        reset_peer(&soak.assembly, rank, &message.offer.ends[1]);
    } else {
        message.offer.ends[0] = soak.first[0][rank];
        message.offer.ends[1] = soak.first[1][rank];
    }
    soak.used[rank] = true;
    take_back(rank);
    prepare_line(&soak.lines[rank], &message.offer.ends[2]);
    begin_meeting(peer, rank, meeting);
    struct sluice_remote_mr remote;
    expect(sluice_mr_remote(soak.common_mr, &remote) == 0, "%s", sluice_last_error());
    sluice_remote_mr_pack(&remote, message.offer.common);
    expect(sluice_mr_remote(soak.board_mr, &remote) == 0, "%s", sluice_last_error());
    sluice_remote_mr_pack(&remote, message.offer.board);
    message.offer.epoch = soak.epoch;
    message.offer.life = peer->life;
    say_message(&message);
    set_task("its mail");
}

/*
 * An endpoint of a meeting before the last one is refused without effect. The endpoint of the last
 * one may be used again if the peer was never heard in it. After a peer was removed, earlier
 * meetings with it are unknown on both sides.
 */
static void try_stale(uint32_t rank, const struct offer *offer)
{
    struct peer *peer = &soak.peers[rank];
    if (peer->older_epoch == offer->epoch && peer->older_life == offer->life &&
        one_in(&soak.rng, 2)) {
        int result = CALL(multichannel_peer_handshake, soak.mail.mc, rank, &peer->older);
        expect(result == -ESTALE, "%d for an endpoint of an earlier meeting: %s", result,
               sluice_last_error());
    }
}

void take_offer(uint32_t rank, const struct offer *offer)
{
    struct peer *peer = &soak.peers[rank];
    struct office *line = &soak.lines[rank];
    if (peer->state != PEER_MEETING) {
        return;
    }
    try_stale(rank, offer);
    int mail = CALL(multichannel_peer_handshake, soak.mail.mc, rank, &offer->ends[0]);
    int assembly = CALL(multichannel_peer_handshake, soak.assembly.mc, rank, &offer->ends[1]);
    line->channel = CALL(prepared_channel_handshake, line->prepared, &offer->ends[2]);
    line->prepared = NULL;
    if (mail == 0) {
        peer->older_epoch = peer->last_epoch;
        peer->older_life = peer->last_life;
        peer->older = peer->last;
        peer->last_epoch = offer->epoch;
        peer->last_life = offer->life;
        peer->last = offer->ends[0];
    }
    peer->epoch = offer->epoch;
    expect(sluice_remote_mr_unpack(offer->common, &peer->common) == 0, "%s", sluice_last_error());
    expect(sluice_remote_mr_unpack(offer->board, &peer->board) == 0, "%s", sluice_last_error());
    if (mail != 0 || assembly != 0 || !line->channel) {
        peer->state = PEER_UP;
        suspect(rank, "a handshake", mail ? mail : assembly ? assembly : -errno);
    }
    send_report(SAY_MET, rank, peer->meeting);
}

void go_with_peer(uint32_t rank)
{
    struct peer *peer = &soak.peers[rank];
    struct office *line = &soak.lines[rank];
    int result = 0;
    if (peer->state != PEER_MEETING) {
        return;
    }
    peer->state = PEER_UP;
    aim(rank, 1);
    switch (random_below(&soak.rng, 4)) {
    case 0:
        result = CALL(multichannel_peer_wait_connected, soak.mail.mc, rank, OPERATION_TIME);
        break;
    case 1:
        result = CALL(multichannel_peer_wait_connected, soak.assembly.mc, rank, OPERATION_TIME);
        break;
    case 2:
        result = CALL(channel_wait_connected, line->channel, OPERATION_TIME);
        break;
    default:
        break;
    }
    if (result != 0 && result != -EINTR) {
        suspect(rank, "waiting for its connection", result);
    }
}

/* The end. */

static void close_lines(void)
{
    for (uint32_t i = 0; i < soak.size; i++) {
        struct office *line = &soak.lines[i];
        if (line->channel) {
            int result = CALL(channel_shutdown, line->channel, OPERATION_TIME);
            expect(result == 0, "%d: %s", result, sluice_last_error());
        }
        CALL_VOID(channel_close, line->channel);
        CALL_VOID(prepared_channel_free, line->prepared);
    }
}

static void close_mail(void)
{
    int result = CALL(multichannel_shutdown, soak.mail.mc, SLUICE_MS(10));
    expect(result == 0 || result == -ETIMEDOUT, "%d: %s", result, sluice_last_error());
    for (uint32_t i = 0; i < soak.size; i++) {
        take_back(i);
    }
    expect(soak.mail.unsettled == 0, "%u operations", soak.mail.unsettled);
    CALL_VOID(multichannel_close, soak.mail.mc);
}

static void close_memory(void)
{
    uint64_t wrong = check_pattern(soak.board, 0, BOARD, board_key(soak.index, soak.epoch));
    expect(wrong == BOARD, "byte %llu of the board has changed", (unsigned long long)wrong);
    expect(soak.bigs == 0, "%u", soak.bigs);
    expect(CALL(mr_deregister, soak.common_mr) == 0, "%s", sluice_last_error());
    expect(CALL(mr_deregister, soak.board_mr) == 0, "%s", sluice_last_error());
    expect(CALL(mr_deregister, soak.arena_mr) == 0, "%s", sluice_last_error());
}

void close_rank(void)
{
    for (uint32_t i = 0; i < soak.size; i++) {
        soak.peers[i].state = PEER_QUIET;
    }
    close_lines();
    int result = CALL(multichannel_shutdown, soak.assembly.mc, OPERATION_TIME);
    expect(result == 0, "%d: %s", result, sluice_last_error());
    CALL_VOID(multichannel_close, soak.assembly.mc);
    close_mail();
    close_memory();
    sluice_pd_free(soak.pd);
    sluice_context_close(soak.context);
}
