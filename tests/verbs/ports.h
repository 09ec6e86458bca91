/* SPDX-License-Identifier: MIT */
/* Connections between ports of the pretend device, and the attributes they got. */
#ifndef VERBS_PORTS_H
#define VERBS_PORTS_H

#include "../support/pair.h"
#include "fake_verbs.h"

#define PORT1 (&fake_verbs.device[0].port[0])
#define PORT2 (&fake_verbs.device[0].port[1])

/* The changes of the i-th queue pair. */
struct changes {
    struct fake_qp_info info;
    struct ibv_qp_attr init, rtr, rts;
};
struct changes changes_of(uint32_t i);

/* Changes the table of addresses of a port that is in use. */
void set_gid(struct fake_port *port, uint32_t index, uint32_t type, const char *raw);
void clear_gid(struct fake_port *port, uint32_t index);
/* Waits until the library reads a port again. */
void forget_port(void);

/* Opens a side with a context of its own; both on port 1, or the second on another. */
void open_side(struct sides *sides, int side, const struct sluice_context_attr *attr);
void open_ports(struct sides *sides, uint32_t second);

/* Connects the two, with attributes of their own, and passes a few bytes. */
void connect_sides(struct pair *pair, const struct sluice_channel_attr *first,
                   const struct sluice_channel_attr *second);
/* Requires that each side refuses the endpoint of the other and gives the reason. */
void refuse_sides(const struct sides *sides, const struct sluice_channel_attr *first,
                  const struct sluice_channel_attr *second, const char *words);
void refuse_prepare(const struct sides *sides, const struct sluice_channel_attr *attr, int error,
                    const char *words);

#endif
