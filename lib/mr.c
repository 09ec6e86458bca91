/* SPDX-License-Identifier: MIT */
/*
 * Memory regions: what may be registered, checked elements, and the rule that
 * memory named by posted work cannot go away.
 */
#include "config.h"

#include <stdlib.h>

#include <sluice/mr.h>

#include "channel/engine.h"
#include "internal.h"

#define KNOWN_ACCESS \
    (SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ)

static int check_arguments(const struct sluice_pd *pd, size_t length, uint32_t access)
{
    if (pd == NULL || pd->magic != SLU_MAGIC_PD)
        return slu_fail(EINVAL, "a memory region needs a protection domain");
    if (length == 0)
        return slu_fail(EINVAL, "a memory region needs a length of at least 1 byte");
    if ((access & ~KNOWN_ACCESS) != 0)
        return slu_fail(EINVAL, "access %#x has unknown bits; known are %#x", access, KNOWN_ACCESS);
    if ((access & SLUICE_ACCESS_REMOTE_WRITE) != 0 && (access & SLUICE_ACCESS_LOCAL_WRITE) == 0)
        return slu_fail(EINVAL, "access REMOTE_WRITE needs LOCAL_WRITE as well");
    return 0;
}

/* Makes the object around what the transport registered or allocated. */
static struct sluice_mr *make_mr(struct sluice_pd *pd, void *addr, size_t length, uint32_t access)
{
    const struct slu_transport *transport = pd->context->transport->transport;
    struct sluice_mr *mr = calloc(1, sizeof *mr);
    int error;

    if (mr == NULL)
        return slu_fail_null(ENOMEM, "no memory for a memory region");
    if (addr != NULL)
        error = transport->mr_register(pd->transport, addr, length, access, &mr->transport);
    else
        error = transport->mr_alloc(pd->transport, length, access, &mr->transport);
    if (error < 0) {
        free(mr);
        errno = -error;
        return NULL;
    }
    mr->magic = SLU_MAGIC_MR;
    slu_pd_hold(pd);
    mr->pd = pd;
    return mr;
}

struct sluice_mr *sluice_mr_register(struct sluice_pd *pd, void *addr, size_t length,
                                     uint32_t access)
{
    int error = check_arguments(pd, length, access);

    if (error < 0) {
        errno = -error;
        return NULL;
    }
    if (addr == NULL)
        return slu_fail_null(EINVAL, "memory to register must not be NULL");
    if ((uintptr_t)addr + length - 1 < (uintptr_t)addr)
        return slu_fail_null(EINVAL, "memory of %zu bytes at %p wraps the address space", length,
                             addr);
    return make_mr(pd, addr, length, access);
}

struct sluice_mr *sluice_mr_alloc(struct sluice_pd *pd, size_t length, uint32_t access)
{
    int error = check_arguments(pd, length, access);

    if (error < 0) {
        errno = -error;
        return NULL;
    }
    return make_mr(pd, NULL, length, access);
}

int sluice_mr_deregister(struct sluice_mr *mr)
{
    struct sluice_pd *pd;

    if (mr == NULL)
        return 0;
    if (mr->magic != SLU_MAGIC_MR)
        return slu_fail(EINVAL, "not a memory region");
    pd = mr->pd;
    if (slu_engines_use_key(pd, mr->transport->lkey))
        return slu_fail(EBUSY, "memory region at %p is named by posted work: wait for it first",
                        mr->transport->addr);
    mr->magic = SLU_MAGIC_DEAD;
    pd->context->transport->transport->mr_deregister(mr->transport);
    free(mr);
    slu_pd_release(pd);
    return 0;
}

void *sluice_mr_addr(const struct sluice_mr *mr)
{
    return mr == NULL ? NULL : mr->transport->addr;
}

size_t sluice_mr_length(const struct sluice_mr *mr)
{
    return mr == NULL ? 0 : mr->transport->length;
}

uint32_t sluice_mr_lkey(const struct sluice_mr *mr)
{
    return mr == NULL ? 0 : mr->transport->lkey;
}

int sluice_mr_sge(const struct sluice_mr *mr, size_t offset, size_t length, struct sluice_sge *sge)
{
    if (mr == NULL || mr->magic != SLU_MAGIC_MR || sge == NULL)
        return slu_fail(EINVAL, "not a memory region, or sge is NULL");
    if (offset > mr->transport->length || length > mr->transport->length - offset)
        return slu_fail(ERANGE, "bytes %zu to %zu + %zu are outside the region of %zu bytes",
                        offset, offset, length, mr->transport->length);
    if (length > UINT32_MAX)
        return slu_fail(EMSGSIZE, "an SGE of %zu bytes is longer than 2^32 - 1", length);
    sge->addr = (uint64_t)(uintptr_t)mr->transport->addr + offset;
    sge->length = (uint32_t)length;
    sge->lkey = mr->transport->lkey;
    return 0;
}

int sluice_mr_remote(const struct sluice_mr *mr, struct sluice_remote_mr *remote)
{
    if (mr == NULL || mr->magic != SLU_MAGIC_MR || remote == NULL)
        return slu_fail(EINVAL, "not a memory region, or remote is NULL");
    remote->addr = mr->transport->remote_addr;
    remote->length = mr->transport->length;
    remote->rkey = mr->transport->rkey;
    remote->reserved = 0;
    return 0;
}
