/* SPDX-License-Identifier: MIT */
/*
 * Memory regions on a pretend RDMA device: dmabuf, which rxe cannot register; the arguments that
 * the device gets; and the state of memory that the driver refuses.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <sluice/verbs.h>

#include "../support/process.h"
#include "ports.h"

#define PAGE 4096
#define OFFSET (3 * PAGE + 100)
#define LENGTH 5000
#define FILE_LENGTH (8 * PAGE)

/* A file that the device takes for a dmabuf, and our own view of it. */
struct dmabuf {
    int fd;
    uint8_t *bytes;
};

static struct dmabuf dmabuf_open(void)
{
    struct dmabuf dmabuf = {.fd = memfd_create("dmabuf", MFD_CLOEXEC)};
    require(dmabuf.fd >= 0 && ftruncate(dmabuf.fd, FILE_LENGTH) == 0, "%s", strerror(errno));
    dmabuf.bytes = mmap(NULL, FILE_LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf.fd, 0);
    require(dmabuf.bytes != MAP_FAILED, "%s", strerror(errno));
    memset(dmabuf.bytes, 0xa5, FILE_LENGTH);
    return dmabuf;
}

static void dmabuf_close_whole(struct dmabuf *dmabuf)
{
    value_check(dmabuf->bytes, FILE_LENGTH, 0xa5);
    munmap(dmabuf->bytes, FILE_LENGTH);
    close(dmabuf->fd);
}

/* Requires that no byte outside of the piece was written. */
static void dmabuf_close(struct dmabuf *dmabuf)
{
    value_check(dmabuf->bytes, OFFSET, 0xa5);
    value_check(dmabuf->bytes + OFFSET + LENGTH, FILE_LENGTH - OFFSET - LENGTH, 0xa5);
    munmap(dmabuf->bytes, FILE_LENGTH);
    if (dmabuf->fd >= 0) {
        close(dmabuf->fd);
    }
}

static const uint64_t iovas[] = {
    100,                             /* the first page: usually unmapped */
    OFFSET,                          /* as libibverbs would report it */
    UINT64_C(0x7f0000000000) + 100,  /* as of a GPU */
    UINT64_MAX - 2 * PAGE + 1 + 100, /* the last ones */
};

static struct sluice_mr *register_piece(struct sluice_pd *pd, struct dmabuf *dmabuf, uint64_t iova)
{
    struct sluice_mr *mr =
        made(sluice_mr_register_dmabuf(pd, dmabuf->fd, OFFSET, LENGTH, iova, ACCESS_ALL));
    close(dmabuf->fd);
    dmabuf->fd = -1;
    require(!sluice_mr_addr(mr) && sluice_mr_page_size(mr) == 0, "%p, pages of %zu",
            sluice_mr_addr(mr), sluice_mr_page_size(mr));
    require_equal(sluice_mr_length(mr), LENGTH);
    return mr;
}

/* Elements and handles count from the iova, whatever libibverbs reports of the region. */
static void check_addressing(const struct sluice_mr *mr, uint64_t iova)
{
    struct sluice_remote_mr remote;
    struct sluice_sge sge;
    require_ok(sluice_mr_remote(mr, &remote));
    require_equal(remote.addr, iova, remote.length, LENGTH);
    require_ok(sluice_mr_sge(mr, 7, LENGTH - 7, &sge));
    require_equal(sge.addr, iova + 7, sge.length, LENGTH - 7, sge.lkey, sluice_mr_lkey(mr));
    require_error(sluice_mr_sge(mr, 7, LENGTH - 6, &sge), -ERANGE, "outside");
    const uint8_t *at = (const uint8_t *)(uintptr_t)iova;
    require_ok(sluice_mr_sge_at(mr, at + 7, LENGTH - 7, &sge));
    require_equal(sge.addr, iova + 7);
    require_error(sluice_mr_sge_at(mr, at + 7, LENGTH - 6, &sge), -ERANGE, "outside");
}

/* The last arguments of ibv_reg_dmabuf_mr(), and the number of its calls. */
static struct {
    unsigned calls;
    const struct ibv_pd *pd;
    uint64_t offset;
    size_t length;
    uint64_t iova;
    int fd, access;
} asked;

struct ibv_mr *__real_ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                        uint64_t iova, int fd, int access);
struct ibv_mr *__wrap_ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                        uint64_t iova, int fd, int access);

