/* SPDX-License-Identifier: MIT */
/*
 * Messages of agents: decoded values are in their ranges, and are encoded to the same bytes, except
 * for unprintable words. The first two bytes of an input are the longest message of the program.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/message.h"
#include "fuzz.h"

const char fuzz_name[] = "agent";

static void check_region(const struct sluice_remote_mr *remote)
{
    hold(remote->length > 0 && remote->addr + (remote->length - 1) >= remote->addr, "it wraps");
}

static void check_ranges(const struct slu_agent_message *message, uint32_t most)
{
    uint32_t type = message->type;
    hold(type > 0 && type < SLU_AGENT_TYPES, "type %u", type);
    hold(message->length <= (type == SLU_AGENT_TEXT ? most : SLU_AGENT_MOST_BODY), "%u bytes",
         message->length);
    hold((message->access & ~SLU_AGENT_ACCESS) == 0, "access %#x", message->access);
    hold((message->hello.access & ~SLU_AGENT_ACCESS) == 0, "access %#x", message->hello.access);
    hold(message->code < SLU_AGENT_CODES, "code %u", message->code);
    hold(message->lease >= 0 && message->hello.max_lease >= 0, "a lease before now");
    hold(message->bytes <= SLU_AGENT_MOST_BYTES, "a large region");
    if (type == SLU_AGENT_ALLOCATED || type == SLU_AGENT_HAND || type == SLU_AGENT_ANNOUNCE) {
        check_region(&message->remote);
    }
    hold(strnlen(message->words, sizeof(message->words)) <= SLU_AGENT_WORDS, "no end");
    for (const char *at = message->words; *at != '\0'; at++) {
        hold(*at >= ' ' && *at <= '~', "%d", *at);
    }
}

static void check_same(const uint8_t *bytes, size_t count, const struct slu_agent_message *message)
{
    uint8_t again[SLU_AGENT_HEAD + SLU_AGENT_MOST_BODY];
    size_t same = message->type == SLU_AGENT_TEXT ? SLU_AGENT_HEAD : count;
    size_t words = SLU_AGENT_HEAD + 4;
    hold(same <= sizeof(again), "%zu bytes", same);
    hold(slu_agent_message_write(message, again) == count, "another length than %zu", count);
    for (size_t i = 0; i < same; i++) {
        bool is_word = message->type == SLU_AGENT_DONE && i >= words;
        bool printable = bytes[i] >= ' ' && bytes[i] <= '~';
        hold(again[i] == (is_word && !printable ? '?' : bytes[i]), "byte %zu is %u, was %u", i,
             again[i], bytes[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint32_t most = (uint32_t)fuzz_number(&input, 2);
    size_t count = FUZZ_MOST;
    const uint8_t *given = fuzz_bytes(&input, &count);
    struct slu_agent_message message;
    /* A buffer of exactly that size, so that reading one byte too many is noticed. */
    uint8_t *bytes = malloc(count > 0 ? count : 1);
    int error;
    hold(bytes != NULL, "no memory");
    memcpy(bytes, given, count);
    error = slu_agent_message_read(bytes, count, most, &message);
    hold(error == 0 || error == -EPROTO || error == -EPROTONOSUPPORT || error == -EMSGSIZE, "%d",
         error);
    if (error == 0) {
        fuzz_taken++;
        check_ranges(&message, most);
        hold(message.body == bytes + SLU_AGENT_HEAD, "its body is elsewhere");
        if (bytes[4] == 0) { /* not by a later version */
            check_same(bytes, count, &message);
        }
    }
    free(bytes);
    return 0;
}
