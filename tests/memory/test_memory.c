/* SPDX-License-Identifier: MIT */
/*
 * Memory regions: memory that cannot be registered and why, huge pages, dmabuf, the limit on locked
 * memory, and that nothing is left behind.
 */
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/heap.h"
#include "../support/pair.h"
#include "../support/process.h"

#define RESERVED_PAGES "/proc/sys/vm/nr_hugepages"
#define TRANSPARENT "/sys/kernel/mm/transparent_hugepage/"
#define MIB ((size_t)1 << 20)

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Reads a number behind a name in a file of /proc, in its units. Returns -1 if it is missing. */
static long read_number(const char *path, const char *name)
{
    char line[256];
    long value = -1;
    size_t length = strlen(name);
    FILE *file = fopen(path, "re");
    while (file && value < 0 && fgets(line, sizeof(line), file)) {
        if (strncmp(line, name, length) == 0) {
            value = atol(line + length);
        }
    }
    if (file) {
        fclose(file);
    }
    return value;
}

/* Huge pages are configured only in the test guest; other machines stay as they are. */
static bool in_guest(void)
{
    return if_nametoindex("sluice0") != 0 && access(RESERVED_PAGES, W_OK) == 0;
}

static void configure(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    require(fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value), "%s: %s", path,
            strerror(errno));
    close(fd);
}

static struct sluice_mr *alloc(struct sluice_pd *pd, size_t length, uint32_t access)
{
    struct sluice_mr *mr = sluice_mr_alloc(pd, length, access);
    require(mr, "%zu bytes, access %#x: %s", length, access, sluice_last_error());
    return mr;
}

/* Writes all of a region into another one, and compares. */
static void carry(struct pair *pair, const struct sluice_mr *from, const struct sluice_mr *to)
{
    struct sluice_remote_mr remote;
    struct sluice_sge sge;
    size_t length = sluice_mr_length(from);
    require_ok(sluice_mr_sge(from, 0, length, &sge));
    require_ok(sluice_mr_remote(to, &remote));
    pattern_fill(sluice_mr_addr(from), length, 5);
    require_ok(sluice_channel_write(pair->channels[0], &sge, 1, &remote, DEADLINE));
    pattern_check(sluice_mr_addr(to), length, 5);
}

/* Whatever pages there are, the region has the requested length, is zeroed, and works. */
TEST(huge_pages_are_a_wish)
{
    static const size_t lengths[] = {1, 4097, 2 * MIB - 1, 2 * MIB, 3 * MIB};
    struct pair pair;
    pair_open(&pair, NULL);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        size_t length = lengths[i];
        struct sluice_mr *from = alloc(pair.sides.pds[0], length, SLUICE_MR_HUGE_PAGES);
        struct sluice_mr *to = alloc(pair.sides.pds[1], length, ACCESS_ALL | SLUICE_MR_HUGE_PAGES);
        size_t page = sluice_mr_page_size(to);
        require(page >= page_bytes() && (page & (page - 1)) == 0, "%zu", page);
        require((uintptr_t)sluice_mr_addr(to) % page == 0, "%p", sluice_mr_addr(to));
        require(sluice_mr_length(to) == length, "%zu", sluice_mr_length(to));
        value_check(sluice_mr_addr(to), length, 0);
        carry(&pair, from, to);
        require_ok(sluice_mr_deregister(from));
        require_ok(sluice_mr_deregister(to));
    }
    pair_close(&pair);
}

static long free_pages(void)
{
    return read_number("/proc/meminfo", "HugePages_Free:");
}

