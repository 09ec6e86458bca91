/* SPDX-License-Identifier: MIT */
#include "forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(name, opcode, of, shape, end, ...)       \
    static int call_##name(const struct form_call *c) \
    {                                                 \
        return sluice_##name(__VA_ARGS__);            \
    }
FORM_ROWS(CALL)

#define DESCRIBE(name, opcode, of, shape, end, ...) \
    {#name, SLUICE_OP_##opcode, OF_##of, shape, end, call_##name},

const struct form forms[FORMS] = {FORM_ROWS(DESCRIBE)};

const struct form *form_find(enum form_of of, uint32_t opcode, enum form_shape shape,
                             enum form_end end, uint32_t flags)
{
    bool immediate = flags & SLUICE_IMMEDIATE && shape == ONE;
    for (uint32_t i = 0; i < FORMS; i++) {
        const struct form *form = &forms[i];
        if (form->of == of && form->opcode == opcode && form->shape == shape && form->end == end &&
            form_is_immediate(form) == immediate) {
            return form;
        }
    }
    fprintf(stderr, "no call of object %d, opcode %u, shape %d, end %d, flags %#x\n", (int)of,
            opcode, (int)shape, (int)end, flags);
    abort();
}

struct form_call form_call_one(const struct sluice_request *request)
{
    return (struct form_call){.peer = request->peer,
                              .sges = request->sges ? request->sges : &request->sge,
                              .sge_count = request->sge_count,
                              .remote = &request->remote,
                              .operands = {request->operand[0], request->operand[1]},
                              .immediate = request->immediate,
                              .flags = request->flags};
}

bool form_is_atomic(const struct form *form)
{
    return form->opcode == SLUICE_OP_COMPARE_SWAP || form->opcode == SLUICE_OP_FETCH_ADD;
}

bool form_is_immediate(const struct form *form)
{
    return strstr(form->name, "_immediate") != NULL;
}

bool form_sends(const struct form *form)
{
    return form->opcode == SLUICE_OP_SEND || form->opcode == SLUICE_OP_WRITE;
}

bool form_is_one_sided(const struct form *form)
{
    return form->opcode != SLUICE_OP_SEND && form->opcode != SLUICE_OP_RECEIVE;
}