struct ibv_mr *__wrap_ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                        uint64_t iova, int fd, int access)
{
    asked.calls++;
    asked.pd = pd;
    asked.offset = offset;
    asked.length = length;
    asked.iova = iova;
    asked.fd = fd;
    asked.access = access;
    return __real_ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
}

#define LOCAL_WRITE SLUICE_ACCESS_LOCAL_WRITE
#define REMOTE_WRITE SLUICE_ACCESS_REMOTE_WRITE
#define REMOTE_READ SLUICE_ACCESS_REMOTE_READ
#define REMOTE_ATOMIC SLUICE_ACCESS_REMOTE_ATOMIC

/* The device gets the numbers as the program gave them, each in its place. */
TEST(device_gets_the_arguments_of_a_dmabuf)
{
    static const struct {
        uint64_t offset;
        size_t length;
        uint64_t iova;
        uint32_t access;
        int told;
    } cases[] = {
        {0, 1, 0, 0, 0},
        {PAGE, PAGE, 5 * PAGE, LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE},
        {OFFSET, LENGTH, 7 * PAGE + 100, REMOTE_READ, IBV_ACCESS_REMOTE_READ},
        {OFFSET, LENGTH, UINT64_MAX - 2 * PAGE + 101, LOCAL_WRITE | REMOTE_WRITE,
         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE},
        {FILE_LENGTH - 1, 1, PAGE - 1, LOCAL_WRITE | REMOTE_ATOMIC,
         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC},
        {0, FILE_LENGTH, UINT64_C(0x7f0000000000),
         LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC,
         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
             IBV_ACCESS_REMOTE_ATOMIC},
    };
    struct sides sides;
    struct dmabuf dmabuf = dmabuf_open();
    fake_verbs.dmabuf = true;
    sides_open(&sides);
    for (unsigned i = 0; i < COUNT(cases); i++) {
        struct sluice_remote_mr remote, unpacked, slice;
        uint8_t packed[SLUICE_REMOTE_MR_BYTES];
        struct sluice_mr *mr =
            sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, cases[i].offset, cases[i].length,
                                      cases[i].iova, cases[i].access);
        require(mr, "case %u: %s", i, sluice_last_error());
        require_equal(asked.calls, i + 1);
        require(asked.pd == sluice_verbs_pd(sides.pds[0]), "another protection domain");
        require_equal(asked.offset, cases[i].offset, asked.length, cases[i].length, asked.iova,
                      cases[i].iova, asked.fd, dmabuf.fd, asked.access, cases[i].told);
        /* Peers use the iova, also once a handle was sent. */
        require_ok(sluice_mr_remote(mr, &remote));
        sluice_remote_mr_pack(&remote, packed);
        require_ok(sluice_remote_mr_unpack(packed, &unpacked));
        require_equal(unpacked.addr, cases[i].iova, unpacked.length, cases[i].length, unpacked.rkey,
                      sluice_verbs_mr(mr)->rkey);
        require_ok(sluice_remote_mr_slice(&unpacked, cases[i].length - 1, 1, &slice));
        require_equal(slice.addr, cases[i].iova + cases[i].length - 1);
        require_ok(sluice_mr_deregister(mr));
    }
    require_equal(fake_verbs.live.mrs, 0);
    sides_close(&sides);
    dmabuf_close_whole(&dmabuf);
}

