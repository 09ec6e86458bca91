/* SPDX-License-Identifier: MIT */
/*
 * A link: the connection to an owner on one domain, whoever uses it, and whether it is there
 * now or not. It is made by a thread of its own, so that nobody waits for an owner that does
 * not answer but who wants it; and when it is lost, the next one who wants it makes it anew.
 *
 *   APART --somebody wants it--> DIALING --connected--> UP
 *     ^                             |                    |
 *     +-----------failed------------+--lost, and all its work seen
 *
 * Whoever waits for work of a link drives it, for all who do.
 */
#ifndef SLU_BUFFER_LINK_H
#define SLU_BUFFER_LINK_H

#include "buffer/service.h"
#include "memory/release.h"

#define SLU_LINK_TEXT 256

struct slu_group;

enum slu_link_state { SLU_LINK_APART, SLU_LINK_DIALING, SLU_LINK_UP };

struct slu_link {
    struct slu_link *next; /* in its bucket: this and the next are of the lock of the service */
    uint32_t holds;
    struct sluice_buffer_service *service;
    struct slu_buffer_domain *domain;
    struct slu_buffer_name name; /* that of the buffer it was made for: where the owner is */
    pthread_mutex_t lock;        /* of what follows */
    enum slu_link_state state;
    struct sluice_channel *channel; /* UP */
    uint32_t depth, used;           /* requests in flight: that may be, and that are */
    uint64_t max_message;
    bool recalled;  /* its channel was ended for the sake of who cancelled, and is UP no more */
    int64_t asked;  /* when its channel was asked for its state */
    uint64_t dials; /* that have ended */
    int error;      /* of the last of them, negative; 0: it connected */
    char why[SLU_LINK_TEXT];
    uint32_t group_count;
    struct slu_group *groups; /* who wait for it */
};

/*
 * The lock of a link is held across calls of its channel. What these find released is told to the
 * program after the lock: see slu_releases_defer().
 */
static inline void slu_link_lock(struct slu_link *link)
{
    slu_releases_defer();
    pthread_mutex_lock(&link->lock);
}

static inline void slu_link_unlock(struct slu_link *link)
{
    pthread_mutex_unlock(&link->lock);
    slu_releases_resume();
}

/* The link to the owner of a buffer, which is held; NULL with a text: ENOMEM. */
struct slu_link *slu_link_get(struct sluice_buffer_service *service,
                              struct slu_buffer_domain *domain, const struct slu_buffer_name *name);
/* If there is one; nothing is made. */
struct slu_link *slu_link_find(struct sluice_buffer_service *service,
                               const struct slu_buffer_domain *domain,
                               const struct slu_buffer_name *name);
void slu_link_put(struct slu_link *link);

/* The lock is held. Of one that is APART: a thread connects it until then; 0, or -ENOMEM. */
int slu_link_dial(struct slu_link *link, int64_t until);
/* One that is UP has failed, and all its work was seen. */
void slu_link_part(struct slu_link *link);
/* Something happened to it, or to work of others: who sleeps looks, but not who tells. */
void slu_link_tell(const struct slu_link *link, const struct slu_group *teller);

/* All of a service, which nobody uses any more. */
void slu_links_end(struct sluice_buffer_service *service);

#endif
