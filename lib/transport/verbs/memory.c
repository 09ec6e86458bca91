/* SPDX-License-Identifier: MIT */
/*
 * Protection domains and memory regions. Guarantee: memory of mr_alloc is unmapped only after the
 * device has released it.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/kind.h"
#include "transport/verbs/table.h"
#include "transport/verbs/words/words.h"

/* ibv: the program's domain; NULL: allocates one. */
static int make_pd(struct slu_tcontext *base, struct ibv_pd *ibv, struct slu_tpd **pd)
{
    struct slu_verbs_pd *made = calloc(1, sizeof *made);
    int err;

    if (!made)
        return slu_fail(ENOMEM, "no memory for a protection domain");
    made->ibv = ibv ? ibv : ibv_alloc_pd(slu_verbs_context_of(base)->ibv);
    if (!made->ibv) {
        err = slu_verbs_errno(-1);
        free(made);
        return slu_fail(err, "cannot allocate a protection domain on %s: %s", base->device,
                        strerror(err));
    }
    made->wrapped = ibv != NULL;
    made->base.context = base;
    pthread_mutex_init(&made->places_lock, NULL);
    *pd = &made->base;
    return 0;
}

int slu_verbs_pd_alloc(struct slu_tcontext *base, struct slu_tpd **pd)
{
    return make_pd(base, NULL, pd);
}

int slu_verbs_pd_wrap(struct slu_tcontext *base, struct ibv_pd *ibv, struct slu_tpd **pd)
{
    return make_pd(base, ibv, pd);
}

void slu_verbs_pd_free(struct slu_tpd *base)
{
    struct slu_verbs_pd *pd = slu_verbs_pd_of(base);
    int err;

    slu_verbs_places_free(pd);
    err = pd->wrapped ? 0 : ibv_dealloc_pd(pd->ibv);
    if (err)
        slu_log(SLUICE_LOG_WARN, "freeing a protection domain of %s failed: %s",
                base->context->device, strerror(slu_verbs_errno(err)));
    pthread_mutex_destroy(&pd->places_lock);
    free(pd);
}

/*
 * Several objects may refer to one domain: wrappers of the same ibv_pd, in one context or in
 * several, of a parent domain of it, or of one imported from another context of the device. A key
 * belongs to one region of a device, so on that device it always names the same region.
 */
bool slu_verbs_pds_share_keys(const struct slu_tpd *a, const struct slu_tpd *b)
{
    return strcmp(a->context->device, b->context->device) == 0;
}

/*
 * Names the limit on locked memory as a likely reason: the kernel returns the same error for both.
 * kind: of the memory.
 */
static int fail_no_memory(size_t length, const char *kind)
{
    struct slu_locked locked;

    slu_locked_read(&locked);
    if (locked.exempt)
        return slu_fail(ENOMEM,
                        "no memory to register %zu bytes of %s (ulimit -l is unlimited, or does "
                        "not count for this process)",
                        length, kind);
    return slu_fail(ENOMEM,
                    "cannot register %zu bytes of %s: no memory, or the limit on locked memory is "
                    "too low; ulimit -l is %llu KiB, and %llu KiB are pinned; raise it, for a "
                    "container by --ulimit memlock=-1: CAP_IPC_LOCK helps only if it is effective",
                    length, kind, (unsigned long long)locked.limit / 1024,
                    (unsigned long long)locked.pinned / 1024);
}

static int fail_register(int err, const void *addr, size_t length, const char *device)
{
    char kind[SLU_MEMORY_KIND];

    slu_memory_kind(addr, kind);
    switch (err) {
    case ENOMEM:
        return fail_no_memory(length, kind);
    case EFAULT:
        return slu_fail(EFAULT,
                        "cannot register %zu bytes of %s at %p: not mapped, or read-only where "
                        "writing was asked for, or of a device, which exports a dmabuf at best",
                        length, kind, addr);
    default:
        return slu_fail(err, "cannot register %zu bytes of %s at %p on %s: %s", length, kind, addr,
                        device, strerror(err));
    }
}

/* A region has one key, so one that the device does not take cannot be divided. */
static int check_size(const struct slu_tpd *pd, size_t length)
{
    uint64_t most = pd->context->max_region;

    if (most == 0 || length <= most)
        return 0;
    return slu_fail(EINVAL,
                    "a region of %zu bytes: %s takes at most %llu; register the memory in several",
                    length, pd->context->device, (unsigned long long)most);
}

/*
 * Returns the rights of a region for libibverbs. On iWARP a read is answered by a write of the peer
 * (RFC 5040), so memory that this side may write to is open to peers that know its key.
 */
static int access_of(const struct slu_tpd *pd, uint32_t access)
{
    int rights = slu_verbs_access(access);

    if (pd->context->by_rdmacm && (access & SLUICE_ACCESS_LOCAL_WRITE) != 0)
        rights |= IBV_ACCESS_REMOTE_WRITE;
    return rights;
}

/* Returns 0, or a positive errno value without a text: an allocation then tries another way. */
static int try_register(struct slu_tpd *base, void *addr, size_t length, uint32_t access,
                        struct slu_verbs_mr **mr)
{
    struct slu_verbs_mr *made = calloc(1, sizeof *made);
    int err;

    if (!made)
        return ENOMEM;
    made->ibv = ibv_reg_mr(slu_verbs_pd_of(base)->ibv, addr, length, access_of(base, access));
    if (!made->ibv) {
        err = slu_verbs_errno(-1);
        free(made);
        return err;
    }
    made->base = (struct slu_tmr){
        .pd = base,
        .addr = addr,
        .length = length,
        .iova = (uintptr_t)addr,
        .lkey = made->ibv->lkey,
        .rkey = made->ibv->rkey,
    };
    *mr = made;
    return 0;
}

