/* SPDX-License-Identifier: MIT */
/* Protection domains and memory regions. Keys differ as much as possible. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fake_device.h"

#define BUCKETS 1024
#define LOCAL_KEY 0x11
#define REMOTE_KEY 0xe0

static struct fake_mr *regions[BUCKETS];
static uint32_t last_region;
static struct fake_link pds = {&pds, &pds};
static uint64_t pinned; /* bytes of whole pages */

static struct fake_pd *pd_of(struct ibv_pd *pd)
{
    return fake_container_of(pd, struct fake_pd, ibv);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ibv)
{
    struct fake_pd *pd = NULL;

    fake_lock();
    if (!fake_fails(FAKE_ALLOC_PD)) {
        pd = fake_alloc(sizeof(*pd));
        pd->ibv.context = ibv;
        fake_list_add(&pds, &pd->link);
        fake_context_of(ibv)->children++;
        fake_verbs.live.pds++;
    }
    fake_unlock();
    return pd ? &pd->ibv : NULL;
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    struct fake_pd *pd = pd_of(ibv);
    int err = 0;

    fake_lock();
    if (fake_fails(FAKE_DEALLOC_PD))
        err = errno;
    else if (pd->children)
        err = EBUSY;
    if (!err) {
        fake_context_of(ibv->context)->children--;
        fake_verbs.live.pds--;
        fake_list_remove(&pd->link);
        free(pd);
    }
    fake_unlock();
    return err;
}

static char *read_maps(void)
{
    size_t room = 1 << 20, length = 0;
    char *text = malloc(room + 1);
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;

    while (text && fd >= 0 && (got = read(fd, text + length, room - length)) > 0)
        length += (size_t)got;
    if (fd >= 0)
        close(fd);
    if (!text || fd < 0 || got < 0 || length == room) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

/* As when the kernel pins pages, all must be mapped, and writable if the device writes. */
static bool can_pin(const void *addr, size_t length, bool writable)
{
    char *maps = read_maps(), *rest = NULL;
    uint64_t at = (uintptr_t)addr, end = at + length;

    if (!maps)
        return true; /* without descriptors nothing can be checked */
    for (char *line = strtok_r(maps, "\n", &rest); line && at < end;
         line = strtok_r(NULL, "\n", &rest)) {
        unsigned long long first, last;
        char rights[5];

        if (sscanf(line, "%llx-%llx %4s", &first, &last, rights) != 3 || at >= last)
            continue;
        if (at < first || rights[0] != 'r' || (writable && rights[1] != 'w'))
            break;
        at = last;
    }
    free(maps);
    return at >= end;
}

static uint64_t pages_of(uint64_t addr, uint64_t length)
{
    return ((addr + length + 4095) & ~UINT64_C(4095)) - (addr & ~UINT64_C(4095));
}

/*
 * The kernel answers ENOMEM to a process that locks more than its limit, unless it is privileged.
 */
static bool may_lock(uint64_t bytes)
{
    struct rlimit limit;

    return geteuid() == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) ||
           (bytes <= limit.rlim_cur && pinned <= limit.rlim_cur - bytes);
}

static int check_region(const void *addr, size_t length, int access)
{
    if (length == 0 || (uintptr_t)addr + length < (uintptr_t)addr)
        return EINVAL;
    if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
        !(access & IBV_ACCESS_LOCAL_WRITE))
        return EINVAL;
    return 0;
}

static struct ibv_mr *add_region(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                 int access)
{
    struct fake_mr *mr = fake_alloc(sizeof(*mr));
    struct fake_mr **bucket = &regions[++last_region % BUCKETS];
    const int remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

