/* SPDX-License-Identifier: MIT */
/*
 * The side of a queue pair that answers: it takes packets in order, writes them to memory as they
 * arrive, and answers in order.
 */
#include "wire.h"

#include <string.h>

static void answer(struct sim_pair *pair, enum kind kind, uint32_t number, uint32_t status)
{
    const struct work work = {.opcode = kind, .first = number, .packets = 1, .status = status};
    sim_work_add(&pair->answers, &work);
    sim_kick(pair);
}

/* Refuses the request of the peer; the connection ends. */
static void refuse(struct sim_pair *pair, uint32_t number, uint32_t status)
{
    answer(pair, NAK, number, status);
    sim_pair_break(pair, sim_fabric.events ? SLUICE_STATUS_RETRY_EXC_ERR : 0);
}

static void write_memory(const struct sim_pair *pair, const struct packet *packet)
{
    if (sim_region_remote(pair, packet->rkey, packet->remote, packet->bytes,
                          SLUICE_ACCESS_REMOTE_WRITE) != NULL) {
        sim_require(sim_copy((char *)(uintptr_t)packet->remote, packet->data, packet->bytes),
                    "registered memory of rank %u is not mapped", pair->process->rank);
    }
}

/* Writes one of the packets that are held, any. */
static void land_one(struct sim_pair *pair)
{
    struct packet **at = &pair->held, *packet;
    while ((*at)->next_held != NULL && sim_once_in(SIM_FABRIC, 2)) {
        at = &(*at)->next_held;
    }
    packet = *at;
    *at = packet->next_held;
    if (sim_pair_works(pair)) {
        write_memory(pair, packet);
    }
    sim_packet_free(packet);
}

static void land_all(struct sim_pair *pair)
{
    while (pair->held != NULL) {
        land_one(pair);
    }
}

/* Acknowledges the message once all of it has landed. */
void sim_land(struct sim_event *event)
{
    struct sim_pair *pair = FIELD(event, land);
    if (!sim_pair_works(pair)) {
        return;
    }
    if (pair->held != NULL) {
        land_one(pair);
    }
    if (pair->held != NULL) {
        sim_event_set(event, sim_time() + (int64_t)sim_spread(SIM_FABRIC, 2000));
    } else {
        answer(pair, ACK, pair->expected - 1, 0);
    }
}

static void settle(struct sim_pair *pair)
{
    land_all(pair);
    if (pair->land.place != 0) {
        sim_event_clear(&pair->land);
        answer(pair, ACK, pair->expected - 1, 0);
    }
}

static bool take_receive(struct sim_pair *pair, const struct packet *packet, uint32_t number)
{
    if (pair->receives.first != NULL) {
        return true;
    }
    sim_trace("fabric: pair %u has no receive for packet %u", pair->qpn, packet->number);
    pair->complained = true;
    answer(pair, RNR, number, pair->attr.rnr_timer);
    return false;
}

static void end_message(struct sim_pair *pair, const struct packet *packet, uint32_t flags)
{
    const struct slu_wc wc = {.bytes = packet->total,
                              .flags = flags | (packet->flags & SLUICE_IMMEDIATE),
                              .immediate =
                                  (packet->flags & SLUICE_IMMEDIATE) != 0 ? packet->immediate : 0};
    sim_complete_receive(pair, &wc);
}

/* Each returns whether the packet was taken. */

static bool take_send(struct sim_pair *pair, struct packet *packet, uint32_t number)
{
    uint32_t status;
    if ((packet->ends & FIRST) != 0) {
        if (!take_receive(pair, packet, number)) {
            return false;
        }
        pair->offset = 0;
    }
    status = sim_move(pair, pair->receives.first, pair->offset, packet->data, packet->bytes, true);
    if (status != SLUICE_STATUS_SUCCESS) {
        const struct slu_wc wc = {.status = status, .vendor = status};
        sim_complete_receive(pair, &wc);
        refuse(pair, number,
               status == SLUICE_STATUS_LOC_LEN_ERR ? SLUICE_STATUS_REM_INV_REQ_ERR
                                                   : SLUICE_STATUS_REM_OP_ERR);
        return false;
    }
    pair->offset += packet->bytes;
    if ((packet->ends & LAST) != 0) {
        end_message(pair, packet, 0);
    }
    return true;
}