/* Reserved pages are used, and returned; if there are too few, that is no failure. */
static void use_reserved_pages(struct sluice_pd *pd)
{
    size_t huge = (size_t)read_number("/proc/meminfo", "Hugepagesize:") * 1024;
    configure(RESERVED_PAGES, "4");
    require(free_pages() == 4, "%ld of 4 pages", free_pages());
    for (int i = 0; i < 20; i++) {
        struct sluice_mr *mr = alloc(pd, huge + 1, ACCESS_ALL | SLUICE_MR_HUGE_PAGES);
        require(sluice_mr_page_size(mr) == huge, "%zu", sluice_mr_page_size(mr));
        require(sluice_mr_length(mr) == huge + 1, "%zu", sluice_mr_length(mr));
        require(free_pages() == 2, "%ld pages are free", free_pages());
        require_ok(sluice_mr_deregister(mr));
        require(free_pages() == 4, "%ld pages are free", free_pages());
    }
    struct sluice_mr *mr = alloc(pd, 5 * huge, ACCESS_ALL | SLUICE_MR_HUGE_PAGES);
    require(free_pages() == 4, "%ld pages are free", free_pages());
    memset(sluice_mr_addr(mr), 1, 5 * huge);
    require_ok(sluice_mr_deregister(mr));
    /* Newer kernels may give it transparent pages unasked. */
    mr = alloc(pd, huge, ACCESS_ALL);
    require(free_pages() == 4, "%ld pages are free, unasked", free_pages());
    require_ok(sluice_mr_deregister(mr));
    configure(RESERVED_PAGES, "0");
}

/* Without reserved pages, transparent ones; without these, plain ones. */
static void use_transparent_pages(struct sluice_pd *pd)
{
    const char *shared = TRANSPARENT "shmem_enabled";
    const char *anonymous = TRANSPARENT "enabled";
    size_t huge = (size_t)read_number(TRANSPARENT "hpage_pmd_size", "");
    configure(shared, "advise");
    configure(anonymous, "madvise");
    struct sluice_mr *mr = alloc(pd, 2 * huge + 5, SLUICE_MR_HUGE_PAGES);
    require(sluice_mr_page_size(mr) == huge, "%zu", sluice_mr_page_size(mr));
    require((uintptr_t)sluice_mr_addr(mr) % huge == 0, "%p", sluice_mr_addr(mr));
    require_ok(sluice_mr_deregister(mr));
    mr = alloc(pd, 2 * huge, 0);
    require(sluice_mr_page_size(mr) == page_bytes(), "%zu, unasked", sluice_mr_page_size(mr));
    require_ok(sluice_mr_deregister(mr));
    configure(shared, "never");
    configure(anonymous, "never");
    mr = alloc(pd, 2 * huge + 5, SLUICE_MR_HUGE_PAGES);
    require(sluice_mr_page_size(mr) == page_bytes(), "%zu", sluice_mr_page_size(mr));
    require_ok(sluice_mr_deregister(mr));
    configure(anonymous, "always");
}

TEST(huge_pages_that_there_are)
{
    struct sides sides;
    sides_open(&sides);
    if (in_guest()) {
        use_reserved_pages(sides.pds[0]);
        use_transparent_pages(sides.pds[0]);
    }
    sides_close(&sides);
}

/* The page size of the program's own memory is reported as well. */
TEST(page_size_of_any_region)
{
    struct sides sides;
    sides_open(&sides);
    require(sluice_mr_page_size(NULL) == 0, "%zu", sluice_mr_page_size(NULL));
    /* Two mappings that cannot be merged. */
    size_t page = page_bytes();
    uint8_t *pages =
        mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(pages != MAP_FAILED, "%s", strerror(errno));
    require(mprotect(pages, 2 * page, PROT_READ) == 0, "%s", strerror(errno));
    struct sluice_mr *mr =
        made(sluice_mr_register(sides.pds[0], pages + 1, 4 * page - 2, SLUICE_ACCESS_REMOTE_READ));
    require(sluice_mr_page_size(mr) == page, "%zu", sluice_mr_page_size(mr));
    /* If a part of it is gone, no page size is known, and no memory is accessed. */
    munmap(pages + page, page);
    /* The allocator of a sanitizer may map memory into the hole. */
    if (!SANITIZED)
        require(sluice_mr_page_size(mr) == 0, "%zu", sluice_mr_page_size(mr));
    require_ok(sluice_mr_deregister(mr));
    munmap(pages, 4 * page);
    sides_close(&sides);
}

