/* SPDX-License-Identifier: MIT */
#include "words.h"

void fixture_open(struct fixture *fixture, const struct sluice_channel_attr *attr, uint32_t access)
{
    star_open(&fixture->star, 2, attr);
    fixture->near = side_memory(&fixture->star.sides, 0, BYTES);
    fixture->far = side_memory_at(&fixture->star.sides, 1, BYTES, access, 0);
    fixture->results = (uint64_t *)(void *)fixture->near.bytes;
    fixture->words = (uint64_t *)(void *)fixture->far.bytes;
    for (int i = 0; i < WORDS; i++) {
        fixture->words[i] = START + (uint64_t)i;
        fixture->results[i] = 0;
    }
}

void fixture_close(struct fixture *fixture)
{
    star_works(&fixture->star, 0);
    star_close(&fixture->star);
}

struct sluice_sge result_sge(const struct fixture *fixture, uint32_t index)
{
    return memory_sge(&fixture->near, index * sizeof(uint64_t), sizeof(uint64_t));
}

struct sluice_remote_mr word_of(const struct fixture *fixture, uint32_t index)
{
    return memory_remote(&fixture->far, index * sizeof(uint64_t), sizeof(uint64_t));
}

void require_word(uint64_t got, uint64_t wanted, const char *what)
{
    require(got == wanted, "%s is %#llx, not %#llx", what, (unsigned long long)got,
            (unsigned long long)wanted);
}

void check_others(const struct fixture *fixture, uint32_t touched)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        if ((touched >> i & 1) == 0) {
            require_word(fixture->words[i], START + i, "a word beside");
        }
    }
    memory_check_guards(&fixture->near);
    memory_check_guards(&fixture->far);
}

struct sluice_request add_request(const struct fixture *fixture, uint32_t word,
                                  const struct sluice_sge *result, uint64_t addend)
{
    struct sluice_request request = request_of(SLUICE_OP_FETCH_ADD, 1, result);
    request.remote = word_of(fixture, word);
    request.operand[0] = addend;
    return request;
}

struct sluice_request swap_request(const struct fixture *fixture, uint32_t word,
                                   const struct sluice_sge *result, uint64_t expected,
                                   uint64_t desired)
{
    struct sluice_request request = add_request(fixture, word, result, expected);
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
