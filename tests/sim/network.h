/* SPDX-License-Identifier: MIT */
/* The network between the hosts: delays, losses that cost time, and partitions. */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"

struct sim_network {
    int64_t delay;   /* ns from host to host, at least */
    int64_t jitter;  /* ns more, at most */
    uint64_t lose;   /* one piece in so many comes late by a retransmission; 0: none */
    uint32_t pieces; /* one send in so many takes only a part of its bytes */
    uint32_t buffer; /* bytes in flight in one direction of a connection */
    int64_t fabric_delay, fabric_jitter; /* ns, of packets of the fabric */
    int64_t fabric_pace;                 /* ns that 1024 bytes take there */
    uint64_t fabric_lose;                /* one packet in so many is lost; 0: none */
};

extern struct sim_network sim_network;

/* Traffic of streams between hosts in all runs: in all, from the first host, and to it. */
struct sim_traffic {
    uint64_t messages, bytes;
};
extern struct sim_traffic sim_sent, sim_sent_by_first, sim_sent_to_first;

void sim_network_count(const struct sim_host *from, const struct sim_host *to, uint64_t bytes);

/* Hosts cannot reach each other up to that time. */
void sim_network_part(uint32_t a, uint32_t b, int64_t until);
/* Returns when what is sent at a time reaches the other host; INT64_MAX: never. */
int64_t sim_network_arrival(const struct sim_host *from, const struct sim_host *to, int64_t at);
/* The same of one packet, which is not sent again. */
int64_t sim_network_packet(const struct sim_host *from, const struct sim_host *to, int64_t at);
void sim_network_reset(void);

#endif