TEST(wrong_arguments)
{
    struct sides sides;
    static uint8_t bytes[100];
    sides_open(&sides);
    struct sluice_pd *pd = sides.pds[0];
    require_null(sluice_mr_register(pd, NULL, 10, 0), EINVAL, "NULL");
    require_null(sluice_mr_register(pd, bytes, 0, 0), EINVAL, "length");
    require_null(sluice_mr_register(pd, bytes, SIZE_MAX, 0), EINVAL, "wraps");
    require_null(sluice_mr_register(pd, bytes, 10, UINT32_C(1) << 4), EINVAL, "unknown");
    require_null(sluice_mr_register(pd, bytes, 10, SLUICE_ACCESS_REMOTE_WRITE), EINVAL,
                 "LOCAL_WRITE");
    require_null(sluice_mr_register(pd, bytes, 10, SLUICE_MR_HUGE_PAGES), EINVAL,
                 "HUGE_PAGES sluice_mr_alloc()");
    require_null(sluice_mr_alloc(pd, 0, SLUICE_MR_HUGE_PAGES), EINVAL, "length");
    require_null(sluice_mr_alloc(pd, 10, SLUICE_MR_HUGE_PAGES | UINT32_C(1) << 17), EINVAL,
                 "unknown");
    require_null(sluice_mr_alloc(pd, 10, SLUICE_MR_HUGE_PAGES | SLUICE_ACCESS_REMOTE_WRITE), EINVAL,
                 "LOCAL_WRITE");
    static const size_t lengths[] = {SIZE_MAX,    SIZE_MAX - 1,       (size_t)PTRDIFF_MAX + 1,
                                     PTRDIFF_MAX, PTRDIFF_MAX - 4095, (size_t)1 << 60};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        require_null(sluice_mr_alloc(pd, lengths[i], 0), ENOMEM, "bytes");
        require_null(sluice_mr_alloc(pd, lengths[i], SLUICE_MR_HUGE_PAGES), ENOMEM, "bytes");
    }
    sides_close(&sides);
}

