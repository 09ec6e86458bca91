/* SPDX-License-Identifier: MIT */
#include "ports.h"

#include "../support/process.h"

struct changes changes_of(uint32_t i)
{
    struct changes changes;
    require(fake_verbs_qp(i, &changes.info), "there is no queue pair %u", i);
    changes.init = *fake_verbs_change(&changes.info, IBV_QPS_INIT);
    changes.rtr = *fake_verbs_change(&changes.info, IBV_QPS_RTR);
    changes.rts = *fake_verbs_change(&changes.info, IBV_QPS_RTS);
    return changes;
}

void set_gid(struct fake_port *port, uint32_t index, uint32_t type, const char *raw)
{
    fake_verbs_lock();
    memcpy(port->gid[index].raw, raw, 16);
    port->gid[index].type = type + 1;
    fake_verbs_unlock();
}

void clear_gid(struct fake_port *port, uint32_t index)
{
    fake_verbs_lock();
    port->gid[index].type = 0;
    fake_verbs_unlock();
}

void forget_port(void)
{
    let_pass(SLUICE_MS(11)); /* the library keeps what it read for 10 ms */
}

void open_side(struct sides *sides, int side, const struct sluice_context_attr *attr)
{
    sides->contexts[side] = made(sluice_context_open("fake0", attr));
    sides->pds[side] = made(sluice_pd_alloc(sides->contexts[side]));
}

void open_ports(struct sides *sides, uint32_t second)
{
    struct sluice_context_attr attr = {.size = sizeof(attr), .port = 1};
    open_side(sides, 0, &attr);
    attr.port = second;
    open_side(sides, 1, &attr);
}

void connect_sides(struct pair *pair, const struct sluice_channel_attr *first,
                   const struct sluice_channel_attr *second)
{
    struct halves halves;
    halves_prepare(&halves, &pair->sides, first, second);
    halves_connect(&halves, pair);
    pair_works(pair);
}

void refuse_sides(const struct sides *sides, const struct sluice_channel_attr *first,
                  const struct sluice_channel_attr *second, const char *words)
{
    struct halves halves;
    halves_prepare(&halves, sides, first, second);
    for (int i = 0; i < 2; i++) {
        require_null(sluice_prepared_channel_handshake(halves.prepared[i], &halves.endpoints[!i]),
                     EPROTO, words);
    }
}

void refuse_prepare(const struct sides *sides, const struct sluice_channel_attr *attr, int error,
                    const char *words)
{
    require_null(sluice_channel_prepare(sides->pds[0], attr), error, words);
}