/* Arguments that are wrong by themselves never reach a device. */
TEST(mistakes_do_not_reach_the_device)
{
    static const struct {
        uint64_t offset;
        size_t length;
        uint64_t iova;
        uint32_t access;
        int error;
        const char *words;
    } cases[] = {
        {0, 0, 0, 0, EINVAL, "length"},
        {0, PAGE, 1, 0, EINVAL, "iova 0x1 offset 0 page 4096"},
        {8, PAGE, PAGE, 0, EINVAL, "iova 0x1000 offset 0x8 page"},
        {0 - (uint64_t)PAGE, 2 * PAGE, 0, 0, EINVAL, "8192 bytes offset wrap"},
        {0, 2 * PAGE, 0 - (uint64_t)PAGE, 0, EINVAL, "8192 bytes iova wrap"},
        {0, PAGE, 0, REMOTE_WRITE, EINVAL, "REMOTE_WRITE LOCAL_WRITE"},
        {0, PAGE, 0, REMOTE_ATOMIC, EINVAL, "REMOTE_ATOMIC LOCAL_WRITE"},
        {0, PAGE, 0, SLUICE_MR_HUGE_PAGES, EINVAL, "HUGE_PAGES"},
        {0, PAGE, 0, UINT32_C(1) << 20, EINVAL, "unknown"},
    };
    struct sides sides;
    struct dmabuf dmabuf = dmabuf_open();
    fake_verbs.dmabuf = true;
    sides_open(&sides);
    asked.calls = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        require_null(sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, cases[i].offset,
                                               cases[i].length, cases[i].iova, cases[i].access),
                     cases[i].error, cases[i].words);
    }
    require_null(sluice_mr_register_dmabuf(NULL, dmabuf.fd, 0, PAGE, 0, 0), EINVAL,
                 "protection domain");
    require_null(sluice_mr_register_dmabuf(sides.pds[0], -1, 0, PAGE, 0, 0), EBADF, "-1 not open");
    int gone = dup(dmabuf.fd);
    close(gone);
    require_null(sluice_mr_register_dmabuf(sides.pds[0], gone, 0, PAGE, 0, 0), EBADF, "not open");
    require_equal(asked.calls, 0);
    sides_close(&sides);
    dmabuf_close_whole(&dmabuf);
}

TEST(dmabuf_is_read_and_written, .times = COUNT(iovas))
{
    uint64_t iova = iovas[_i];
    struct pair pair;
    struct sluice_sge sges[2];
    struct sluice_remote_mr remote;
    struct dmabuf dmabuf = dmabuf_open();
    fake_verbs.dmabuf = true;
    pair_open(&pair, NULL);
    struct memory host = side_memory(&pair.sides, 0, LENGTH);
    /* As the target of a peer. */
    struct sluice_mr *far = register_piece(pair.sides.pds[1], &dmabuf, iova);
    check_addressing(far, iova);
    pattern_fill(host.bytes, LENGTH, 1);
    sges[0] = memory_sge(&host, 0, LENGTH);
    require_ok(sluice_mr_remote(far, &remote));
    require_ok(sluice_channel_write(pair.channels[0], sges, 1, &remote, DEADLINE));
    pattern_check(dmabuf.bytes + OFFSET, LENGTH, 1);
    pattern_fill(dmabuf.bytes + OFFSET, LENGTH, 2);
    require_ok(sluice_channel_read(pair.channels[0], sges, 1, &remote, DEADLINE));
    pattern_check(host.bytes, LENGTH, 2);
    require_ok(sluice_mr_deregister(far));
    dmabuf_close(&dmabuf);
    /* As our own memory, in two pieces: a receive lands in it, and it is sent. */
    dmabuf = dmabuf_open();
    struct sluice_mr *near = register_piece(pair.sides.pds[1], &dmabuf, iova);
    require_ok(sluice_mr_sge(near, 0, 10, &sges[0]));
    require_ok(sluice_mr_sge(near, 10, LENGTH - 10, &sges[1]));
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, sges);
    receive.sge_count = 2;
    struct sluice_handle handle = post(pair.channels[1], &receive);
    require_error(sluice_mr_deregister(near), -EBUSY, "posted");
    struct sluice_sge from = memory_sge(&host, 0, LENGTH);
    require_ok(sluice_channel_send(pair.channels[0], &from, 1, DEADLINE));
    await(pair.channels[1], handle, SLUICE_CLASS_NONE);
    pattern_check(dmabuf.bytes + OFFSET, LENGTH, 2);
    require_ok(sluice_mr_deregister(near));
    dmabuf_close(&dmabuf);
    pair_close(&pair);
    require_equal(fake_verbs_alive(), 0);
}