/* Memory that is not mapped, or may not be written: both transports return EFAULT. */
TEST(memory_that_cannot_be_reached)
{
    struct sides sides;
    sides_open(&sides);
    struct sluice_pd *pd = sides.pds[0];
    size_t page = page_bytes();
    /* The kernel maps from the top, so nothing else is mapped into the hole down here. */
    uint8_t *pages = mmap((void *)(uintptr_t)0x40000000, 4 * page, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    require(pages != MAP_FAILED, "%s", strerror(errno));
    munmap(pages + 2 * page, page);
    require(mprotect(pages + 3 * page, page, PROT_READ) == 0, "%s", strerror(errno));
    for (uint32_t access = 0; access <= SLUICE_ACCESS_LOCAL_WRITE; access++) {
        require_null(sluice_mr_register(pd, pages + 2 * page, 1, access), EFAULT, "not mapped");
        require_null(sluice_mr_register(pd, pages, 2 * page + 1, access), EFAULT, "not mapped");
        require_null(sluice_mr_register(pd, pages + page, 3 * page, access), EFAULT, "not mapped");
        struct sluice_mr *mr = made(sluice_mr_register(pd, pages, 2 * page, access));
        require_ok(sluice_mr_deregister(mr));
    }
    require_null(sluice_mr_register(pd, pages + 3 * page, page, SLUICE_ACCESS_LOCAL_WRITE), EFAULT,
                 "read-only");
    struct sluice_mr *mr = made(sluice_mr_register(pd, pages + 3 * page, page, 0));
    require_ok(sluice_mr_deregister(mr));
    munmap(pages, 4 * page);
    /* A file that may be read only, shared. */
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    uint8_t *file = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
    require(fd >= 0 && file != MAP_FAILED, "%s", strerror(errno));
    require_null(sluice_mr_register(pd, file, page, ACCESS_ALL), EFAULT, "read-only");
    munmap(file, page);
    close(fd);
    sides_close(&sides);
}

/* Found by the library itself, before any device is asked. */
TEST(wrong_dmabuf)
{
    struct sides sides;
    sides_open(&sides);
    struct sluice_pd *pd = sides.pds[0];
    uint64_t page = page_bytes();
    int fd = memfd_create("test", MFD_CLOEXEC);
    require(fd >= 0 && ftruncate(fd, (off_t)(4 * page)) == 0, "%s", strerror(errno));
    require_null(sluice_mr_register_dmabuf(NULL, fd, 0, page, 0, 0), EINVAL, "protection domain");
    require_null(sluice_mr_register_dmabuf(pd, fd, 0, 0, 0, 0), EINVAL, "length");
    require_null(sluice_mr_register_dmabuf(pd, fd, UINT64_MAX - 9, 20, UINT64_MAX - 9, 0), EINVAL,
                 "offset wrap");
    require_null(sluice_mr_register_dmabuf(pd, fd, 0 - page, page, 0, 0), EINVAL, "offset wrap");
    require_null(sluice_mr_register_dmabuf(pd, fd, 0, page + 1, 0 - page, 0), EINVAL, "iova wrap");
    require_null(sluice_mr_register_dmabuf(pd, fd, 0, page, 1, 0), EINVAL, "iova offset page");
    require_null(sluice_mr_register_dmabuf(pd, fd, 8, page, page, 0), EINVAL, "iova offset page");
    require_null(sluice_mr_register_dmabuf(pd, -1, 0, page, 0, 0), EBADF, "-1");
    int gone = dup(fd);
    close(gone);
    require_null(sluice_mr_register_dmabuf(pd, gone, 0, page, 0, 0), EBADF, "not open");
    require_null(sluice_mr_register_dmabuf(pd, fd, 0, page, 0, SLUICE_ACCESS_REMOTE_WRITE), EINVAL,
                 "LOCAL_WRITE");
    require_null(sluice_mr_register_dmabuf(pd, fd, 0, page, 0, SLUICE_MR_HUGE_PAGES), EINVAL,
                 "HUGE_PAGES");
    close(fd);
    sides_close(&sides);
}

/*
 * A file that can be mapped is not a dmabuf; a device that registers none, such as rxe, may return
 * that error instead.
 */
TEST(a_file_is_no_dmabuf)
{
    struct sides sides;
    sides_open(&sides);
    int fd = memfd_create("test", MFD_CLOEXEC);
    require(fd >= 0 && ftruncate(fd, 65536) == 0, "%s", strerror(errno));
    /* An iova that ends with the address space does not wrap. */
    for (int i = 0; i < 2; i++) {
        uint64_t iova = i == 0 ? 0x7000 : 0 - (uint64_t)8192;
        errno = 0;
        struct sluice_mr *mr =
            sluice_mr_register_dmabuf(sides.pds[0], fd, 4096, 8192, iova, ACCESS_ALL);
        int error = errno;
        require(!mr, "a memfd was registered as a dmabuf");
        require(error == EINVAL || (error == EOPNOTSUPP && !device_is_soft()), "%s: %s",
                strerror(error), sluice_last_error());
        check_text(__FILE__, __LINE__, "sluice_mr_register_dmabuf", "dmabuf");
        if (!device_is_soft()) {
            check_text(__FILE__, __LINE__, "sluice_mr_register_dmabuf", test_device());
        }
    }
    close(fd);
    sides_close(&sides);
}

/* Resources of a process that a region could leave behind. */
struct have {
    int fds;
    long mappings;
    long pinned; /* KiB; -1: the kernel does not report it */
    size_t heap; /* bytes; 0 under a sanitizer */
};

static struct have have(void)
{
    struct have now = {.fds = count_fds()};
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "re");
    require(maps, "%s", strerror(errno));
    while (fgets(line, sizeof(line), maps)) {
        /* The heap, after a fork, may grow by another mapping. */
        now.mappings += strstr(line, "[heap]") == NULL;
    }
    fclose(maps);
    now.pinned = read_number("/proc/self/status", "VmPin:");
    now.heap = heap_bytes();
    return now;
}

