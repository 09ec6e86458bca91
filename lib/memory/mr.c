/* SPDX-License-Identifier: MIT */
/*
 * Memory regions: registration, checked elements, and the rule that a region is not
 * deregistered while requests in flight use it.
 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <sluice/mr.h>

#include "memory/mr.h"
#include "memory/pages.h"

#define KNOWN_ACCESS                                                                      \
    (SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ | \
     SLUICE_ACCESS_REMOTE_ATOMIC)

int slu_mr_check(const struct sluice_pd *pd, size_t length, uint32_t access)
{
    if (pd == NULL || pd->magic != SLU_MAGIC_PD)
        return slu_misuse(EINVAL, "a memory region needs a protection domain%s", slu_none_hint(pd));
    if (length == 0)
        return slu_misuse(EINVAL, "a memory region needs a length of at least 1 byte");
    if ((access & ~KNOWN_ACCESS) == SLUICE_MR_HUGE_PAGES)
        return slu_misuse(EINVAL, "HUGE_PAGES is for memory that sluice_mr_alloc() allocates");
    if ((access & ~KNOWN_ACCESS) != 0)
        return slu_misuse(EINVAL, "access %#x has unknown bits; known are %#x", access,
                          KNOWN_ACCESS);
    if ((access & SLUICE_ACCESS_REMOTE_WRITE) != 0 && (access & SLUICE_ACCESS_LOCAL_WRITE) == 0)
        return slu_misuse(EINVAL, "access REMOTE_WRITE needs LOCAL_WRITE as well");
    if ((access & SLUICE_ACCESS_REMOTE_ATOMIC) == 0)
        return 0;
    if ((access & SLUICE_ACCESS_LOCAL_WRITE) == 0)
        return slu_misuse(EINVAL, "access REMOTE_ATOMIC needs LOCAL_WRITE as well");
    if (pd->context->transport->atomics == SLUICE_ATOMICS_NONE)
        return slu_fail(EOPNOTSUPP, "access REMOTE_ATOMIC: device %s has no atomic operations",
                        pd->context->transport->device);
    return 0;
}

static const struct slu_transport *transport_of(const struct sluice_pd *pd)
{
    return pd->context->transport->transport;
}

/* Completes the object with the transport's region; frees it if that failed with error. */
static struct sluice_mr *finish(struct sluice_mr *mr, struct sluice_pd *pd, uint32_t access,
                                int error)
{
    if (error == 0 && mr->transport->addr == NULL) {
        error = slu_pd_add_unreachable(pd, mr->transport->lkey);
        if (error < 0)
            transport_of(pd)->mr_deregister(mr->transport);
    }
    if (error < 0) {
        free(mr);
        return slu_none(error);
    }
    mr->magic = SLU_MAGIC_MR;
    slu_pd_hold(pd);
    mr->pd = pd;
    mr->access = access;
    slu_made();
    return mr;
}

/* Allocates the object, for finish(). */
static struct sluice_mr *begin(void)
{
    struct sluice_mr *mr = calloc(1, sizeof *mr);

    return mr != NULL ? mr : slu_fail_null(ENOMEM, "no memory for a memory region");
}

static int check_range(const void *addr, size_t length)
{
    if (addr == NULL)
        return slu_misuse(EINVAL, "memory to register must not be NULL");
    if ((uintptr_t)addr + length - 1 < (uintptr_t)addr)
        return slu_misuse(EINVAL, "memory of %zu bytes at %p wraps the address space", length,
                          addr);
    return 0;
}

struct sluice_mr *slu_mr_register(struct sluice_pd *pd, void *addr, size_t length, uint32_t access)
{
    struct sluice_mr *mr = begin();
    int error;

    if (mr == NULL)
        return NULL;
    error = check_range(addr, length);
    if (error == 0)
        error = transport_of(pd)->mr_register(pd->transport, addr, length, access, &mr->transport);
    return finish(mr, pd, access, error);
}

struct sluice_mr *sluice_mr_register(struct sluice_pd *pd, void *addr, size_t length,
                                     uint32_t access)
{
    int error = slu_mr_check(pd, length, access);

    return error == 0 ? slu_mr_register(pd, addr, length, access) : slu_none(error);
}

struct sluice_mr *slu_mr_alloc(struct sluice_pd *pd, size_t length, uint32_t access, int32_t node)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_mr *mr = begin();
    int error;

    if (mr == NULL)
        return NULL;
    if (length > PTRDIFF_MAX)
        error = slu_fail(ENOMEM, "no memory for a region of %zu byte%s", length, SLU_S(length));
    else
        error = transport_of(pd)->mr_alloc(pd->transport, length, access, node, &mr->transport);
    return finish(mr, pd, access, error);
}

struct sluice_mr *sluice_mr_alloc(struct sluice_pd *pd, size_t length, uint32_t access)
{
    int error = slu_mr_check(pd, length, access & ~SLUICE_MR_HUGE_PAGES);