/* A part of it in the domain of a service: registered again, though the program's fd is closed. */
TEST(dmabuf_is_published, .times = COUNT(iovas))
{
    const struct sluice_buffer_service_attr attr = {.size = sizeof(attr), .address = "127.0.0.1:0"};
    struct sluice_buffer_service *services[2];
    struct sluice_buffer_handle handle;
    struct sides sides;
    uint8_t target[LENGTH];
    struct dmabuf dmabuf = dmabuf_open();
    fake_verbs.dmabuf = true;
    sides_open(&sides);
    struct sluice_mr *mr = register_piece(sides.pds[1], &dmabuf, iovas[_i]);
    for (int i = 0; i < 2; i++) {
        services[i] = made(sluice_buffer_service_open(&sides.pds[i], 1, &attr));
    }
    unsigned calls = asked.calls;
    struct sluice_buffer *buffer =
        sluice_buffer_publish_mr(services[1], mr, 1000, 3000, REMOTE_READ | REMOTE_WRITE);
    require(buffer && sluice_buffer_addr(buffer) == NULL, "%s", sluice_last_error());
    require_equal(asked.calls, calls + 1, asked.offset, OFFSET + 1000, asked.length, 3000,
                  asked.iova, iovas[_i] + 1000, asked.access,
                  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
    require_ok(sluice_buffer_export(buffer, &handle));
    require_error(sluice_mr_deregister(mr), -EBUSY, "published as buffer 1");
    pattern_fill(target, 3000, 1);
    require_ok(sluice_buffer_write(services[0], &handle, 0, NULL, target, 3000, DEADLINE));
    pattern_check(dmabuf.bytes + OFFSET + 1000, 3000, 1);
    pattern_fill(dmabuf.bytes + OFFSET + 1000, 3000, 2);
    require_ok(sluice_buffer_read(services[0], &handle, 0, NULL, target, 3000, DEADLINE));
    pattern_check(target, 3000, 2);
    value_check(dmabuf.bytes + OFFSET, 1000, 0xa5);
    value_check(dmabuf.bytes + OFFSET + 4000, LENGTH - 4000, 0xa5);
    sluice_buffer_release(buffer);
    require_ok(sluice_mr_deregister(mr));
    for (int i = 0; i < 2; i++) {
        sluice_buffer_service_close(services[i]);
    }
    dmabuf_close(&dmabuf);
    sides_close(&sides);
}

/* How a driver refuses a dmabuf, and the resulting error. */
struct refusal {
    int error, wanted;
    const char *words;
};

TEST(dmabuf_that_is_refused)
{
    static const struct refusal refusals[] = {
        {EOPNOTSUPP, EOPNOTSUPP, "fake0 dmabuf driver"},
        {EPROTONOSUPPORT, EOPNOTSUPP, "fake0 dmabuf kernel"},
        {ENOSYS, EOPNOTSUPP, "fake0 dmabuf"},
        {EINVAL, EINVAL, "fake0 no dmabuf"},
        {ENOMEM, ENOMEM, "5000 bytes dmabuf fake0"},
        {EACCES, EACCES, "Permission denied"},
        {EBADF, EBADF, "5000 bytes dmabuf fd fake0 Bad file descriptor"},
        {EPERM, EPERM, "5000 bytes dmabuf fake0 not permitted"},
        {EFAULT, EFAULT, "5000 bytes dmabuf fake0 Bad address"},
        {EBUSY, EBUSY, "5000 bytes dmabuf fake0 busy"},
    };
    struct sides sides;
    struct dmabuf dmabuf = dmabuf_open();
    sides_open(&sides);
    for (size_t i = 0; i < COUNT(refusals); i++) {
        fake_verbs_fail(1, FAKE_CALL(FAKE_REG_DMABUF_MR), refusals[i].error);
        require_null(sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, OFFSET, LENGTH, 100, 0),
                     refusals[i].wanted, refusals[i].words);
    }
    /* Too short: the kernel only reports that it is invalid. */
    fake_verbs_fail(1, FAKE_CALL(FAKE_REG_DMABUF_MR), EINVAL);
    require_null(sluice_mr_register_dmabuf(sides.pds[0], dmabuf.fd, OFFSET, FILE_LENGTH, 100, 0),
                 EINVAL, "32768 bytes offset 0x3064 beyond 32768");
    require_equal(fake_verbs.live.mrs, 0);
    sides_close(&sides);
    dmabuf_close(&dmabuf);
}

/* Counts mappings without the heap, which after a fork may grow by another mapping. */
static long count_mappings(void)
{
    char line[512];
    long count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    require(maps, "%s", strerror(errno));
    while (fgets(line, sizeof(line), maps)) {
        count += strstr(line, "[heap]") == NULL;
    }
    fclose(maps);
    return count;
}