static void one_cycle(struct sluice_pd *pd, uint8_t *bytes, size_t length, int i)
{
    struct sluice_mr *own = sluice_mr_register(pd, bytes, length, ACCESS_ALL);
    struct sluice_mr *allocated = sluice_mr_alloc(pd, length + (size_t)i, ACCESS_ALL);
    struct sluice_mr *huge =
        i % 50 == 0 ? sluice_mr_alloc(pd, 3 * MIB, ACCESS_ALL | SLUICE_MR_HUGE_PAGES) : NULL;
    require(own && allocated && (huge || i % 50 != 0), "cycle %d: %s", i, sluice_last_error());
    require_ok(sluice_mr_deregister(own));
    require_ok(sluice_mr_deregister(allocated));
    require_ok(sluice_mr_deregister(huge));
    /* Failures leave nothing behind either. */
    require(!sluice_mr_register(pd, (void *)(uintptr_t)page_bytes(), 1, 0), "page 1 is mapped");
    require(!sluice_mr_alloc(pd, (size_t)1 << 60, SLUICE_MR_HUGE_PAGES), "2^60 bytes");
    require(!sluice_mr_register_dmabuf(pd, 0, 1, 1, 0, 0), "an iova that does not fit");
}

TEST(a_thousand_cycles_leave_nothing)
{
    struct sides sides;
    size_t length = 3 * page_bytes();
    uint8_t *bytes = malloc(length);
    sides_open(&sides);
    require(bytes, "%zu bytes", length);
    for (int i = 0; i < 20; i++) {
        one_cycle(sides.pds[0], bytes, length, i);
    }
    struct have before = have();
    for (int i = 0; i < 1000; i++) {
        one_cycle(sides.pds[0], bytes, length, i);
    }
    struct have after = have();
    require(after.fds == before.fds, "%d fds, were %d", after.fds, before.fds);
    /* The allocator may map some for itself, that of a sanitizer more. */
    require(after.mappings < before.mappings + (before.heap ? 10 : 500), "%ld mappings, were %ld",
            after.mappings, before.mappings);
    require(after.pinned == before.pinned, "%ld KiB are pinned, were %ld", after.pinned,
            before.pinned);
    /* A leak of 8 bytes in each cycle would show. */
    require(after.heap < before.heap + 8000, "%zu bytes of heap, were %zu", after.heap,
            before.heap);
    free(bytes);
    sides_close(&sides);
}

/* Bytes that the kernel holds for the anonymous files of this process. */
static size_t bytes_of_memfds(void)
{
    size_t bytes = 0;
    for (int fd = 0; fd < 1024; fd++) {
        char path[64];
        char name[64] = "";
        struct stat status;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, name, sizeof(name) - 1) > 0 && strncmp(name, "/memfd:", 7) == 0 &&
            fstat(fd, &status) == 0) {
            bytes += (size_t)status.st_blocks * 512;
        }
    }
    return bytes;
}

static size_t resident_bytes(void *memory, size_t length)
{
    static unsigned char there[5 * MIB / 4096];
    size_t bytes = 0;
    require(mincore(memory, length, there) == 0, "%s", strerror(errno));
    for (size_t page = 0; page < length / page_bytes(); page++) {
        bytes += (there[page] & 1) != 0 ? page_bytes() : 0;
    }
    return bytes;
}

/* Allocated memory is there before it is accessed. */
TEST(allocated_memory_is_there)
{
    static const uint32_t access[] = {0, SLUICE_MR_HUGE_PAGES};
    struct sides sides;
    sides_open(&sides);
    /* The pretend device pins no memory. */
    for (size_t i = 0; i < COUNT(access) && !device_is_pretend(); i++) {
        struct sluice_mr *mr = alloc(sides.pds[0], 5 * MIB, access[i]);
        size_t bytes =
            device_is_soft() ? bytes_of_memfds() : resident_bytes(sluice_mr_addr(mr), 5 * MIB);
        require(bytes >= 5 * MIB, "%zu bytes", bytes);
        require_ok(sluice_mr_deregister(mr));
    }
    sides_close(&sides);
}