static bool take_write(struct sim_pair *pair, struct packet *packet, uint32_t number)
{
    bool first = (packet->ends & FIRST) != 0, last = (packet->ends & LAST) != 0;
    uint64_t bytes = first ? packet->total : packet->bytes;
    if (packet->total > 0 && sim_region_remote(pair, packet->rkey, packet->remote, bytes,
                                               SLUICE_ACCESS_REMOTE_WRITE) == NULL) {
        refuse(pair, number, SLUICE_STATUS_REM_ACCESS_ERR);
        return false;
    }
    if (last && (packet->flags & SLUICE_IMMEDIATE) != 0) {
        if (!take_receive(pair, packet, number)) {
            return false;
        }
        land_all(pair);
    }
    if (packet->total > 0) {
        write_memory(pair, packet);
    }
    if (last && (packet->flags & SLUICE_IMMEDIATE) != 0) {
        end_message(pair, packet, SLUICE_WRITTEN);
    }
    return true;
}

static void answer_read(struct sim_pair *pair, const struct packet *packet, uint32_t number,
                        uint64_t value)
{
    struct work work = {.opcode = RESPONSE,
                        .first = number,
                        .packets = packet->packets,
                        .remote = packet->remote,
                        .rkey = packet->rkey,
                        .length = packet->total,
                        .operand = {value, packet->opcode != SLUICE_OP_READ}};
    uint32_t waiting = 0;
    for (struct work *at = pair->answers.first; at != NULL; at = at->next) {
        if (at->opcode == RESPONSE && at->first == number) {
            at->arrived = 0; /* it came again: its answer begins again */
            return;
        }
        waiting += at->opcode == RESPONSE;
    }
    /* Reads that came again, and whose peer had their answers by then, may be among them. */
    sim_require(waiting < 2 * pair->remote_reads, "%u reads of a peer in flight", waiting + 1);
    sim_work_add(&pair->answers, &work);
    sim_kick(pair);
}

static bool may_read(struct sim_pair *pair, const struct packet *packet, uint32_t number)
{
    bool atomic = packet->opcode != SLUICE_OP_READ;
    if (atomic && packet->remote % 8 != 0) {
        refuse(pair, number, SLUICE_STATUS_REM_INV_REQ_ERR);
        return false;
    }
    if (packet->total > 0 && sim_region_remote(pair, packet->rkey, packet->remote, packet->total,
                                               atomic ? SLUICE_ACCESS_REMOTE_ATOMIC
                                                      : SLUICE_ACCESS_REMOTE_READ) == NULL) {
        refuse(pair, number, SLUICE_STATUS_REM_ACCESS_ERR);
        return false;
    }
    return true;
}

static void take_atomic(struct sim_pair *pair, const struct packet *packet, uint32_t number)
{
    uint64_t *at = (uint64_t *)(uintptr_t)packet->remote, value = *at;
    if (packet->opcode == SLUICE_OP_FETCH_ADD) {
        *at += packet->operand[0];
    } else if (value == packet->operand[0]) {
        *at = packet->operand[1];
    }
    pair->replays[number % REPLAYS].value = value;
    pair->replays[number % REPLAYS].number = number;
    answer_read(pair, packet, number, value);
}

/* A packet came again: its answer was lost, or is on its way. */
static void take_again(struct sim_pair *pair, const struct packet *packet, uint32_t number)
{
    if (packet->opcode == SLUICE_OP_READ) {
        if (may_read(pair, packet, number)) {
            answer_read(pair, packet, number, 0);
        }
    } else if (slu_opcode_is_atomic(packet->opcode)) {
        if (pair->replays[number % REPLAYS].number == number) {
            answer_read(pair, packet, number, pair->replays[number % REPLAYS].value);
        }
    } else if ((packet->ends & ASKS) != 0 && pair->land.place == 0) {
        answer(pair, ACK, pair->expected - 1, 0);
    }
}

