/* SPDX-License-Identifier: MIT */
/* What is common to all that a program holds: the first word tells whether it is there. */
#ifndef SLU_OBJECT_H
#define SLU_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sluice_pd;

enum slu_kind {
    SLU_CONTEXT,
    SLU_PD,
    SLU_MR,
    SLU_PREPARED_CHANNEL,
    SLU_CHANNEL,
    SLU_PREPARED_MULTICHANNEL,
    SLU_MULTICHANNEL,
    SLU_PREPARED_NODE,
    SLU_NODE,
    SLU_EXCHANGE,
    SLU_LISTENER,
    SLU_INCOMING,
    SLU_LIST,
    SLU_MR_CACHE,
    SLU_AGENT,
    SLU_AGENT_PEER,
    SLU_AGENT_MR,
    SLU_AGENT_MESSAGE,
    SLU_BUFFER_SERVICE,
    SLU_BUFFER,
    SLU_BUFFER_BATCH,
    SLU_ALLOCATOR,
    SLU_KINDS
};

/*
 * What is of this process and not of its parent: a child of fork(2) finds it
 * wiped, without being asked. The page is its own; if those of the machine are
 * larger, fork.c does it alone.
 */
#if defined(__x86_64__)
#define SLU_LIVING_BYTES 4096
#else
#define SLU_LIVING_BYTES 65536
#endif
#define SLU_PLACE_LEVELS 15
/* Bytes of slu_process_token(). */
#define SLU_TOKEN_BYTES 16
struct slu_living {
    uint32_t magic[SLU_KINDS];
    uint32_t free_place; /* these three are lib/scope/name.c's */
    uint32_t place_count;
    _Atomic(void *) places[SLU_PLACE_LEVELS];
    struct sluice_pd *pds; /* lib/device/pd.c's: all of them */
    bool has_token;
    uint8_t token[SLU_TOKEN_BYTES]; /* slu_process_token() */
};
union slu_living_page {
    struct slu_living living;
    uint8_t bytes[SLU_LIVING_BYTES];
} __attribute__((aligned(SLU_LIVING_BYTES)));
extern union slu_living_page slu_living_page;
#define slu_living slu_living_page.living

/*
 * First word of every object a program holds. It catches what the compiler
 * cannot follow: pointers kept in arrays, a wrong cast, an object used after
 * its end (best effort); and objects of the process that forked this one.
 */
#define SLU_MAGIC_CONTEXT (slu_living.magic[SLU_CONTEXT])
#define SLU_MAGIC_PD (slu_living.magic[SLU_PD])
#define SLU_MAGIC_MR (slu_living.magic[SLU_MR])
#define SLU_MAGIC_PREPARED_CHANNEL (slu_living.magic[SLU_PREPARED_CHANNEL])
#define SLU_MAGIC_CHANNEL (slu_living.magic[SLU_CHANNEL])
#define SLU_MAGIC_PREPARED_MULTICHANNEL (slu_living.magic[SLU_PREPARED_MULTICHANNEL])
#define SLU_MAGIC_MULTICHANNEL (slu_living.magic[SLU_MULTICHANNEL])
#define SLU_MAGIC_PREPARED_NODE (slu_living.magic[SLU_PREPARED_NODE])
#define SLU_MAGIC_NODE (slu_living.magic[SLU_NODE])
#define SLU_MAGIC_EXCHANGE (slu_living.magic[SLU_EXCHANGE])
#define SLU_MAGIC_LISTENER (slu_living.magic[SLU_LISTENER])
#define SLU_MAGIC_INCOMING (slu_living.magic[SLU_INCOMING])
#define SLU_MAGIC_LIST (slu_living.magic[SLU_LIST])
#define SLU_MAGIC_MR_CACHE (slu_living.magic[SLU_MR_CACHE])
#define SLU_MAGIC_AGENT (slu_living.magic[SLU_AGENT])
#define SLU_MAGIC_AGENT_PEER (slu_living.magic[SLU_AGENT_PEER])
#define SLU_MAGIC_AGENT_MR (slu_living.magic[SLU_AGENT_MR])
#define SLU_MAGIC_AGENT_MESSAGE (slu_living.magic[SLU_AGENT_MESSAGE])
#define SLU_MAGIC_BUFFER_SERVICE (slu_living.magic[SLU_BUFFER_SERVICE])
#define SLU_MAGIC_BUFFER (slu_living.magic[SLU_BUFFER])
#define SLU_MAGIC_BUFFER_BATCH (slu_living.magic[SLU_BUFFER_BATCH])
#define SLU_MAGIC_ALLOCATOR (slu_living.magic[SLU_ALLOCATOR])
#define SLU_MAGIC_DEAD UINT32_C(0xdeadbeef)

/*
 * For the end of a text of what is no object, and that text is set next: why it may
 * be none, or "". Of NULL that is slu_earlier_failure(), of something else that it may
 * be of the process that forked this one.
 */
const char *slu_none_hint(const void *object);
/*
 * For calls that end an object and return nothing: whether there is one, by its
 * first word. NULL is none; something else is a misuse.
 */
bool slu_may_end(const void *object, uint32_t magic, const char *what);
/* It belongs to a node: to end it is a misuse, too. */
void slu_refuse_owned(const char *what);

#endif
