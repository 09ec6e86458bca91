/* SPDX-License-Identifier: MIT */
/*
 * The operations: their queues, flags and names. Where else each operation has a case:
 *
 *   transport/transport.h         their number, and which are atomic
 *   engine/request/check.c        operands
 *   transport/soft/shm/direct.c, transport/soft/self/wire.c, transport/soft/tcp/transmit.c,
 *   transport/verbs/pairs/post.c  performing them
 *   agent/transfer.c              rights that they need
 */
#ifndef SLU_ENGINE_REQUEST_OPCODE_H
#define SLU_ENGINE_REQUEST_OPCODE_H

#include "engine/state/call.h"

/* Flags that each operation may have. */
extern const uint32_t slu_opcode_flags[SLU_OPCODES];

static inline enum slu_queue slu_opcode_queue(uint32_t opcode)
{
    return opcode == SLUICE_OP_RECEIVE ? SLU_RECEIVE_QUEUE : SLU_SEND_QUEUE;
}

static inline enum slu_queue slu_item_queue(const struct slu_item *item)
{
    return slu_opcode_queue(item->opcode);
}

/* Returns "send" and so on, a static string. */
const char *slu_opcode_name(uint32_t opcode);
/* Returns "send to" and so on, a static string. */
const char *slu_opcode_phrase(uint32_t opcode);

#endif
