/* SPDX-License-Identifier: MIT */
/*
 * The side of a queue pair that asks: it sends requests packet by packet, as they are read from
 * memory, and sends again from the first one that was not acknowledged.
 */
#include "wire.h"

#include <string.h>

static bool is_read(const struct work *work)
{
    return work->opcode == SLUICE_OP_READ || slu_opcode_is_atomic(work->opcode);
}

static uint32_t reads_in_flight(const struct sim_pair *pair)
{
    uint32_t count = 0;
    for (const struct work *at = pair->sends.first; at != pair->at; at = at->next) {
        count += is_read(at);
    }
    return count;
}

/* A peer without a receive gets one packet at a time. */
static uint32_t window(const struct sim_pair *pair)
{
    return pair->unready ? 1 : WINDOW;
}

bool sim_may_ask(const struct sim_pair *pair)
{
    const struct work *work = pair->at;
    uint32_t reads;
    if (work == NULL || work->status != 0 || !sim_pair_works(pair)) {
        return false;
    }
    reads = reads_in_flight(pair);
    return work->first + pair->sent - pair->acked < window(pair) &&
           !(is_read(work) && reads >= pair->reads) &&
           !((work->flags & SLUICE_FENCE) != 0 && pair->sent == 0 && reads > 0);
}

static void set_timer(struct sim_pair *pair)
{
    int64_t timeout = INT64_C(4096) << pair->attr.ack_timeout;
    sim_event_clear(&pair->timer);
    if (pair->attr.ack_timeout != 0 && pair->sends.first != NULL &&
        (pair->sends.first != pair->at || pair->sent > 0)) {
        sim_event_set(&pair->timer,
                      sim_time() + timeout + (int64_t)sim_below(SIM_FABRIC, (uint64_t)timeout));
    }
}

/* The oldest request has failed. */
static void fail_oldest(struct sim_pair *pair, uint32_t status)
{
    sim_trace("fabric: request %#lx of pair %u fails with status %u",
              (unsigned long)pair->sends.first->id, pair->qpn, status);
    sim_complete_send(pair, status);
    sim_pair_break(pair, 0);
}

/* Completes what is done, in order, and the one that has failed. */
static void retire(struct sim_pair *pair)
{
    struct work *work = pair->sends.first;
    while (work != NULL && pair->state == SLU_QP_CONNECTED) {
        if (work->status != 0 && (work == pair->at || work->first == pair->acked)) {
            fail_oldest(pair, work->status);
            return;
        }
        if ((int32_t)(work->first + work->packets - pair->acked) > 0) {
            break;
        }
        sim_complete_send(pair, SLUICE_STATUS_SUCCESS);
        work = pair->sends.first;
    }
}

void sim_ask(struct sim_pair *pair)
{
    struct work *work = pair->at;
    uint64_t offset = (uint64_t)pair->sent * pair->mtu, bytes = 0;
    struct packet *packet;
    if (!is_read(work)) {
        bytes = work->length - offset < pair->mtu ? work->length - offset : pair->mtu;
    }
    packet = sim_packet_make(pair, REQUEST, work->first + pair->sent, bytes);
    packet->opcode = work->opcode;
    packet->flags = work->flags;
    packet->immediate = work->immediate;
    packet->rkey = work->rkey;
    packet->packets = work->packets;
    packet->remote = work->remote + offset;
    packet->total = work->length;
    memcpy(packet->operand, work->operand, sizeof work->operand);
    if (work->copy != NULL) {
        memcpy(packet->data, work->copy + offset, bytes);
    } else if (bytes > 0) {
        work->status = sim_move(pair, work, offset, packet->data, bytes, false);
    }
    if (pair->device->flaky != 0 && sim_once_in(SIM_FABRIC, pair->device->flaky)) {
        /* None that has a cause at the peer: those come from there. */
        static const uint8_t statuses[] = {SLUICE_STATUS_LOC_QP_OP_ERR, SLUICE_STATUS_LOC_PROT_ERR,
                                           SLUICE_STATUS_BAD_RESP_ERR,  SLUICE_STATUS_RETRY_EXC_ERR,
                                           SLUICE_STATUS_FATAL_ERR,     SLUICE_STATUS_GENERAL_ERR};
        work->status = statuses[sim_below(SIM_FABRIC, sizeof statuses)];
        sim_troubles++;
    }
    if (work->status != 0) {
        sim_packet_free(packet);
        retire(pair);
        return;
    }
    packet->ends = pair->sent == 0 ? FIRST : 0;
    pair->sent++;
    if (pair->sent % 8 == 0 || work->first + pair->sent - pair->acked >= window(pair)) {
        packet->ends |= ASKS;
    }
    if (is_read(work) || pair->sent == work->packets) {
        packet->ends |= LAST | ASKS;
        pair->at = work->next;
        pair->sent = 0;
        work->arrived = 0;
    }
    sim_packet_emit(pair, packet);
    if (pair->timer.place == 0) {
        set_timer(pair);
    }
}