/* A larger allocation than possible is refused, and kills no process. */
TEST(more_memory_than_there_is)
{
    static const uint32_t access[] = {0, SLUICE_MR_HUGE_PAGES};
    struct sides sides;
    sides_open(&sides);
    size_t all = (size_t)(read_number("/proc/meminfo", "MemTotal:") +
                          read_number("/proc/meminfo", "SwapTotal:")) *
                 1024;
    for (size_t i = 0; i < COUNT(access); i++) {
        require_null(sluice_mr_alloc(sides.pds[0], (size_t)1 << 44, access[i]), ENOMEM,
                     device_is_soft() ? "17592186044416 bytes: bytes are" : "17592186044416 bytes");
        /* The driver of a device may ask the kernel for all memory, with its consequences. */
        if (device_is_soft()) {
            require_null(sluice_mr_alloc(sides.pds[0], all, access[i]), ENOMEM, "bytes are");
        }
        require_ok(sluice_mr_deregister(alloc(sides.pds[0], MIB, access[i])));
    }
    sides_close(&sides);
}

/* Memory of soft is a file to the kernel: a limit on those must not kill the process. */
TEST(limit_on_files)
{
    struct rlimit before;
    struct sides sides;
    sides_open(&sides);
    require(getrlimit(RLIMIT_FSIZE, &before) == 0, "%s", strerror(errno));
    struct rlimit limit = {.rlim_cur = MIB, .rlim_max = before.rlim_max};
    require(setrlimit(RLIMIT_FSIZE, &limit) == 0, "%s", strerror(errno));
    if (device_is_soft()) {
        require_null(sluice_mr_alloc(sides.pds[0], MIB + 1, ACCESS_ALL), ENOMEM,
                     "1048577 ulimit -f");
    }
    require_ok(sluice_mr_deregister(alloc(sides.pds[0], MIB, ACCESS_ALL)));
    require(setrlimit(RLIMIT_FSIZE, &before) == 0, "%s", strerror(errno));
    sides_close(&sides);
}

#define LOCKABLE ((rlim_t)64 * 1024)

/*
 * Registers more than may be locked, as an unprivileged user, and then as much as may be. The last
 * test, as without Check's fork it drops the rights for all that follow.
 */
TEST(limit_on_locked_memory)
{
    struct rlimit limit = {.rlim_cur = LOCKABLE, .rlim_max = LOCKABLE};
    struct sides sides;
    require(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "%s", strerror(errno));
    if (geteuid() == 0) {
        require(setresuid(65534, 65534, 65534) == 0, "%s", strerror(errno));
    }
    sides_open(&sides);
    uint8_t *bytes = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(bytes != MAP_FAILED, "%s", strerror(errno));
    for (int i = 0; i < 3; i++) {
        if (device_is_soft()) {
            /* This region locks no memory. */
            require_ok(sluice_mr_deregister(alloc(sides.pds[0], MIB, ACCESS_ALL)));
        } else {
            require_null(sluice_mr_register(sides.pds[0], bytes, MIB, ACCESS_ALL), ENOMEM,
                         "locked memory ulimit -l 64 KiB");
            require_null(sluice_mr_alloc(sides.pds[0], MIB, ACCESS_ALL), ENOMEM,
                         "locked memory ulimit -l 64 KiB");
            require_null(sluice_mr_alloc(sides.pds[0], MIB, SLUICE_MR_HUGE_PAGES), ENOMEM,
                         "locked memory ulimit -l 64 KiB");
        }
        /* A refused region does not count: nearly all of the limit is left. */
        struct sluice_mr *mr = made(sluice_mr_register(sides.pds[0], bytes, 48 * 1024, ACCESS_ALL));
        require_ok(sluice_mr_deregister(mr));
    }
    munmap(bytes, MIB);
    sides_close(&sides);
}

int main(void)
{
    return RUN_GROUPS("memory", {"memory", WIRE_SELF, 60});
}
