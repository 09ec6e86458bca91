/* SPDX-License-Identifier: MIT */
/*
 * A buffer service. As an owner, it has a listener, a thread that serves peers, and published
 * buffers. As a user, it has links to owners (link.h).
 *
 * Locks: the lock of a link is taken before that of the service. The lock of the service is held
 * only for short sections, which wait for no other lock.
 */
#ifndef SLU_BUFFER_SERVICE_H
#define SLU_BUFFER_SERVICE_H

#include <sys/queue.h>

#include "base/base.h"
#include "buffer/name.h"
#include "device/pd.h"
#include "listener/door.h"

#define SLU_LINK_BUCKETS 256

struct slu_link;
struct slu_waiter;

/* The last SLU_BUFFER_KEYS keys of ended regions. New regions must not have one of these. */
#define SLU_BUFFER_KEYS 65536
struct slu_buffer_keys {
    uint32_t *keys;
    uint32_t count, room, next;
    uint32_t live; /* number of buffers, whose keys come here when they end */
};

/* A peer that has failed, or said goodbye, and that will be removed. */
struct slu_leaver {
    STAILQ_ENTRY(slu_leaver) link;
    uint32_t peer;
    int64_t due;
};

/* A cached decoded handle, one of SLU_BUFFER_KNOWN. way_count is 0 in an empty entry. */
#define SLU_BUFFER_KNOWN 16
struct slu_buffer_known {
    struct sluice_buffer_handle handle;
    struct slu_buffer_name name;
};

/* The service's part of one protection domain. */
struct slu_buffer_domain {
    struct sluice_pd *pd;  /* the program's: local memory, and connections to owners */
    struct sluice_pd *own; /* has only what is published, so peers reach nothing else */
    struct sluice_mr *all; /* all memory of this process, in pd; NULL: it must be registered */
    uint32_t transport;    /* SLU_TRANSPORT_* */
    uint32_t peers;        /* that use our buffers; like the next two only for the thread */
    struct sluice_multichannel *users;
    STAILQ_HEAD(, slu_leaver) leavers;
    struct slu_buffer_keys keys; /* under the lock of the service */
};

struct sluice_buffer_service {
    uint32_t magic;
    uint32_t max_peers;
    uint32_t domain_count, address_count;
    struct slu_buffer_domain domains[SLUICE_MAX_BUFFER_PDS];
    struct slu_address addresses[SLU_BUFFER_ADDRESSES];
    uint8_t owner[SLU_BUFFER_OWNER_BYTES];
    uint8_t key[SLU_BUFFER_KEY_BYTES];
    struct sluice_channel_attr attr; /* for connections to owners */
    struct slu_door door;
    pthread_t thread;
    int event; /* wakes the thread */
    atomic_bool ends;
    /* The link that was used last, by the first byte of its owner: see quick.c. */
    _Atomic(struct slu_link *) quick[SLU_LINK_BUCKETS];
    pthread_mutex_t lock; /* protects all fields below */
    pthread_cond_t dialed;
    uint32_t dialers; /* number of dialing threads */
    int closing;      /* interrupts dialing threads */
    uint64_t last_id;
    struct sluice_buffer *buffers;
    struct sluice_buffer_batch *batches; /* of the program */
    struct slu_waiter *waiters;          /* unused */
    struct slu_link *links[SLU_LINK_BUCKETS];
    struct slu_link *ended; /* links that are not in use, for reuse: see quick.c */
    struct slu_buffer_known known[SLU_BUFFER_KNOWN];
};

struct sluice_buffer {
    uint32_t magic;
    uint32_t access;
    struct sluice_buffer_service *service; /* NULL: closed */
    struct sluice_buffer **link, *next;    /* in the list of the service */
    uint64_t id;
    void *addr; /* NULL: a dmabuf */
    size_t length;
    struct sluice_mr *mrs[SLUICE_MAX_BUFFER_PDS]; /* one for each domain */
    /* The program's region of sluice_buffer_publish_mr(), which the buffer keeps from ending. */
    struct sluice_mr *of; /* NULL: none */
    size_t offset;
    struct slu_memory_user hold; /* user of the region's domain */
    struct slu_memory held;
};

static inline bool slu_is_buffer_service(const struct sluice_buffer_service *service)
{
    return service != NULL && service->magic == SLU_MAGIC_BUFFER_SERVICE;
}

/* domain.c: Returns -EINVAL with a text. */
int slu_not_a_buffer_service(const struct sluice_buffer_service *service);
/* Returns whether the service was opened with this domain of the program. */
bool slu_buffer_has_domain(const struct sluice_buffer_service *service, const struct sluice_pd *pd);
/*
 * Finds the first domain on a transport that the name has a way for; only in pd, if that is not
 * NULL. Returns the index of the domain, and sets *way; or an error with a text.
 */
int slu_buffer_find_way(const struct sluice_buffer_service *service,
                        const struct slu_buffer_name *name, const struct sluice_pd *pd,
                        struct slu_buffer_way *way);

/* known.c: Does what slu_buffer_name_decode() does, faster for a handle that was decoded before. */
int slu_buffer_know(struct sluice_buffer_service *service,
                    const struct sluice_buffer_handle *handle, struct slu_buffer_name *name);
/* Erases the cached handles, because they contain the keys of owners. */
void slu_buffer_forget(struct sluice_buffer_service *service);

/* Makes the private data of a connect to an owner: the transport that the peer wants to use. */
#define SLU_BUFFER_ASK_BYTES 8
void slu_buffer_ask(uint32_t transport, struct sluice_private_data *data);

/* serve.c: Starts the thread that serves peers. Returns 0, or -EAGAIN with a text. */
int slu_buffer_serve(struct sluice_buffer_service *service);
void slu_buffer_serve_end(struct sluice_buffer_service *service);

/* posted.c: Ends all batches. The program still has to free them. */
void slu_buffer_end_batches(struct sluice_buffer_service *service);

/* publish.c: Ends all buffers. The program still has to release them. */
void slu_buffer_end_all(struct sluice_buffer_service *service);

#endif
