/* SPDX-License-Identifier: MIT */
#include "exporters.h"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/magic.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../../support/fair.h"

#define MOST 8
#define HEAP "/dev/dma_heap/system"

/* A mapping of a dmabuf by the library. */
struct mapping {
    void *addr;
    size_t length;
};

/* A memfd in the place of a dmabuf. */
struct pretended {
    bool used;
    dev_t device;
    ino_t inode;
    struct pretence pretence;
    int readers; /* between SYNC_START and SYNC_END */
    int writers; /* of these */
    struct mapping mappings[MOST];
};

static struct pretended all[MOST];
/* Protects the mappings: threads of the library map dmabufs as well. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int __real_ioctl(int fd, unsigned long request, void *argument);
int __real_fstatfs(int fd, struct statfs *of);
off_t __real_lseek(int fd, off_t offset, int whence);
void *__real_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t length);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_fstatfs(int fd, struct statfs *of);
off_t __wrap_lseek(int fd, off_t offset, int whence);
void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *addr, size_t length);

/* Must be called with the lock. Returns NULL if the descriptor is not a dmabuf. */
static struct pretended *find(int fd)
{
    struct stat of;
    if (fd < 0 || fstat(fd, &of) != 0) {
        return NULL;
    }
    for (int i = 0; i < MOST; i++) {
        if (all[i].used && all[i].device == of.st_dev && all[i].inode == of.st_ino) {
            return &all[i];
        }
    }
    return NULL;
}

static void protect(const struct pretended *pretended)
{
    int prot = pretended->readers == 0   ? PROT_NONE
               : pretended->writers == 0 ? PROT_READ
                                         : PROT_READ | PROT_WRITE;
    for (int i = 0; i < MOST; i++) {
        const struct mapping *mapping = &pretended->mappings[i];
        require(mapping->addr == NULL || mprotect(mapping->addr, mapping->length, prot) == 0, "%s",
                strerror(errno));
    }
}

static bool is_to_fail(struct pretence *pretence, bool end)
{
    if (pretence->errors == 0 || (pretence->ends_only && !end)) {
        return false;
    }
    pretence->errors -= pretence->errors > 0;
    return true;
}

static int sync_pretended(struct pretended *pretended, uint64_t flags)
{
    struct pretence *pretence = &pretended->pretence;
    bool end = (flags & DMA_BUF_SYNC_END) != 0;
    bool write = (flags & DMA_BUF_SYNC_WRITE) != 0;
    require((flags & DMA_BUF_SYNC_RW) != 0 && (flags & ~DMA_BUF_SYNC_VALID_FLAGS_MASK) == 0,
            "flags %#llx", (unsigned long long)flags);
    bool fails = is_to_fail(pretence, end);
    bool again = pretence->error == EINTR || pretence->error == EAGAIN;
    /* An end that fails ends the access all the same. */
    if (fails && (again || !end)) {
        errno = pretence->error;
        return -1;
    }
    pretended->readers += end ? -1 : 1;
    pretended->writers += write ? (end ? -1 : 1) : 0;
    require(pretended->readers >= 0 && pretended->writers >= 0, "an end without a start");
    pretence->starts += !end;
    pretence->ends += end;
    pretence->writes += !end && write;
    protect(pretended);
    errno = pretence->error;
    return fails ? -1 : 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    struct pretended *pretended = NULL;
    int result = 0;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    if (request == DMA_BUF_IOCTL_SYNC) {
        pretended = find(fd);
    }
    if (pretended != NULL) {
        result = sync_pretended(pretended, ((const struct dma_buf_sync *)argument)->flags);
    }
    pthread_mutex_unlock(&lock);
    return pretended != NULL ? result : __real_ioctl(fd, request, argument);
}