/* Takes a packet that has come in order. Returns whether it is kept, to land later. */
static bool take_next(struct sim_pair *pair, struct packet *packet, uint32_t number)
{
    bool last = (packet->ends & LAST) != 0;
    pair->complained = false;
    if (packet->opcode != SLUICE_OP_WRITE || (packet->ends & FIRST) != 0) {
        settle(pair);
    }
    if (packet->opcode == SLUICE_OP_WRITE && sim_fabric.unordered && (packet->ends & ASKS) == 0 &&
        sim_once_in(SIM_FABRIC, 2) &&
        ((packet->ends & FIRST) == 0 ||
         sim_region_remote(pair, packet->rkey, packet->remote, packet->total,
                           SLUICE_ACCESS_REMOTE_WRITE) != NULL)) {
        pair->expected++;
        packet->next_held = pair->held;
        pair->held = packet;
        return true;
    }
    if (packet->opcode == SLUICE_OP_READ || slu_opcode_is_atomic(packet->opcode)) {
        if (!may_read(pair, packet, number)) {
            return false;
        }
        pair->expected += packet->packets;
        if (packet->opcode == SLUICE_OP_READ) {
            answer_read(pair, packet, number, 0);
        } else {
            take_atomic(pair, packet, number);
        }
        return false;
    }
    if (!(packet->opcode == SLUICE_OP_SEND ? take_send : take_write)(pair, packet, number)) {
        return false;
    }
    pair->expected++;
    if (last && pair->held != NULL) {
        sim_event_set(&pair->land, sim_time() + (int64_t)sim_spread(SIM_FABRIC, 2000));
    } else if ((packet->ends & ASKS) != 0) {
        answer(pair, ACK, number, 0);
    }
    return false;
}

bool sim_take_request(struct sim_pair *pair, struct packet *packet)
{
    int32_t distance = ahead(packet->number, pair->remote_psn, pair->expected);
    uint32_t number = pair->expected + (uint32_t)distance;
    if (distance > 0) {
        if (!pair->complained && sim_fabric.naks) {
            pair->complained = true;
            answer(pair, NAK, pair->expected, 0);
        }
        return false;
    }
    if (distance < 0) {
        take_again(pair, packet, number);
        return false;
    }
    return take_next(pair, packet, number);
}

/* Sends one packet of the oldest answer. */
void sim_give(struct sim_pair *pair)
{
    struct work *work = pair->answers.first;
    uint64_t offset = work->arrived * pair->mtu;
    uint64_t left = work->opcode == RESPONSE ? work->length - offset : 0;
    uint64_t bytes = left < pair->mtu ? left : pair->mtu;
    struct packet *packet;
    if (work->opcode == RESPONSE && work->operand[1] == 0 && bytes > 0 &&
        sim_region_remote(pair, work->rkey, work->remote + offset, bytes,
                          SLUICE_ACCESS_REMOTE_READ) == NULL) {
        work->opcode = NAK;
        work->status = SLUICE_STATUS_REM_ACCESS_ERR;
        bytes = 0;
        sim_pair_break(pair, 0);
    }
    packet = sim_packet_make(pair, (enum kind)work->opcode, work->first + (uint32_t)work->arrived,
                             bytes);
    packet->status = work->status;
    if (work->opcode == RESPONSE && work->operand[1] != 0) {
        memcpy(packet->data, &work->operand[0], 8);
    } else if (bytes > 0) {
        sim_require(sim_copy(packet->data, (char *)(uintptr_t)(work->remote + offset), bytes),
                    "registered memory of rank %u is not mapped", pair->process->rank);
    }
    sim_packet_emit(pair, packet);
    if (++work->arrived >= work->packets || work->opcode != RESPONSE) {
        sim_work_drop(&pair->answers);
    }
}