    return error == 0 ? slu_mr_alloc(pd, length, access, SLU_ANY_NODE) : slu_none(error);
}

/* Checks what the kernel would refuse without a reason. */
static int check_dmabuf(const struct slu_dmabuf *dmabuf)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t last = dmabuf->length - 1;

    if (dmabuf->offset + dmabuf->length < dmabuf->length)
        return slu_misuse(EINVAL,
                          "%zu bytes of a dmabuf at offset %#llx wrap around the address space",
                          dmabuf->length, (unsigned long long)dmabuf->offset);
    if (dmabuf->iova + last < dmabuf->iova)
        return slu_misuse(EINVAL, "%zu bytes at iova %#llx wrap around the address space",
                          dmabuf->length, (unsigned long long)dmabuf->iova);
    if (dmabuf->offset % page != dmabuf->iova % page)
        return slu_misuse(
            EINVAL,
            "iova %#llx and offset %#llx of a dmabuf must agree modulo the page size, "
            "%llu bytes",
            (unsigned long long)dmabuf->iova, (unsigned long long)dmabuf->offset,
            (unsigned long long)page);
    if (fcntl(dmabuf->fd, F_GETFD) < 0)
        return slu_misuse(EBADF, "file descriptor %d of a dmabuf is not open", dmabuf->fd);
    return 0;
}

static int register_dmabuf(const struct sluice_pd *pd, const struct slu_dmabuf *dmabuf,
                           uint32_t access, struct slu_tmr **mr)
{
    int error = check_dmabuf(dmabuf);

    if (error < 0)
        return error;
    return transport_of(pd)->mr_register_dmabuf(pd->transport, dmabuf, access, mr);
}

struct sluice_mr *sluice_mr_register_dmabuf(struct sluice_pd *pd, int fd, uint64_t offset,
                                            size_t length, uint64_t iova, uint32_t access)
{
    SLU_UNCANCELLED_BLOCK;
    struct slu_dmabuf dmabuf = {.fd = fd, .offset = offset, .length = length, .iova = iova};
    int error = slu_mr_check(pd, length, access);
    struct sluice_mr *mr = error == 0 ? begin() : slu_none(error);

    return mr == NULL
               ? NULL
               : finish(mr, pd, access, register_dmabuf(pd, &dmabuf, access, &mr->transport));
}

/* Registers a range of a region again: for a transport without mr_part(), or another context. */
static int register_again(const struct sluice_pd *pd, const struct slu_tmr *of, size_t offset,
                          size_t length, uint32_t access, struct slu_tmr **mr)
{
    const struct slu_dmabuf dmabuf = {.fd = of->dmabuf,
                                      .offset = of->dmabuf_offset + offset,
                                      .length = length,
                                      .iova = of->iova + offset};

    if (of->addr == NULL)
        return transport_of(pd)->mr_register_dmabuf(pd->transport, &dmabuf, access, mr);
    return transport_of(pd)->mr_register(pd->transport, (uint8_t *)of->addr + offset, length,
                                         access, mr);
}

struct sluice_mr *slu_mr_part(struct sluice_pd *pd, const struct sluice_mr *of, size_t offset,
                              size_t length, uint32_t access)
{
    struct sluice_mr *mr = begin();
    int error;

    if (mr == NULL)
        return NULL;
    if (pd->context == of->pd->context && transport_of(pd)->mr_part != NULL)
        error = transport_of(pd)->mr_part(pd->transport, of->transport, offset, length, access,
                                          &mr->transport);
    else
        error = register_again(pd, of->transport, offset, length, access, &mr->transport);
    return finish(mr, pd, access, error);
}

int slu_mr_everything(struct sluice_pd *pd, struct sluice_mr **mr)
{
    const struct slu_transport *transport = transport_of(pd);
    struct sluice_mr *made;

    *mr = NULL;
    if (transport->mr_everything == NULL)
        return 0;
    made = begin();
    if (made == NULL)
        return -ENOMEM;
    *mr = finish(made, pd, SLUICE_ACCESS_LOCAL_WRITE,
                 transport->mr_everything(pd->transport, &made->transport));
    return *mr != NULL ? 0 : -ENOMEM;
}

static int not_a_region(const struct sluice_mr *mr)
{
    if (mr == NULL)
        return slu_misuse(EINVAL, "not a memory region, but NULL%s", slu_none_hint(mr));
    return slu_misuse(EINVAL, "not a memory region, or one that was deregistered%s",
                      slu_none_hint(mr));
}

int slu_mr_may_end(const struct sluice_mr *mr)
{
    if (mr == NULL)
        return 0;
    if (mr->magic != SLU_MAGIC_MR)
        return not_a_region(mr);
    if (mr->cached != NULL)
        return slu_misuse(EINVAL, "a region of a cache is put back, not deregistered");
    if (mr->allocated)
        return slu_misuse(EINVAL, "a region of an allocator cannot be deregistered: free its "
                                  "blocks instead");
    return 0;
}

