/* SPDX-License-Identifier: MIT */
/*
 * Protection domains: reference counts, the users of each domain, and a list of all domains,
 * because several may wrap one domain of the device.
 */
#include "config.h"

#include <stdlib.h>

#include "device/pd.h"

/* Protects slu_living.pds; taken before the lock of a domain. */
static struct slu_fork_lock all_lock = {.lock = PTHREAD_MUTEX_INITIALIZER, .waits = true};

static void unlock_all(void)
{
    pthread_mutex_unlock(&all_lock.lock);
}

static void enter_all(struct sluice_pd *pd)
{
    slu_fork_lock(&all_lock);
    pd->next = slu_living.pds;
    slu_living.pds = pd;
    unlock_all();
}

static void leave_all(struct sluice_pd *pd)
{
    struct sluice_pd **at = &slu_living.pds;

    slu_fork_lock(&all_lock);
    /* If a callback of the program forked, this call goes on in the child, whose list is empty. */
    while (*at != NULL && *at != pd)
        at = &(*at)->next;
    if (*at != NULL)
        *at = pd->next;
    unlock_all();
}

static bool share_keys(const struct sluice_pd *a, const struct sluice_pd *b)
{
    const struct slu_transport *transport = a->context->transport->transport;

    if (a == b)
        return true;
    return transport == b->context->transport->transport && transport->pds_share_keys != NULL &&
           transport->pds_share_keys(a->transport, b->transport);
}

void slu_pd_enter(struct sluice_pd *pd, struct slu_memory_user *user)
{
    pthread_mutex_lock(&pd->lock);
    user->next = pd->users;
    pd->users = user;
    pthread_mutex_unlock(&pd->lock);
}

void slu_pd_leave(struct sluice_pd *pd, struct slu_memory_user *user)
{
    struct slu_memory_user **at = &pd->users;

    pthread_mutex_lock(&pd->lock);
    while (*at != NULL && *at != user)
        at = &(*at)->next;
    if (*at == user)
        *at = user->next;
    pthread_mutex_unlock(&pd->lock);
}

/* listed: only prepared lists count. */
static bool has_user_of(struct sluice_pd *pd, const struct slu_memory *memory, bool listed)
{
    bool used = false;

    pthread_mutex_lock(&pd->lock);
    for (struct slu_memory_user *user = pd->users; user != NULL && !used; user = user->next)
        used = listed ? user->lists != NULL && user->lists(user, memory) : user->uses(user, memory);
    pthread_mutex_unlock(&pd->lock);
    return used;
}

static bool is_used(const struct sluice_pd *pd, const struct slu_memory *memory, bool listed)
{
    bool used = false;

    slu_fork_lock(&all_lock);
    for (struct sluice_pd *other = slu_living.pds; other != NULL && !used; other = other->next)
        used = share_keys(pd, other) && has_user_of(other, memory, listed);
    unlock_all();
    return used;
}

bool slu_pd_uses(const struct sluice_pd *pd, const struct slu_memory *memory)
{
    return is_used(pd, memory, false);
}

/* Returns the id of a buffer that publishes the memory; 0: none. */
static uint64_t find_publisher(struct sluice_pd *pd, const struct slu_memory *memory)
{
    uint64_t buffer = 0;

    pthread_mutex_lock(&pd->lock);
    for (struct slu_memory_user *user = pd->users; user != NULL && buffer == 0; user = user->next)
        if (user->buffer != 0 && user->uses(user, memory))
            buffer = user->buffer;
    pthread_mutex_unlock(&pd->lock);
    return buffer;
}

int slu_pd_fail_used(struct sluice_pd *pd, const struct slu_memory *memory, const char *what,
                     uint64_t address, bool late)
{
    uint64_t buffer = find_publisher(pd, memory);
    const char *still = late ? "still " : "";

    if (buffer != 0)
        return slu_fail(late ? ETIMEDOUT : EBUSY, "%s at %#llx is %spublished as buffer %llu%s",
                        what, (unsigned long long)address, still, (unsigned long long)buffer,
                        late ? "" : ": release it first");
    if (is_used(pd, memory, true))
        return slu_fail(late ? ETIMEDOUT : EBUSY, "%s at %#llx is %snamed by a prepared list%s",
                        what, (unsigned long long)address, still,
                        late ? "" : ": destroy the list first");
    return slu_fail(late ? ETIMEDOUT : EBUSY, "%s at %#llx is %sused by posted work%s", what,
                    (unsigned long long)address, still, late ? "" : ": wait for it first");
}