int __wrap_fstatfs(int fd, struct statfs *of)
{
    int result = __real_fstatfs(fd, of);
    pthread_mutex_lock(&lock);
    if (find(fd) != NULL) {
        of->f_type = DMA_BUF_MAGIC;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

off_t __wrap_lseek(int fd, off_t offset, int whence)
{
    pthread_mutex_lock(&lock);
    const struct pretended *pretended = find(fd);
    off_t size = pretended != NULL ? (off_t)pretended->pretence.size : 0;
    pthread_mutex_unlock(&lock);
    return size != 0 && whence == SEEK_END ? size : __real_lseek(fd, offset, whence);
}

static void add_mapping(struct pretended *pretended, void *addr, size_t length)
{
    int i = 0;
    while (i < MOST && pretended->mappings[i].addr != NULL) {
        i++;
    }
    require(i < MOST, "more than %d mappings", MOST);
    pretended->mappings[i] = (struct mapping){addr, length};
    pretended->pretence.mappings++;
}

void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
    pthread_mutex_lock(&lock);
    struct pretended *pretended = find(fd);
    void *map = MAP_FAILED;
    if (pretended != NULL && pretended->pretence.map_error != 0) {
        errno = pretended->pretence.map_error;
    } else {
        map = __real_mmap(addr, length, prot, flags, fd, offset);
    }
    if (pretended != NULL && map != MAP_FAILED) {
        add_mapping(pretended, map, length);
    }
    pthread_mutex_unlock(&lock);
    return map;
}

int __wrap_munmap(void *addr, size_t length)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST * MOST; i++) {
        struct pretended *pretended = &all[i / MOST];
        struct mapping *mapping = &pretended->mappings[i % MOST];
        if (pretended->used && mapping->addr == addr) {
            require(mapping->length == length, "a part of a mapping is unmapped");
            mapping->addr = NULL;
            pretended->pretence.mappings--;
        }
    }
    int result = __real_munmap(addr, length);
    pthread_mutex_unlock(&lock);
    return result;
}

const char *exporter_name(enum exporter exporter)
{
    static const char *const names[] = {"a pretended exporter", "udmabuf", "dma_heap"};
    return names[exporter];
}

bool exporter_is_there(enum exporter exporter)
{
    static const char *const paths[] = {NULL, "/dev/udmabuf", HEAP};
    const char *must = getenv("SLUICE_TEST_DMABUF");
    if (exporter == EXPORTER_PRETENDED) {
        return device_is_soft();
    }
    if (access(paths[exporter], R_OK | W_OK) == 0) {
        return true;
    }
    require(must == NULL || strcmp(must, "all") != 0, "%s: %s", paths[exporter], strerror(errno));
    return false;
}

static int make_memfd(size_t length)
{
    int fd = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    require(fd >= 0 && ftruncate(fd, (off_t)length) == 0, "%s", strerror(errno));
    return fd;
}

/* Makes our own mapping, of the dmabuf or of the memory behind it. */
static void view(struct dmabuf *dmabuf, int fd, int prot)
{
    dmabuf->bytes = __real_mmap(NULL, dmabuf->length, prot, MAP_SHARED, fd, 0);
    require(dmabuf->bytes != MAP_FAILED, "%s", strerror(errno));
}

static void make_pretended(struct dmabuf *dmabuf)
{
    struct stat of;
    int i = 0;
    dmabuf->fd = make_memfd(dmabuf->length);
    view(dmabuf, dmabuf->fd, PROT_READ | PROT_WRITE);
    require(fstat(dmabuf->fd, &of) == 0, "%s", strerror(errno));
    pthread_mutex_lock(&lock);
    while (i < MOST && all[i].used) {
        i++;
    }
    require(i < MOST, "more than %d dmabufs", MOST);
    all[i] = (struct pretended){.used = true, .device = of.st_dev, .inode = of.st_ino};
    dmabuf->pretence = &all[i].pretence;
    pthread_mutex_unlock(&lock);
}

static void make_udmabuf(struct dmabuf *dmabuf)
{
    int driver = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    struct udmabuf_create create = {.flags = UDMABUF_FLAGS_CLOEXEC, .size = dmabuf->length};
    int memfd = make_memfd(dmabuf->length);
    create.memfd = (unsigned)memfd;
    require(fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK) == 0, "%s", strerror(errno));
    view(dmabuf, memfd, PROT_READ | PROT_WRITE);
    dmabuf->fd = __real_ioctl(driver, UDMABUF_CREATE, &create);
    require(driver >= 0 && dmabuf->fd >= 0, "%s", strerror(errno));
    close(memfd);
    close(driver);
}

static void allocate(struct dmabuf *dmabuf, unsigned flags, int prot)
{
    int driver = open(HEAP, O_RDONLY | O_CLOEXEC);
    struct dma_heap_allocation_data data = {.len = dmabuf->length, .fd_flags = flags | O_CLOEXEC};
    require(driver >= 0 && __real_ioctl(driver, DMA_HEAP_IOCTL_ALLOC, &data) == 0, "%s",
            strerror(errno));
    close(driver);
    dmabuf->fd = (int)data.fd;
    view(dmabuf, dmabuf->fd, prot);
}