void slu_mr_end(struct sluice_mr *mr)
{
    struct sluice_pd *pd = mr->pd;

    mr->magic = SLU_MAGIC_DEAD;
    if (mr->transport->addr == NULL)
        slu_pd_remove_unreachable(pd, mr->transport->lkey);
    pd->context->transport->transport->mr_deregister(mr->transport);
    free(mr);
    slu_pd_release(pd);
}

int slu_mr_fail_used(const struct sluice_mr *mr, bool late)
{
    const struct slu_memory memory = {.lkey = mr->transport->lkey, .length = SLU_WHOLE};

    return slu_pd_fail_used(mr->pd, &memory, "memory region", mr->transport->iova, late);
}

int sluice_mr_deregister(struct sluice_mr *mr)
{
    int error = slu_mr_may_end(mr);

    if (error < 0 || mr == NULL)
        return error;
    if (slu_pd_uses_key(mr->pd, mr->transport->lkey))
        return slu_mr_fail_used(mr, false);
    slu_mr_end(mr);
    return 0;
}

/* Checks a region for calls that return no error value: these return 0 or NULL if it is wrong. */
static bool is_mr(const struct sluice_mr *mr)
{
    if (mr != NULL && mr->magic == SLU_MAGIC_MR)
        return true;
    not_a_region(mr);
    return false;
}

void *sluice_mr_addr(const struct sluice_mr *mr)
{
    return is_mr(mr) ? mr->transport->addr : NULL;
}

size_t sluice_mr_length(const struct sluice_mr *mr)
{
    return is_mr(mr) ? mr->transport->length : 0;
}

uint32_t sluice_mr_lkey(const struct sluice_mr *mr)
{
    return is_mr(mr) ? mr->transport->lkey : 0;
}

size_t sluice_mr_page_size(const struct sluice_mr *mr)
{
    if (!is_mr(mr) || mr->transport->addr == NULL)
        return 0;
    return slu_page_size(mr->transport->addr, mr->transport->length);
}

static bool holds_range(const struct slu_tmr *mr, uint64_t offset, size_t length)
{
    return offset <= mr->length && length <= mr->length - offset;
}

/* Fills an element for a checked range; fails if it is longer than an element can be. */
static int fill_sge(const struct slu_tmr *mr, uint64_t offset, size_t length,
                    struct sluice_sge *sge)
{
    if (length > UINT32_MAX)
        return slu_misuse(EMSGSIZE, "an SGE of %zu bytes is longer than 2^32 - 1", length);
    sge->addr = mr->iova + offset;
    sge->length = (uint32_t)length;
    sge->lkey = mr->lkey;
    return 0;
}

int sluice_mr_sge(const struct sluice_mr *mr, size_t offset, size_t length, struct sluice_sge *sge)
{
    if (mr == NULL || mr->magic != SLU_MAGIC_MR)
        return not_a_region(mr);
    if (sge == NULL)
        return slu_misuse(EINVAL, "sge must not be NULL");
    if (!holds_range(mr->transport, offset, length))
        return slu_misuse(ERANGE, "bytes %zu to %zu + %zu are outside the region of %zu byte%s",
                          offset, offset, length, mr->transport->length,
                          SLU_S(mr->transport->length));
    return fill_sge(mr->transport, offset, length, sge);
}

int sluice_mr_sge_at(const struct sluice_mr *mr, const void *pointer, size_t length,
                     struct sluice_sge *sge)
{
    uint64_t offset;

    if (mr == NULL || mr->magic != SLU_MAGIC_MR)
        return not_a_region(mr);
    if (sge == NULL)
        return slu_misuse(EINVAL, "sge must not be NULL");
    /* For an address before the region the offset wraps, and is beyond its end. */
    offset = (uintptr_t)pointer - mr->transport->iova;
    if (!holds_range(mr->transport, offset, length))
        return slu_misuse(ERANGE, "%zu byte%s at %#llx: outside the region of %zu byte%s at %#llx",
                          length, SLU_S(length), (unsigned long long)(uintptr_t)pointer,
                          mr->transport->length, SLU_S(mr->transport->length),
                          (unsigned long long)mr->transport->iova);
    return fill_sge(mr->transport, offset, length, sge);
}

int sluice_mr_remote(const struct sluice_mr *mr, struct sluice_remote_mr *remote)
{
    if (mr == NULL || mr->magic != SLU_MAGIC_MR)
        return not_a_region(mr);
    if (remote == NULL)
        return slu_misuse(EINVAL, "remote must not be NULL");
    *remote = (struct sluice_remote_mr){
        .addr = mr->transport->iova, .length = mr->transport->length, .rkey = mr->transport->rkey};
    return 0;
}
