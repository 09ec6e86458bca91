/* SPDX-License-Identifier: MIT */
/*
 * A link is the connection to an owner on one domain, for all users, whether the connection exists
 * now or not. A thread of its own makes the connection, so that an owner that does not answer holds
 * up only works that need it. If the connection is lost, the next group that needs it has a new one
 * made.
 *
 *   APART --a group needs it--> DIALING --connected--> UP
 *     ^                            |                    |
 *     +----------failed------------+--lost, and all its requests completed
 *
 * A thread that waits for work of a link drives the link for all groups that use it.
 */
#ifndef SLU_BUFFER_LINK_H
#define SLU_BUFFER_LINK_H

#include "buffer/service.h"
#include "memory/release.h"

#define SLU_LINK_TEXT 256

struct slu_group;

enum slu_link_state { SLU_LINK_APART, SLU_LINK_DIALING, SLU_LINK_UP };

/* A handle that was used on a link, decoded; length is 0 in an empty entry. */
#define SLU_LINK_KNOWN 4
struct slu_link_known {
    struct sluice_buffer_handle handle;
    uint64_t id, addr, length;
    uint32_t access, rkey;
};

struct slu_link {
    struct slu_link *next; /* in its bucket; like holds under the lock of the service */
    uint32_t holds;
    struct sluice_buffer_service *service;
    struct slu_buffer_domain *domain;
    struct slu_buffer_name name; /* of the buffer it was made for: has the owner's addresses */
    pthread_mutex_t lock;        /* protects all fields below */
    enum slu_link_state state;
    struct sluice_channel *channel; /* UP */
    uint32_t depth, used;           /* requests in flight: the limit, and the number */
    uint64_t max_message;
    bool recalled;    /* its channel was ended to cancel a batch */
    const char *lost; /* status by which its last channel was lost; NULL: it was not */
    int64_t asked;    /* when the state of its channel was last read */
    uint64_t dials;   /* number of dials that have ended */
    int error;        /* of the last dial, negative; 0: it connected */
    char why[SLU_LINK_TEXT];
    uint32_t group_count;
    struct slu_group *groups;                    /* groups that wait for the link */
    struct slu_link_known known[SLU_LINK_KNOWN]; /* this and the next one: see quick.c */
    struct slu_waiter *waiter;
};

/*
 * The lock of a link is held across calls of its channel. Releases that these calls find are
 * reported to the program after the unlock: see slu_releases_defer().
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

/* Returns the link to the owner of a buffer, held for the caller; or NULL with a text: ENOMEM. */
struct slu_link *slu_link_get(struct sluice_buffer_service *service,
                              struct slu_buffer_domain *domain, const struct slu_buffer_name *name);
/* Returns the link, held for the caller, or NULL if there is none. Makes no link. */
struct slu_link *slu_link_find(struct sluice_buffer_service *service,
                               const struct slu_buffer_domain *domain,
                               const struct slu_buffer_name *name);
/* Holds a link that the caller knows to exist, and puts it back. */
void slu_link_hold(struct slu_link *link);
void slu_link_put(struct slu_link *link);
/* Returns whether the link is that to the owner of a buffer. */
bool slu_link_leads_to(const struct slu_link *link, const struct slu_buffer_name *name);

/*
 * Wakes the batches that sleep on the link, except that of teller (NULL: all), because something
 * happened to the link or to their works. The lock is held.
 */
void slu_link_tell(const struct slu_link *link, const struct slu_group *teller);

/* Ends all links of a service. Nothing uses them any more. */
void slu_links_end(struct sluice_buffer_service *service);

#endif
