/* SPDX-License-Identifier: MIT */
/*
 * The forms in which an operation may be asked for, one a row: of a channel, of one
 * peer of a multichannel, of a scope and of a list; blocking and unpolled.
 */
#ifndef SUPPORT_FORMS_H
#define SUPPORT_FORMS_H

#include "pair.h"

/* What the calls are given; each takes what it knows. */
struct form_call {
    struct sluice_channel *channel;
    struct sluice_multichannel *hub;
    struct sluice_scope *scope;
    uint32_t peer;
    const struct sluice_sge *sges;
    uint32_t sge_count;
    const struct sluice_remote_mr *remote;
    uint64_t operands[2]; /* of atomics */
    uint32_t immediate;
    const struct sluice_request *requests; /* the first is that of a multicast */
    const uint32_t *peers;
    const struct sluice_peer_remote_mr *remotes;
    uint32_t count; /* of a list, or of the peers of a multicast */
    int64_t deadline;
    struct sluice_handle *handles;
    struct sluice_completion *completions;
};

enum form_of { OF_CHANNEL, OF_PEER, OF_SCOPE };
enum form_shape { ONE, LIST, MULTICAST };
enum form_end { BLOCKING, UNPOLLED };

struct form {
    const char *name; /* of the call, without sluice_ */
    uint32_t opcode;
    enum form_of of;
    enum form_shape shape;
    enum form_end end;
    int (*call)(const struct form_call *call);
};

#define FORMS 52
extern const struct form forms[FORMS];

bool form_is_atomic(const struct form *form);
bool form_is_immediate(const struct form *form);
/* Its bytes go to the peer; those of the others come from it. */
bool form_sends(const struct form *form);
/* It names memory of the peer. */
bool form_is_one_sided(const struct form *form);

#endif
