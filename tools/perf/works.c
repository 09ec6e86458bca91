/* SPDX-License-Identifier: MIT */
/* All works, in the order of --help. */
#include "perf.h"

const struct work perf_works[] = {
    {"send_lat", "half a round trip of messages", send_lat_lead, send_lat_follow,
     WORK_HALF | WORK_PAIR, 1, 1},
    {"send_bw", "a stream of messages", send_bw_lead, send_bw_follow, WORK_STREAM, 1, 1},
    {"write_lat", "half a round trip of writes, each polled for in memory", write_lat_lead,
     write_lat_follow, WORK_HALF | WORK_PAIR, 8, 1},
    {"write_bw", "a stream of writes", write_bw_lead, write_bw_follow, WORK_STREAM, 1, 1},
    {"read_lat", "one read", read_lat_lead, watch_follow, WORK_PAIR, 1, 1},
    {"read_bw", "a stream of reads", read_bw_lead, watch_follow, WORK_STREAM, 1, 1},
    {"cas_lat", "one compare and swap", cas_lat_lead, watch_follow, WORK_PAIR | WORK_SIZELESS, 8,
     1},
    {"scatter", "a separate message to each peer", scatter_lead, send_bw_follow, 0, 1, 1},
    {"gather", "a message from each peer", gather_lead, gather_follow, 0, 1, 1},
    {"scatter_gather", "a message to each peer, and its answer", scatter_gather_lead,
     scatter_gather_follow, 0, 1, 2},
    {"gather_read", "a read from each peer", gather_read_lead, watch_follow, 0, 1, 1},
    {"multicast", "one message to all peers", multicast_lead, send_bw_follow, WORK_SAME, 1, 1},
    {"barrier", "a barrier of all", barrier_lead, barrier_lead, WORK_SIZELESS | WORK_BLOCKING, 0,
     0},
    {"msg_rate", "small messages, as send_bw", send_bw_lead, send_bw_follow, WORK_STREAM, 1, 1},
    {"connect", "connections to all peers: prepare, handshake, wait for all", connect_lead,
     connect_lead, WORK_SIZELESS | WORK_BLOCKING, 0, 0},
};
const uint32_t perf_work_count = sizeof perf_works / sizeof perf_works[0];
