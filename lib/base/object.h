/* SPDX-License-Identifier: MIT */
/*
 * All objects of a program have this in common: the first word tells whether the object is valid.
 */
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
 * State of this process that a child of fork(2) must not inherit: the kernel wipes the page in the
 * child. It is a page of its own. If the machine has larger pages, fork.c wipes it alone.
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
    uint32_t free_place; /* these three are used by lib/scope/name.c */
    uint32_t place_count;
    _Atomic(void *) places[SLU_PLACE_LEVELS];
    struct sluice_pd *pds; /* list of all, used by lib/device/pd.c */
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
 * The first word of every object. It catches what the compiler cannot: pointers kept in arrays, a
 * wrong cast, an object used after its end (best effort), and objects of the process that forked
 * this one.
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
 * Returns the end of a text about an invalid object: why it may be invalid, or "". The caller must
 * set the text next. For NULL this is slu_earlier_failure(); otherwise the object may belong to the
 * process that forked this one.
 */
const char *slu_none_hint(const void *object);
/*
 * Tells whether there is an object of this kind, for calls that end it and return nothing. NULL is
 * no object; anything else that is invalid is a misuse.
 */
bool slu_may_end(const void *object, uint32_t magic, const char *what);
/* Reports a misuse: the object belongs to a node, so the program must not end it. */
void slu_refuse_owned(const char *what);

#endif
