/* SPDX-License-Identifier: MIT */
/* A protection domain as a program has it, and who uses memory of it. */
#ifndef SLU_PD_H
#define SLU_PD_H

#include <sluice/pd.h>

#include "device/context.h"

/* Who posts work that names memory by keys of the domain: a channel. */
struct slu_key_user {
    struct slu_key_user *next;
    /* Whether work in flight names this one; any thread asks. */
    bool (*uses_key)(const struct slu_key_user *user, uint32_t lkey);
};

struct sluice_pd {
    uint32_t magic;
    bool owned; /* as that of a context */
    atomic_uint references;
    struct sluice_context *context;
    struct slu_tpd *transport;
    pthread_mutex_t lock; /* of the next */
    struct slu_key_user *users;
    struct sluice_pd *next; /* in the list of all */
};

/* On failure the transport's is freed. */
struct sluice_pd *slu_pd_create(struct sluice_context *context, struct slu_tpd *transport);
void slu_pd_hold(struct sluice_pd *pd);
void slu_pd_release(struct sluice_pd *pd);
/* A user joins, and leaves; its uses_key() is called between these two. */
void slu_pd_enter(struct sluice_pd *pd, struct slu_key_user *user);
void slu_pd_leave(struct sluice_pd *pd, struct slu_key_user *user);
/* Whether posted work names memory of the domain by that key, through whichever object. */
bool slu_pd_uses_key(const struct sluice_pd *pd, uint32_t lkey);

#endif