/* If the driver refuses one kind of memory, the next one is tried; the last error is returned. */
TEST_WITH(sides, memory_that_is_refused, ())
{
    struct sluice_pd *pd = sides->pds[0];
    require_ok(sluice_mr_deregister(sluice_mr_alloc(pd, LENGTH, SLUICE_MR_HUGE_PAGES)));
    require_error(sluice_mr_remote(NULL, NULL), -EINVAL, "");
    char text[400];
    snprintf(text, sizeof(text), "%s", sluice_last_error());
    /* With transparent pages there are at least two ways. */
    bool two = access("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", R_OK) == 0;
    long mappings = count_mappings();
    fake_verbs_fail(1, FAKE_CALL(FAKE_REG_MR), EFAULT);
    struct sluice_mr *mr = sluice_mr_alloc(pd, LENGTH, SLUICE_MR_HUGE_PAGES);
    require((mr != NULL) == two, "%d ways: %s", 1 + two, sluice_last_error());
    if (mr) {
        value_check(sluice_mr_addr(mr), LENGTH, 0);
        require(strcmp(text, sluice_last_error()) == 0, "%s", sluice_last_error());
    }
    require_ok(sluice_mr_deregister(mr));
    fake_verbs_fail(1, FAKE_CALL(FAKE_REG_MR), EPERM);
    require_null(sluice_mr_alloc(pd, LENGTH, 0), EPERM, "5000 fake0");
    fake_verbs_fail(1, FAKE_CALL(FAKE_REG_MR), ENOMEM);
    require_null(sluice_mr_alloc(pd, LENGTH, 0), ENOMEM, "ulimit -l");
    fake_verbs_fail(1, FAKE_CALL(FAKE_REG_MR), EPERM);
    require_null(sluice_mr_register(pd, text, sizeof(text), 0), EPERM, "400 fake0");
    require_equal(fake_verbs.live.mrs, 0);
    require(SANITIZED || count_mappings() == mappings, "%ld mappings, were %ld", count_mappings(),
            mappings);
}

/* Memory that the device does not release is never reused. */
TEST_WITH(sides, memory_that_is_kept, ())
{
    struct sluice_mr *mr = made(sluice_mr_alloc(sides->pds[0], LENGTH, ACCESS_ALL));
    uint8_t *bytes = sluice_mr_addr(mr);
    require_ok(sluice_log_set(SLUICE_LOG_NONE, NULL, NULL)); /* the log has it as an error */
    fake_verbs.tolerate_misuse = true; /* the protection domain then has a child */
    fake_verbs_fail(1, FAKE_CALL(FAKE_DEREG_MR), EIO);
    require_ok(sluice_mr_deregister(mr));
    memset(bytes, 1, LENGTH); /* still mapped: this would kill the program */
    require_equal(fake_verbs.live.mrs, 1);
}

/* The device's largest region, and one byte more. */
TEST(region_beyond_the_device)
{
    struct sides sides;
    static uint8_t bytes[LENGTH + 1];
    char words[80];
    fake_verbs.device[0].max_mr_size = LENGTH;
    sides_open(&sides);
    require_result((int64_t)context_info(sides.contexts[0]).max_region, LENGTH);
    snprintf(words, sizeof(words), "%d bytes fake0 at most %d in several", LENGTH + 1, LENGTH);
    require_null(sluice_mr_register(sides.pds[0], bytes, LENGTH + 1, 0), EINVAL, words);
    require_null(sluice_mr_alloc(sides.pds[0], LENGTH + 1, 0), EINVAL, words);
    require_equal(fake_verbs.calls[FAKE_REG_MR], 0);
    require_ok(sluice_mr_deregister(made(sluice_mr_register(sides.pds[0], bytes, LENGTH, 0))));
    sides_close(&sides);
}

static void refuse_kind(struct sluice_pd *pd, void *addr, const char *words)
{
    fake_verbs_fail(1, FAKE_CALL(FAKE_REG_MR), EFAULT);
    require_null(sluice_mr_register(pd, addr, LENGTH, 0), EFAULT, words);
}

