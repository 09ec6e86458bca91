/* SPDX-License-Identifier: MIT */
/* The operations: their names in texts, and the flags that each may have. */
#include "config.h"

#include "engine/request/opcode.h"

static const char *const opcode_names[] = {"none", "send",         "receive",  "write",
                                           "read", "compare-swap", "fetch-add"};
_Static_assert(sizeof opcode_names / sizeof opcode_names[0] == SLU_OPCODES, "one name each");

/* Phrases that go before "peer 3". */
static const char *const phrases[SLU_OPCODES] = {"nothing with", "send to",   "receive from",
                                                 "write to",     "read from", "compare-swap at",
                                                 "fetch-add at"};

const uint32_t slu_opcode_flags[SLU_OPCODES] = {
    [SLUICE_OP_SEND] = SLUICE_IMMEDIATE | SLUICE_FENCE | SLUICE_SOLICITED | SLUICE_INLINE,
    [SLUICE_OP_RECEIVE] = 0,
    [SLUICE_OP_WRITE] = SLUICE_IMMEDIATE | SLUICE_FENCE | SLUICE_SOLICITED | SLUICE_INLINE,
    [SLUICE_OP_READ] = SLUICE_FENCE,
    [SLUICE_OP_COMPARE_SWAP] = SLUICE_FENCE,
    [SLUICE_OP_FETCH_ADD] = SLUICE_FENCE,
};

const char *slu_opcode_name(uint32_t opcode)
{
    return opcode < SLU_OPCODES ? opcode_names[opcode] : "unknown operation";
}

const char *slu_opcode_phrase(uint32_t opcode)
{
    return opcode < SLU_OPCODES ? phrases[opcode] : "unknown operation with";
}