static void go_back(struct sim_pair *pair, uint32_t number)
{
    struct work *work = pair->sends.first;
    while (work != NULL && (int32_t)(number - work->first - work->packets) >= 0) {
        work = work->next;
    }
    if (work != NULL) {
        pair->at = work;
        pair->sent = is_read(work) ? 0 : number - work->first;
    }
    sim_kick(pair);
}

/* The peer does not answer; or it does, and the answers were lost. */
static void give_up(struct sim_pair *pair)
{
    sim_troubles += pair->loses;
    fail_oldest(pair, SLUICE_STATUS_RETRY_EXC_ERR);
}

void sim_retry(struct sim_event *event)
{
    struct sim_pair *pair = FIELD(event, timer);
    if (!sim_pair_works(pair) || pair->sends.first == NULL) {
        return;
    }
    if (sim_time() < pair->not_before) {
        set_timer(pair);
        return;
    }
    if (++pair->tries > pair->attr.retry_count) {
        give_up(pair);
        return;
    }
    go_back(pair, pair->acked);
    set_timer(pair);
}

/* Everything before a number has arrived, unless a read among it has not been answered. */
static void acknowledge(struct sim_pair *pair, uint32_t number)
{
    bool lost = false;
    for (const struct work *at = pair->sends.first; at != NULL; at = at->next) {
        if (is_read(at) && at->arrived < at->packets && (int32_t)(number - at->first) > 0) {
            number = at->first;
            lost = true;
        }
    }
    if ((int32_t)(number - pair->acked) > 0) {
        pair->acked = number;
        pair->tries = pair->rnr_tries = 0;
        pair->unready = false;
        retire(pair);
        /* A packet that was to be sent again may have arrived the first time. */
        if (pair->at != NULL && (int32_t)(pair->at->first + pair->sent - number) < 0) {
            pair->sent = number - pair->at->first;
        }
        set_timer(pair);
    }
    if (lost && pair->state == SLU_QP_CONNECTED) {
        go_back(pair, pair->acked);
    }
}

static void take_response(struct sim_pair *pair, uint32_t number, struct packet *packet)
{
    struct work *work = pair->sends.first;
    uint32_t status;
    while (work != NULL && (int32_t)(number - work->first - work->packets) >= 0) {
        work = work->next;
    }
    if (work == NULL || !is_read(work) || number != work->first + work->arrived) {
        return; /* late, or behind one that was lost */
    }
    acknowledge(pair, work->first);
    if (pair->state != SLU_QP_CONNECTED || pair->sends.first != work || work == pair->at) {
        return;
    }
    status = sim_move(pair, work, work->arrived * pair->mtu, packet->data, packet->bytes, true);
    if (status != SLUICE_STATUS_SUCCESS) {
        fail_oldest(pair, status);
        return;
    }
    pair->tries = 0;
    set_timer(pair);
    if (++work->arrived == work->packets) {
        acknowledge(pair, work->first + work->packets);
    }
    sim_kick(pair);
}

static int64_t rnr_time(uint32_t timer)
{
    /* In 10 us: table 45 of the InfiniBand specification. */
    static const uint16_t times[32] = {65535, 1,    2,    3,     4,     6,     8,     12,
                                       16,    24,   32,   48,    64,    96,    128,   192,
                                       256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                       4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return times[timer & 31] * INT64_C(10000);
}

void sim_take_answer(struct sim_pair *pair, struct packet *packet)
{
    int32_t distance = ahead(packet->number, pair->attr.psn, pair->acked);
    uint32_t number = pair->acked + (uint32_t)distance;
    if (distance < 0 || (int32_t)(number - pair->posted) >= 0) {
        return;
    }
    if (packet->kind == RESPONSE) {
        take_response(pair, number, packet);
        return;
    }
    acknowledge(pair, packet->kind == ACK ? number + 1 : number);
    if (packet->kind == ACK) {
        sim_kick(pair);
        return;
    }
    if (pair->state != SLU_QP_CONNECTED || pair->acked != number || pair->sends.first == NULL) {
        return;
    }
    if (packet->kind == NAK && packet->status != 0) {
        fail_oldest(pair, packet->status);
        return;
    }
    if (packet->kind == RNR) {
        if (pair->attr.rnr_retry != 7 && ++pair->rnr_tries > pair->attr.rnr_retry) {
            fail_oldest(pair, SLUICE_STATUS_RNR_RETRY_EXC_ERR);
            return;
        }
        pair->unready = true;
        pair->not_before = sim_time() + rnr_time(packet->status);
        pair->tries = 0;
    }
    go_back(pair, number);
}