    mr->ibv.context = pd->context;
    mr->ibv.pd = pd;
    mr->ibv.addr = addr;
    mr->ibv.length = length;
    mr->ibv.handle = last_region;
    mr->ibv.lkey = last_region << 8 | LOCAL_KEY;
    mr->ibv.rkey = access & remote ? last_region << 8 | REMOTE_KEY : 0;
    mr->memory = addr;
    mr->iova = iova;
    mr->length = length;
    mr->access = access;
    mr->next = *bucket;
    *bucket = mr;
    pd_of(pd)->children++;
    fake_context_of(pd->context)->children++;
    fake_verbs.live.mrs++;
    return &mr->ibv;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access)
{
    struct ibv_mr *mr = NULL;

    fake_lock();
    if (!fake_fails(FAKE_REG_MR)) {
        errno = check_region(addr, length, (int)access);
        if (!errno && fake_verbs.live.mrs >= (uint32_t)fake_device_of(pd->context)->max_mr)
            errno = ENOMEM;
        if (!errno && !may_lock(pages_of((uintptr_t)addr, length)))
            errno = ENOMEM;
        if (!errno)
            errno = can_pin(addr, length, access & IBV_ACCESS_LOCAL_WRITE) ? 0 : EFAULT;
        if (!errno) {
            mr = add_region(pd, addr, length, iova, (int)access);
            pinned += pages_of((uintptr_t)addr, length);
        }
    }
    fake_unlock();
    return mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

#undef ibv_reg_mr_iova
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

/* If the device supports dmabuf, any file that can be mapped is accepted, such as a memfd. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, int access)
{
    struct ibv_mr *ibv = NULL;
    void *memory;

    fake_lock();
    if (!fake_fails(FAKE_REG_DMABUF_MR)) {
        uint64_t shift = offset % 4096;

        errno = fake_verbs.dmabuf ? check_region(NULL, length, access) : EOPNOTSUPP;
        memory = errno ? MAP_FAILED
                       : mmap(NULL, length + shift, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                              (off_t)(offset - shift));
        if (memory != MAP_FAILED) {
            ibv = add_region(pd, (uint8_t *)memory + shift, length, iova, access);
            ibv->addr = (void *)(uintptr_t)offset;
            fake_container_of(ibv, struct fake_mr, ibv)->mapped = true;
        }
    }
    fake_unlock();
    return ibv;
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
    struct fake_mr *mr = fake_container_of(ibv, struct fake_mr, ibv);
    struct fake_mr **link;
    int err;

    fake_lock();
    err = fake_fails(FAKE_DEREG_MR) ? errno : 0;
    if (!err) {
        for (link = &regions[ibv->handle % BUCKETS]; *link != mr;)
            link = &(*link)->next;
        *link = mr->next;
        if (!mr->mapped) {
            pinned -= pages_of((uintptr_t)mr->memory, mr->length);
        } else {
            uint64_t shift = (uintptr_t)mr->memory % 4096;

            munmap(mr->memory - shift, mr->length + shift);
        }
        pd_of(ibv->pd)->children--;
        fake_context_of(ibv->context)->children--;
        fake_verbs.live.mrs--;
        free(mr);
    }
    fake_unlock();
    return err;
}

static uint8_t *find(const struct ibv_pd *pd, uint64_t addr, uint64_t length, uint32_t key,
                     bool remote, int access)
{
    for (struct fake_mr *mr = regions[(key >> 8) % BUCKETS]; mr; mr = mr->next) {
        if (key == 0 || (remote ? mr->ibv.rkey : mr->ibv.lkey) != key)
            continue;
        if (mr->ibv.pd != pd || (mr->access & access) != access || addr < mr->iova ||
            length > mr->length || addr - mr->iova > mr->length - length)
            return NULL;
        return mr->memory + (addr - mr->iova);
    }
    return NULL;
}

uint8_t *fake_local(const struct ibv_pd *pd, const struct ibv_sge *sge, int access)
{
    return find(pd, sge->addr, sge->length, sge->lkey, false, access);
}

uint8_t *fake_remote(const struct ibv_pd *pd, uint64_t addr, uint64_t length, uint32_t rkey,
                     int access)
{
    return find(pd, addr, length, rkey, true, access);
}