/* The error names the kind of memory: anonymous, of a file, and in huge pages, if there are any. */
TEST_WITH(sides, kinds_of_memory_are_named, ())
{
    struct sluice_pd *pd = sides->pds[0];
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *plain = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, flags, -1, 0);
    int fd = memfd_create("paper", MFD_CLOEXEC);
    require(plain != MAP_FAILED && fd >= 0 && ftruncate(fd, LENGTH) == 0, "%s", strerror(errno));
    void *file = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    require(file != MAP_FAILED, "%s", strerror(errno));
    refuse_kind(pd, plain, "5000 bytes of memory in pages of 4 KiB not mapped");
    refuse_kind(pd, (uint8_t *)file + 8,
                "5000 bytes of memory of the file paper in pages of 4 KiB");
    void *huge = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
    if (huge != MAP_FAILED) {
        refuse_kind(pd, huge, "5000 bytes of memory in huge pages");
        munmap(huge, 2 << 20);
    }
    munmap(plain, LENGTH);
    munmap(file, LENGTH);
    close(fd);
}

/* Failures that come one after the other do not read a list of all memory each. */
TEST_WITH(sides, kinds_of_memory_are_found_eight_times_a_second, ())
{
    static uint8_t bytes[LENGTH];
    int64_t begun = clock_now(), named = 0;
    for (int i = 0; i < 100; i++) {
        refuse_kind(sides->pds[0], bytes, "5000 bytes of memory not mapped");
        named += strstr(sluice_last_error(), "memory in pages of") != NULL;
    }
    require(named >= 8 && named <= 8 * ((clock_now() - begun) / SLUICE_S(1) + 2), "%lld of 100",
            (long long)named);
}

/* The limit on locked memory counts, unless the process has CAP_IPC_LOCK. */
TEST_WITH(sides, limit_on_locked_memory_is_told, ())
{
    struct rlimit before, limit;
    static uint8_t bytes[LENGTH];
    bool root = geteuid() == 0;
    require(getrlimit(RLIMIT_MEMLOCK, &before) == 0, "%s", strerror(errno));
    limit = (struct rlimit){.rlim_cur = 64 * 1024, .rlim_max = before.rlim_max};
    require(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "%s", strerror(errno));
    if (root) {
        fake_verbs_fail(1, FAKE_CALL(FAKE_REG_MR), ENOMEM);
        require_null(sluice_mr_register(sides->pds[0], bytes, LENGTH, 0), ENOMEM,
                     "5000 bytes of memory in pages ulimit -l does not count");
        require(seteuid(65534) == 0, "%s", strerror(errno));
    }
    fake_verbs_fail(1, FAKE_CALL(FAKE_REG_MR), ENOMEM);
    require_null(sluice_mr_register(sides->pds[0], bytes, LENGTH, 0), ENOMEM,
                 "5000 bytes of memory in pages locked memory ulimit -l is 64 KiB KiB are pinned "
                 "--ulimit memlock=-1 CAP_IPC_LOCK");
    require(!root || seteuid(0) == 0, "%s", strerror(errno));
    require(setrlimit(RLIMIT_MEMLOCK, &before) == 0, "%s", strerror(errno));
}

/* A region of the library's own, for hints of receives, which lives as long as the domain. */
#define HINT_REGIONS 1

/* A multichannel that is connected to itself and has a cache, and pages of plain memory. */
struct plain {
    struct sides sides;
    struct sluice_mr_cache *cache;
    struct sluice_multichannel *loop;
    uint8_t *pages;
};

static void plain_open(struct plain *plain, uint32_t max_inline)
{
    sides_open(&plain->sides);
    plain->cache = made(sluice_mr_cache_create(plain->sides.pds[0], ACCESS_ALL, NULL));
    const struct sluice_channel_attr attr =
        *ATTR(.max_inline = max_inline, .mr_cache = plain->cache);
    plain->loop = loop_open(plain->sides.pds[0], 2, &attr);
    plain->pages = aligned_alloc(PAGE, FILE_LENGTH);
    require(plain->pages, "no memory%s", "");
    memset(plain->pages, 0x5a, FILE_LENGTH);
}

static void plain_close(struct plain *plain)
{
    sluice_multichannel_close(plain->loop);
    require_ok(sluice_mr_cache_destroy(plain->cache));
    require_equal(fake_verbs.live.mrs, HINT_REGIONS);
    sides_close(&plain->sides);
    free(plain->pages);
}