int slu_verbs_mr_register(struct slu_tpd *base, void *addr, size_t length, uint32_t access,
                          struct slu_tmr **mr)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_verbs_mr *made = NULL;
    int err = check_size(base, length);

    if (err)
        return err;
    err = try_register(base, addr, length, access, &made);
    if (err)
        return fail_register(err, addr, length, base->context->device);
    *mr = &made->base;
    return 0;
}

static int try_alloc(struct slu_tpd *base, const struct slu_page_way *way, size_t length,
                     uint32_t access, struct slu_verbs_mr **mr)
{
    struct slu_pages pages;
    int err = slu_pages_map(way, -1, &pages);

    if (err)
        return err;
    err = try_register(base, pages.addr, length, access, mr);
    if (err)
        slu_pages_unmap(&pages);
    else
        (*mr)->pages = pages;
    return err;
}

int slu_verbs_mr_alloc(struct slu_tpd *base, size_t length, uint32_t access, int32_t node,
                       struct slu_tmr **mr)
{
    struct slu_page_way ways[SLU_PAGE_WAYS];
    uint32_t count = slu_page_ways(length, access & SLUICE_MR_HUGE_PAGES, false, node, ways);
    struct slu_verbs_mr *made = NULL;
    int err = check_size(base, length);

    if (err)
        return err;
    for (uint32_t i = 0; i < count; i++) {
        err = try_alloc(base, &ways[i], length, access, &made);
        if (!err)
            break;
    }
    if (err == ENOMEM)
        return fail_no_memory(length, "new memory");
    if (err)
        return slu_fail(err, "cannot allocate and register %zu bytes on %s: %s", length,
                        base->context->device, strerror(err));
    *mr = &made->base;
    return 0;
}

/* Explains EINVAL of the kernel, for offsets and lengths that are consistent with each other. */
static int fail_invalid(const struct slu_dmabuf *dmabuf, const char *device)
{
    off_t size = lseek(dmabuf->fd, 0, SEEK_END);

    if (size >= 0 && (uint64_t)size < dmabuf->offset + dmabuf->length)
        return slu_fail(EINVAL, "%zu bytes at offset %#llx are beyond the %lld bytes of fd %d",
                        dmabuf->length, (unsigned long long)dmabuf->offset, (long long)size,
                        dmabuf->fd);
    return slu_fail(EINVAL,
                    "cannot register fd %d on %s: it is no dmabuf, or its exporter does not let "
                    "this device reach it",
                    dmabuf->fd, device);
}

static int fail_dmabuf(int err, const struct slu_dmabuf *dmabuf, const char *device)
{
    switch (err) {
    case EINVAL:
        return fail_invalid(dmabuf, device);
    case EOPNOTSUPP:
    case ENOSYS:
    case EPROTONOSUPPORT: /* a kernel before 5.12 does not know the call */
        return slu_fail(EOPNOTSUPP,
                        "%s cannot register a dmabuf: its driver, or its provider in rdma-core, or "
                        "the kernel has no support for it",
                        device);
    default:
        return slu_fail(err, "cannot register %zu bytes of the dmabuf fd %d on %s: %s",
                        dmabuf->length, dmabuf->fd, device, strerror(err));
    }
}

/*
 * Duplicates the descriptor: the program may close its own and later publish the region, which
 * registers it again.
 */
static int keep_dmabuf(const struct slu_dmabuf *dmabuf, int *kept)
{
    *kept = slu_fd_duplicate(dmabuf->fd);
    if (*kept >= 0)
        return 0;
    return slu_fail(errno, "a region of a dmabuf needs a file descriptor: %s",
                    strerrordesc_np(errno));
}

int slu_verbs_mr_register_dmabuf(struct slu_tpd *base, const struct slu_dmabuf *dmabuf,
                                 uint32_t access, struct slu_tmr **mr)
{
    struct slu_verbs_mr *made = calloc(1, sizeof *made);
    int err;

    if (!made)
        return slu_fail(ENOMEM, "no memory for a memory region");
    made->ibv = ibv_reg_dmabuf_mr(slu_verbs_pd_of(base)->ibv, dmabuf->offset, dmabuf->length,
                                  dmabuf->iova, dmabuf->fd, access_of(base, access));
    if (!made->ibv) {
        err = slu_verbs_errno(-1);
        free(made);
        return fail_dmabuf(err, dmabuf, base->context->device);
    }
    err = keep_dmabuf(dmabuf, &made->base.dmabuf);
    if (err) {
        ibv_dereg_mr(made->ibv);
        free(made);
        return err;
    }
    /* Keep the iova here: the addr of the ibv_mr is the offset. */
    made->base = (struct slu_tmr){
        .pd = base,
        .length = dmabuf->length,
        .iova = dmabuf->iova,
        .lkey = made->ibv->lkey,
        .rkey = made->ibv->rkey,
        .dmabuf = made->base.dmabuf,
        .dmabuf_offset = dmabuf->offset,
    };
    *mr = &made->base;
    return 0;
}

void slu_verbs_mr_deregister(struct slu_tmr *base)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_verbs_mr *mr = slu_verbs_mr_of(base);
    int err = ibv_dereg_mr(mr->ibv);

    /* On failure the device may still write to the memory, so it is leaked rather than reused. */
    if (err)
        slu_log(SLUICE_LOG_ERROR, "deregistering %zu bytes at %#llx on %s failed: %s", base->length,
                (unsigned long long)base->iova, base->pd->context->device,
                strerror(slu_verbs_errno(err)));
    else
        slu_pages_unmap(&mr->pages);
    if (!base->addr)
        slu_fd_close(base->dmabuf);
    free(mr);
}
