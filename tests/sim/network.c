/* SPDX-License-Identifier: MIT */
#include "network.h"

#include "random.h"
#include "report.h"

enum { PARTITIONS = 64 };

#define RETRANSMISSION INT64_C(200000000)

struct partition {
    uint32_t a, b;
    int64_t until;
};

struct sim_network sim_network;
struct sim_traffic sim_sent, sim_sent_by_first, sim_sent_to_first;
static struct partition partitions[PARTITIONS];
static uint32_t partition_count;

void sim_network_reset(void)
{
    partition_count = 0;
}

static void count(struct sim_traffic *traffic, uint64_t bytes)
{
    traffic->messages++;
    traffic->bytes += bytes;
}

void sim_network_count(const struct sim_host *from, const struct sim_host *to, uint64_t bytes)
{
    if (from == to || bytes == 0) {
        return;
    }
    count(&sim_sent, bytes);
    if (from->index == 0) {
        count(&sim_sent_by_first, bytes);
    }
    if (to->index == 0) {
        count(&sim_sent_to_first, bytes);
    }
}

void sim_network_part(uint32_t a, uint32_t b, int64_t until)
{
    sim_require(partition_count < PARTITIONS, "too many partitions");
    partitions[partition_count++] = (struct partition){a, b, until};
}

/* Returns when a partition of the two ends, or the time itself. */
static int64_t healed(uint32_t a, uint32_t b, int64_t at)
{
    for (uint32_t i = 0; i < partition_count; i++) {
        const struct partition *partition = &partitions[i];
        bool meets =
            (partition->a == a && partition->b == b) || (partition->a == b && partition->b == a);
        if (meets && partition->until > at) {
            at = partition->until;
        }
    }
    return at;
}

int64_t sim_network_arrival(const struct sim_host *from, const struct sim_host *to, int64_t at)
{
    int64_t delay = 2000;
    if (from != to) {
        int64_t whole = healed(from->index, to->index, at);
        delay = sim_network.delay;
        /* Lost packets are sent again some time after. */
        if (whole == INT64_MAX || from->down || to->down) {
            return INT64_MAX;
        }
        if (whole > at) {
            at = whole + (int64_t)sim_below(SIM_NETWORK, RETRANSMISSION);
        }
    }
    at += delay + (int64_t)sim_spread(SIM_NETWORK, (uint64_t)sim_network.jitter);
    if (from != to && sim_network.lose != 0 && sim_once_in(SIM_NETWORK, sim_network.lose)) {
        at += RETRANSMISSION;
    }
    return at;
}

int64_t sim_network_packet(const struct sim_host *from, const struct sim_host *to, int64_t at)
{
    int64_t delay = 300;
    if (from != to) {
        if (healed(from->index, to->index, at) > at || from->down || to->down) {
            return INT64_MAX;
        }
        if (sim_network.fabric_lose != 0 && sim_once_in(SIM_FABRIC, sim_network.fabric_lose)) {
            return INT64_MAX;
        }
        delay = sim_network.fabric_delay;
    }
    return at + delay + (int64_t)sim_spread(SIM_FABRIC, (uint64_t)sim_network.fabric_jitter);
}
