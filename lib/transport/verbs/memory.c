/* SPDX-License-Identifier: MIT */
/*
 * Protection domains and memory regions. Guarantee: memory of mr_alloc is
 * unmapped only after the device has let go of it.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "verbs.h"

int slu_verbs_pd_alloc(struct slu_tcontext *base, struct slu_tpd **pd)
{
    struct slu_verbs_context *context = slu_verbs_context_of(base);
    struct slu_verbs_pd *made = calloc(1, sizeof(*made));
    int err;

    if (!made)
        return slu_fail(ENOMEM, "no memory for a protection domain");
    made->ibv = ibv_alloc_pd(context->ibv);
    if (!made->ibv) {
        err = slu_verbs_errno(-1);
        free(made);
        return slu_fail(err, "cannot allocate a protection domain on %s: %s", base->device,
                        strerror(err));
    }
    made->base.context = base;
    *pd = &made->base;
    return 0;
}

void slu_verbs_pd_free(struct slu_tpd *base)
{
    struct slu_verbs_pd *pd = slu_verbs_pd_of(base);
    int err = ibv_dealloc_pd(pd->ibv);

    if (err)
        slu_log(SLUICE_LOG_WARN, "freeing a protection domain of %s failed: %s",
                base->context->device, strerror(slu_verbs_errno(err)));
    free(pd);
}

/* The usual reason is the limit on locked memory, which the kernel does not tell apart. */
static int fail_no_memory(size_t length)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return slu_fail(ENOMEM, "no memory to register %zu bytes (ulimit -l is unlimited)", length);
    return slu_fail(ENOMEM,
                    "cannot register %zu bytes: no memory, or the limit on locked memory is too "
                    "low; ulimit -l is %llu KiB, raise it",
                    length, (unsigned long long)limit.rlim_cur / 1024);
}

static int fail_register(int err, const void *addr, size_t length, const char *device)
{
    switch (err) {
    case ENOMEM:
        return fail_no_memory(length);
    case EFAULT:
        return slu_fail(EFAULT,
                        "cannot register %zu bytes at %p: not mapped, or read-only where writing "
                        "was asked for",
                        length, addr);
    default:
        return slu_fail(err, "cannot register %zu bytes at %p on %s: %s", length, addr, device,
                        strerror(err));
    }
}

int slu_verbs_mr_register(struct slu_tpd *base, void *addr, size_t length, uint32_t access,
                          struct slu_tmr **mr)
{
    struct slu_verbs_pd *pd = slu_verbs_pd_of(base);
    struct slu_verbs_mr *made = calloc(1, sizeof(*made));
    int err;

    if (!made)
        return slu_fail(ENOMEM, "no memory for a memory region");
    made->ibv = ibv_reg_mr(pd->ibv, addr, length, slu_verbs_access(access));
    if (!made->ibv) {
        err = slu_verbs_errno(-1);
        free(made);
        return fail_register(err, addr, length, base->context->device);
    }
    made->base = (struct slu_tmr){
        .pd = base,
        .addr = addr,
        .length = length,
        .remote_addr = (uintptr_t)addr,
        .lkey = made->ibv->lkey,
        .rkey = made->ibv->rkey,
    };
    *mr = &made->base;
    return 0;
}

int slu_verbs_mr_alloc(struct slu_tpd *base, size_t length, uint32_t access, struct slu_tmr **mr)
{
    void *addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int err;

    if (addr == MAP_FAILED) {
        err = errno;
        return slu_fail(err, "cannot allocate %zu bytes: %s", length, strerror(err));
    }
    err = slu_verbs_mr_register(base, addr, length, access, mr);
    if (err) {
        munmap(addr, length);
        return err;
    }
    slu_verbs_mr_of(*mr)->mapped = true;
    return 0;
}

void slu_verbs_mr_deregister(struct slu_tmr *base)
{
    struct slu_verbs_mr *mr = slu_verbs_mr_of(base);
    int err = ibv_dereg_mr(mr->ibv);

    /* The device may still write to it then, so it is leaked rather than given to others. */
    if (err)
        slu_log(SLUICE_LOG_ERROR, "deregistering %zu bytes at %p on %s failed: %s", base->length,
                base->addr, base->pd->context->device, strerror(slu_verbs_errno(err)));
    else if (mr->mapped)
        munmap(base->addr, base->length);
    free(mr);
}