static void make_heap(struct dmabuf *dmabuf)
{
    allocate(dmabuf, O_RDWR, PROT_READ | PROT_WRITE);
}

static void begin_life(struct dmabuf *dmabuf, enum exporter exporter, size_t length)
{
    memset(dmabuf, 0, sizeof(*dmabuf));
    dmabuf->exporter = exporter;
    dmabuf->length = length;
}

/* Keeps a descriptor that stays when the program closes its own. */
static void keep_view(struct dmabuf *dmabuf)
{
    dmabuf->view_fd = fcntl(dmabuf->fd, F_DUPFD_CLOEXEC, 3);
    require(dmabuf->view_fd >= 0, "%s", strerror(errno));
}

void dmabuf_open(struct dmabuf *dmabuf, enum exporter exporter, size_t length, uint64_t pattern)
{
    static void (*const make[])(struct dmabuf * dmabuf) = {make_pretended, make_udmabuf, make_heap};
    begin_life(dmabuf, exporter, length);
    make[exporter](dmabuf);
    keep_view(dmabuf);
    dmabuf_begin(dmabuf);
    pattern_fill(dmabuf->bytes, length, pattern);
    dmabuf_end(dmabuf);
}

void dmabuf_open_read_only(struct dmabuf *dmabuf, enum exporter exporter, size_t length)
{
    char path[64];
    if (exporter == EXPORTER_HEAP) {
        begin_life(dmabuf, exporter, length);
        allocate(dmabuf, O_RDONLY, PROT_READ);
        keep_view(dmabuf);
        return;
    }
    dmabuf_open(dmabuf, exporter, length, 0);
    dmabuf_close_fd(dmabuf);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", dmabuf->view_fd);
    dmabuf->fd = open(path, O_RDONLY | O_CLOEXEC);
    require(dmabuf->fd >= 0, "%s", strerror(errno));
}

void dmabuf_close_fd(struct dmabuf *dmabuf)
{
    require(close(dmabuf->fd) == 0, "%s", strerror(errno));
    dmabuf->fd = -1;
}

struct pretence dmabuf_told(const struct dmabuf *dmabuf)
{
    int64_t until = fair_now() + DEADLINE;
    for (;;) {
        pthread_mutex_lock(&lock);
        struct pretence told = *dmabuf->pretence;
        pthread_mutex_unlock(&lock);
        if (told.starts == told.ends) {
            return told;
        }
        require(fair_now() < until, "%u starts and %u ends", told.starts, told.ends);
        sched_yield();
    }
}

/* Our own view of a pretended dmabuf is plain memory, and needs no sync. */
static void sync_view(const struct dmabuf *dmabuf, uint64_t edge)
{
    struct dma_buf_sync sync = {.flags = edge | DMA_BUF_SYNC_RW};
    int result = 0;
    if (dmabuf->pretence == NULL) {
        do {
            result = __real_ioctl(dmabuf->view_fd, DMA_BUF_IOCTL_SYNC, &sync);
        } while (result != 0 && (errno == EINTR || errno == EAGAIN));
    }
    require(result == 0, "%s: %s", exporter_name(dmabuf->exporter), strerror(errno));
}

void dmabuf_begin(const struct dmabuf *dmabuf)
{
    sync_view(dmabuf, DMA_BUF_SYNC_START);
}

void dmabuf_end(const struct dmabuf *dmabuf)
{
    sync_view(dmabuf, DMA_BUF_SYNC_END);
}

void dmabuf_close(struct dmabuf *dmabuf)
{
    __real_munmap(dmabuf->bytes, dmabuf->length);
    if (dmabuf->fd >= 0) {
        dmabuf_close_fd(dmabuf);
    }
    if (dmabuf->pretence != NULL) {
        pthread_mutex_lock(&lock);
        struct pretended *pretended = find(dmabuf->view_fd);
        require(pretended != NULL, "it is known no more");
        require(pretended->pretence.mappings == 0 && pretended->readers == 0,
                "%u mappings, %d touch it", pretended->pretence.mappings, pretended->readers);
        pretended->used = false;
        pthread_mutex_unlock(&lock);
    }
    close(dmabuf->view_fd);
    dmabuf->bytes = NULL;
}