/* Makes a request with every second page, so that each has a region of its own. */
static struct sluice_request plain_request(const struct plain *plain, uint32_t opcode,
                                           uint32_t peer, uint32_t page)
{
    return REQUEST(.opcode = opcode, .peer = peer, .flags = SLUICE_PLAIN_MEMORY, .sge_count = 1,
                   .sge = {.addr = (uintptr_t)plain->pages + (size_t)2 * page * PAGE,
                           .length = 64});
}

/*
 * The error names the memory that the driver refuses to register, and no request of the call
 * reaches the device.
 */
TEST_WITH(plain, plain_memory_that_is_refused, (0), .times = 3)
{
    struct sluice_request list[3];
    struct fake_qp_info info;
    for (uint32_t i = 0; i < COUNT(list); i++) {
        list[i] = plain_request(plain, SLUICE_OP_RECEIVE, 0, i);
    }
    char words[64];
    snprintf(words, sizeof(words), "request %d element 0 ulimit -l", _i);
    fake_verbs_fail((uint32_t)_i + 1, FAKE_CALL(FAKE_REG_MR), ENOMEM);
    require_error(sluice_multichannel_post(plain->loop, list, 3, DEADLINE, NULL), -ENOMEM, words);
    require(fake_verbs_qp(0, &info) && info.posted[FAKE_RECEIVE] == 0, "%u were posted",
            info.posted[FAKE_RECEIVE]);
    require_equal((int)fake_verbs.live.mrs, HINT_REGIONS + _i);
    /* Regions that were registered before it stay usable. */
    require_ok(sluice_mr_cache_forget(plain->cache, plain->pages, FILE_LENGTH));
    require_equal(fake_verbs.live.mrs, HINT_REGIONS);
    require_result(sluice_multichannel_post(plain->loop, list, 3, DEADLINE, NULL), 3);
    require_equal(fake_verbs.live.mrs, HINT_REGIONS + 3);
}

/* The device copies inline data, wherever they are, and none of them are registered. */
TEST_WITH(plain, inline_plain_memory_is_not_registered, (64))
{
    struct sluice_request receive = plain_request(plain, SLUICE_OP_RECEIVE, 1, 0);
    struct sluice_request send = plain_request(plain, SLUICE_OP_SEND, 0, 1);
    send.flags |= SLUICE_INLINE;
    memset(plain->pages + (size_t)2 * PAGE, 7, 64);
    require_result(sluice_multichannel_post(plain->loop, &receive, 1, DEADLINE, NULL), 1);
    require_equal(fake_verbs.live.mrs, HINT_REGIONS + 1);
    require_ok(sluice_multichannel_submit(plain->loop, &send, 1, DEADLINE, NULL));
    require_equal(fake_verbs.live.mrs, HINT_REGIONS + 1);
    require_ok(sluice_multichannel_flush(plain->loop, DEADLINE));
    value_check(plain->pages, 64, 7);
}

/*
 * While the device holds a completion its memory stays registered, whatever call would release it.
 */
TEST_WITH(plain, plain_memory_outlives_its_request, (0))
{
    struct sluice_request receive = plain_request(plain, SLUICE_OP_RECEIVE, 1, 0);
    struct sluice_request send = plain_request(plain, SLUICE_OP_SEND, 0, 1);
    require_result(sluice_multichannel_post(plain->loop, &receive, 1, DEADLINE, NULL), 1);
    fake_verbs_hold(0);
    require_result(sluice_multichannel_post(plain->loop, &send, 1, DEADLINE, NULL), 1);
    require_error(sluice_mr_cache_forget(plain->cache, plain->pages, FILE_LENGTH), -EBUSY,
                  "in use");
    require_equal(fake_verbs.live.mrs, HINT_REGIONS + 2);
    fake_verbs_release(0);
    require_ok(sluice_multichannel_flush(plain->loop, DEADLINE));
    require_ok(sluice_mr_cache_forget(plain->cache, plain->pages, FILE_LENGTH));
    require_equal(fake_verbs.live.mrs, HINT_REGIONS);
}

int main(void)
{
    static const struct tests cases[] = {{"memory", WIRE_SELF, 30}};
    /* Overrides the device that other tests run on. */
    setenv("SLUICE_TEST_DEVICE", "fake0", 1);
    return run_groups("verbs_memory", cases, COUNT(cases));
}
