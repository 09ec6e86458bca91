/* SPDX-License-Identifier: MIT */
/*
 * What a service is: as an owner, a listener, a thread that serves, and what is published; as
 * a user, links to owners (link.h).
 *
 * Locks: that of the service, which is held for moments, and in which no other one is waited
 * for; and that of each link, which comes before it.
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

/* Keys of regions that were ended, which new ones must not have: of these the last so many. */
#define SLU_BUFFER_KEYS 65536
struct slu_buffer_keys {
    uint32_t *keys;
    uint32_t count, room, next;
    uint32_t live; /* buffers, whose keys are to come here */
};

/* A peer that has failed, or said goodbye, and is removed later. */
struct slu_leaver {
    STAILQ_ENTRY(slu_leaver) link;
    uint32_t peer;
    int64_t due;
};

/* A handle that was decoded; a way_count of 0: none yet. Of these so many are kept. */
#define SLU_BUFFER_KNOWN 16
struct slu_buffer_known {
    struct sluice_buffer_handle handle;
    struct slu_buffer_name name;
};

/* A device, as the service has it. */
struct slu_buffer_domain {
    struct sluice_pd *pd;  /* the program's: of local memory, and of connections to owners */
    struct sluice_pd *own; /* what is published, and nothing else; peers reach no more */
    uint32_t transport;    /* SLU_TRANSPORT_* */
    uint32_t peers;        /* that use our buffers: this and the next two are the thread's */
    struct sluice_multichannel *users;
    STAILQ_HEAD(, slu_leaver) leavers;
    struct slu_buffer_keys keys; /* of the lock of the service */
};

struct sluice_buffer_service {
    uint32_t magic;
    uint32_t max_peers;
    uint32_t domain_count, address_count;
    struct slu_buffer_domain domains[SLUICE_BUFFER_PDS];
    struct slu_address addresses[SLU_BUFFER_ADDRESSES];
    uint8_t owner[SLU_BUFFER_OWNER_BYTES];
    uint8_t key[SLU_BUFFER_KEY_BYTES];
    struct sluice_channel_attr attr; /* of connections to owners */
    struct slu_door door;
    pthread_t thread;
    int event; /* ends its sleep */
    atomic_bool ends;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t dialed;
    uint32_t dialers; /* threads */
    int closing;      /* interrupts them */
    uint64_t last_id;
    struct sluice_buffer *buffers;
    struct sluice_buffer_batch *batches; /* that the program has */
    struct slu_waiter *waiters;          /* that nobody uses */
    struct slu_link *links[SLU_LINK_BUCKETS];
    struct slu_buffer_known known[SLU_BUFFER_KNOWN];
};

struct sluice_buffer {
    uint32_t magic;
    uint32_t access;
    struct sluice_buffer_service *service; /* NULL: it was closed */
    struct sluice_buffer **link, *next;    /* of those of the service */
    uint64_t id;
    void *addr; /* NULL: of a dmabuf */
    size_t length;
    struct sluice_mr *mrs[SLUICE_BUFFER_PDS]; /* one a domain */
    /* What sluice_buffer_publish_mr() has of the program's region, which it keeps from its end. */
    struct sluice_mr *of; /* NULL: none */
    size_t offset;
    struct slu_memory_user hold; /* in the domain of the region */
    struct slu_memory held;
};

static inline bool slu_is_buffer_service(const struct sluice_buffer_service *service)
{
    return service != NULL && service->magic == SLU_MAGIC_BUFFER_SERVICE;
}

/* service.c: -EINVAL. */
int slu_not_a_buffer_service(const struct sluice_buffer_service *service);
/* Whether a domain of the program's is one of the service's. */
bool slu_buffer_has_domain(const struct sluice_buffer_service *service, const struct sluice_pd *pd);
/* The first domain of a transport that the name has a way for: its index, and the way's. */
int slu_buffer_find_way(const struct sluice_buffer_service *service,
                        const struct slu_buffer_name *name, const struct sluice_pd *pd,
                        struct slu_buffer_way *way);

/* known.c: as slu_buffer_name_decode(). */
int slu_buffer_know(struct sluice_buffer_service *service,
                    const struct sluice_buffer_handle *handle, struct slu_buffer_name *name);
/* They have the keys of their owners. */
void slu_buffer_forget(struct sluice_buffer_service *service);

/* What who comes says of itself: which transport it wants to use. */
#define SLU_BUFFER_ASK_BYTES 8
void slu_buffer_ask(uint32_t transport, struct sluice_private_data *data);

/* serve.c: a thread, in which the others are. 0, or -EAGAIN with a text. */
int slu_buffer_serve(struct sluice_buffer_service *service);
void slu_buffer_serve_end(struct sluice_buffer_service *service);

/* posted.c: ends all batches, whose objects stay. */
void slu_buffer_end_batches(struct sluice_buffer_service *service);

/* publish.c: ends all buffers, whose objects stay. */
void slu_buffer_end_all(struct sluice_buffer_service *service);

#endif
