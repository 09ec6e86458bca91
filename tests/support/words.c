/* SPDX-License-Identifier: MIT */
#include "words.h"

void desk_open(struct desk *desk, const struct sluice_channel_attr *attr, uint32_t access)
{
    star_open(&desk->star, 2, attr);
    memory_open(&desk->near, desk->star.sides.pds[0], BYTES);
    memory_open_at(&desk->far, desk->star.sides.pds[1], BYTES, access, 0);
    desk->results = (uint64_t *)(void *)desk->near.bytes;
    desk->words = (uint64_t *)(void *)desk->far.bytes;
    for (int i = 0; i < WORDS; i++) {
        desk->words[i] = START + (uint64_t)i;
        desk->results[i] = 0;
    }
}

void desk_close(struct desk *desk)
{
    star_works(&desk->star, 0);
    memory_close(&desk->near);
    memory_close(&desk->far);
    star_close(&desk->star);
}

struct sluice_sge result_sge(const struct desk *desk, uint32_t index)
{
    return memory_sge(&desk->near, index * sizeof(uint64_t), sizeof(uint64_t));
}

struct sluice_remote_mr word_of(const struct desk *desk, uint32_t index)
{
    return memory_remote(&desk->far, index * sizeof(uint64_t), sizeof(uint64_t));
}

void require_word(uint64_t got, uint64_t wanted, const char *what)
{
    require(got == wanted, "%s is %#llx, not %#llx", what, (unsigned long long)got,
            (unsigned long long)wanted);
}

void check_others(const struct desk *desk, uint32_t touched)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        if ((touched >> i & 1) == 0) {
            require_word(desk->words[i], START + i, "a word beside");
        }
    }
    memory_check_guards(&desk->near);
    memory_check_guards(&desk->far);
}

struct sluice_request add_request(const struct desk *desk, uint32_t word,
                                  const struct sluice_sge *result, uint64_t addend)
{
    struct sluice_request request = request_of(SLUICE_OP_FETCH_ADD, 1, result);
    request.remote = word_of(desk, word);
    request.operand[0] = addend;
    return request;
}

struct sluice_request swap_request(const struct desk *desk, uint32_t word,
                                   const struct sluice_sge *result, uint64_t expected,
                                   uint64_t desired)
{
    struct sluice_request request = add_request(desk, word, result, expected);
    request.opcode = SLUICE_OP_COMPARE_SWAP;
    request.operand[1] = desired;
    return request;
}

bool device_has_atomics(void)
{
    struct sluice_context *context = open_context();
    uint32_t atomics = context_info(context).atomics;
    sluice_context_close(context);
    return atomics != SLUICE_ATOMICS_NONE;
}