/*
 * The key of a region that no processor reaches, so that nothing is copied from or to it. It is
 * read without a lock, and stays until the domain ends.
 */
struct slu_unreachable {
    struct slu_unreachable *next;
    _Atomic uint64_t key; /* SLU_UNREACHABLE and the key; 0: the region has ended */
};
#define SLU_UNREACHABLE (UINT64_C(1) << 32)

static struct slu_unreachable *find_unreachable(const struct sluice_pd *pd, uint64_t key)
{
    struct slu_unreachable *region = atomic_load_explicit(&pd->unreachable, memory_order_acquire);

    while (region != NULL && atomic_load_explicit(&region->key, memory_order_relaxed) != key)
        region = region->next;
    return region;
}

bool slu_pd_reaches(const struct sluice_pd *pd, uint32_t lkey)
{
    return find_unreachable(pd, SLU_UNREACHABLE | lkey) == NULL;
}

int slu_pd_add_unreachable(struct sluice_pd *pd, uint32_t lkey)
{
    struct slu_unreachable *region;

    pthread_mutex_lock(&pd->lock);
    region = find_unreachable(pd, 0);
    if (region == NULL) {
        region = calloc(1, sizeof *region);
        if (region != NULL) {
            region->next = atomic_load_explicit(&pd->unreachable, memory_order_relaxed);
            atomic_store_explicit(&pd->unreachable, region, memory_order_release);
        }
    }
    if (region != NULL)
        atomic_store_explicit(&region->key, SLU_UNREACHABLE | lkey, memory_order_relaxed);
    pthread_mutex_unlock(&pd->lock);
    return region != NULL ? 0 : slu_fail(ENOMEM, "no memory for a memory region");
}

void slu_pd_remove_unreachable(struct sluice_pd *pd, uint32_t lkey)
{
    struct slu_unreachable *region;

    pthread_mutex_lock(&pd->lock);
    region = find_unreachable(pd, SLU_UNREACHABLE | lkey);
    if (region != NULL)
        atomic_store_explicit(&region->key, 0, memory_order_relaxed);
    pthread_mutex_unlock(&pd->lock);
}

static void free_unreachable(struct sluice_pd *pd)
{
    struct slu_unreachable *next = atomic_load_explicit(&pd->unreachable, memory_order_relaxed);

    while (next != NULL) {
        struct slu_unreachable *region = next;

        next = region->next;
        free(region);
    }
}

struct sluice_pd *sluice_pd_alloc(struct sluice_context *context)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_tpd *transport;
    int error;

    if (context == NULL || context->magic != SLU_MAGIC_CONTEXT)
        return slu_misuse_null(EINVAL, "a protection domain needs an open context%s",
                               slu_none_hint(context));
    error = context->transport->transport->pd_alloc(context->transport, &transport);
    if (error < 0)
        return slu_none(error);
    return slu_pd_create(context, transport);
}

struct sluice_pd *slu_pd_create(struct sluice_context *context, struct slu_tpd *transport)
{
    struct sluice_pd *pd = calloc(1, sizeof *pd);

    if (pd == NULL) {
        context->transport->transport->pd_free(transport);
        return slu_fail_null(ENOMEM, "no memory for a protection domain");
    }
    pd->magic = SLU_MAGIC_PD;
    pd->transport = transport;
    atomic_init(&pd->references, 1);
    pthread_mutex_init(&pd->lock, NULL);
    slu_context_hold(context);
    pd->context = context;
    enter_all(pd);
    slu_made();
    return pd;
}

void slu_pd_hold(struct sluice_pd *pd)
{
    atomic_fetch_add_explicit(&pd->references, 1, memory_order_relaxed);
}

void slu_pd_release(struct sluice_pd *pd)
{
    struct sluice_context *context = pd->context;

    if (atomic_fetch_sub_explicit(&pd->references, 1, memory_order_acq_rel) > 1)
        return;
    leave_all(pd);
    context->transport->transport->pd_free(pd->transport);
    pthread_mutex_destroy(&pd->lock);
    free_unreachable(pd);
    free(pd);
    slu_context_release(context);
}

void sluice_pd_free(struct sluice_pd *pd)
{
    SLU_UNCANCELLED_BLOCK;
    if (!slu_may_end(pd, SLU_MAGIC_PD, "protection domain"))
        return;
    if (pd->owned) {
        slu_refuse_owned("protection domain");
        return;
    }
    /* Child objects may still hold the domain, but the program must not use it any more. */
    pd->magic = SLU_MAGIC_DEAD;
    slu_pd_release(pd);
}
