/* SPDX-License-Identifier: MIT */
/* Packets on their way, and whose turn it is to send one. */
#include "wire.h"

#include <stdlib.h>

#include "network.h"

static LIST_HEAD(, packet) packets;

void sim_packet_free(struct packet *packet)
{
    sim_event_clear(&packet->event);
    LIST_REMOVE(packet, place);
    free(packet);
}

void sim_wire_end(void)
{
    while (!LIST_EMPTY(&packets)) {
        sim_packet_free(LIST_FIRST(&packets));
    }
}

static void arrive(struct sim_event *event);

struct packet *sim_packet_make(const struct sim_pair *pair, enum kind kind, uint32_t number,
                               uint64_t bytes)
{
    struct packet *packet = sim_alloc(1, sizeof *packet + bytes);
    packet->event.happen = arrive;
    packet->kind = kind;
    packet->from_host = pair->device->host->index;
    packet->from_qpn = pair->qpn;
    packet->to_host = pair->remote_host;
    packet->to_qpn = pair->remote_qpn;
    packet->number = number;
    packet->bytes = bytes;
    LIST_INSERT_HEAD(&packets, packet, place);
    return packet;
}

/* Sends a packet behind all others of the pair; it takes the device some time. */
void sim_packet_emit(struct sim_pair *pair, struct packet *packet)
{
    const struct device *to = sim_device(packet->to_host);
    int64_t at = sim_time();
    int64_t arrival = to == NULL ? INT64_MAX : sim_network_packet(pair->device->host, to->host, at);
    pair->device->free_at = at + 20 + pair->device->lag +
                            (int64_t)(packet->bytes + 64) * sim_network.fabric_pace / 1024;
    /* The numbers on the wire are the negotiated ones. */
    packet->number += packet->kind == REQUEST ? pair->attr.psn : pair->remote_psn;
    if (arrival == INT64_MAX) {
        sim_trace("fabric: packet %u of pair %u is lost", packet->number, pair->qpn);
        struct sim_pair *other = sim_pair_find(packet->to_host, packet->to_qpn);
        pair->loses = true;
        if (other != NULL) {
            other->loses = true;
        }
        sim_packet_free(packet);
        return;
    }
    pair->arrival = arrival > pair->arrival ? arrival : pair->arrival + 1;
    sim_event_set(&packet->event, pair->arrival);
}

struct sim_pair *sim_pair_find(uint32_t host, uint32_t qpn)
{
    struct sim_pair *pair = sim_device(host) == NULL ? NULL : sim_device(host)->pairs;
    while (pair != NULL && pair->qpn != qpn) {
        pair = pair->next;
    }
    return pair;
}

static void arrive(struct sim_event *event)
{
    struct packet *packet = (struct packet *)event;
    struct sim_pair *pair = sim_pair_find(packet->to_host, packet->to_qpn);
    if (pair == NULL || !sim_pair_works(pair) || pair->remote_qpn != packet->from_qpn ||
        pair->remote_host != packet->from_host) {
        sim_trace("fabric: packet %u for pair %u finds nobody", packet->number, packet->to_qpn);
    } else if (packet->kind != REQUEST) {
        sim_take_answer(pair, packet);
    } else if (sim_take_request(pair, packet)) {
        return;
    }
    sim_packet_free(packet);
}

void sim_kick(struct sim_pair *pair)
{
    int64_t now = sim_time(), at = pair->device->free_at;
    if (pair->answers.first == NULL) {
        if (!sim_may_ask(pair)) {
            return;
        }
        at = at < pair->not_before ? pair->not_before : at;
    }
    at = at < now ? now : at;
    if (pair->pump.place == 0 || pair->pump.at > at) {
        sim_event_set(&pair->pump, at);
    }
}

void sim_pump(struct sim_event *event)
{
    struct sim_pair *pair = FIELD(event, pump);
    if (pair->process->ended || pair->device->dead || pair->state == SLU_QP_PREPARED) {
        return;
    }
    if (pair->device->free_at <= sim_time()) {
        if (pair->answers.first != NULL) {
            sim_give(pair);
        } else if (sim_may_ask(pair) && sim_time() >= pair->not_before) {
            sim_ask(pair);
        }
    }
    sim_kick(pair);
}

void sim_wire_forget(struct sim_pair *pair)
{
    while (pair->held != NULL) {
        struct packet *packet = pair->held;
        pair->held = packet->next_held;
        sim_packet_free(packet);
    }
    while (pair->answers.first != NULL) {
        sim_work_drop(&pair->answers);
    }
    sim_event_clear(&pair->pump);
    sim_event_clear(&pair->timer);
    sim_event_clear(&pair->land);
}
