/* SPDX-License-Identifier: MIT */
/* Mapped memory. It is real, and so are memfds; a process gives it back when it ends. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <ucontext.h>
#include <unistd.h>

#include "calls.h"
#include "sim.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

enum { PAGE = 4096, BLOCK = 512 /* of st_blocks */ };

static sigjmp_buf fault;
static volatile sig_atomic_t copying;

/* Memory whose pages come slowly. */
static struct slow {
    char *from, *to;
    int64_t lasts, until; /* until: 0 before the first access */
} slow[4];

void sim_slow(void *memory, size_t bytes, int64_t lasts)
{
    struct slow *at = slow;
    while (at->from != NULL) {
        at++;
        sim_require(at < slow + 4, "too much slow memory");
    }
    *at = (struct slow){memory, (char *)memory + bytes, lasts, 0};
    sim_require(mprotect(memory, bytes, PROT_NONE) == 0, "slow memory: %s", strerror(errno));
}

/* Waits for slow memory. Returns whether the address is in there. Others have turns meanwhile. */
static bool page_in(const void *address)
{
    struct slow *at = slow;
    sig_atomic_t outer = copying;
    sigjmp_buf outer_fault;
    int error = errno;
    while (at < slow + 4 && ((char *)address < at->from || (char *)address >= at->to)) {
        at++;
    }
    if (at == slow + 4) {
        return false;
    }
    memcpy(outer_fault, fault, sizeof fault);
    copying = 0;
    if (sim_task != NULL) {
        struct slow here = *at;
        at->until = at->until != 0 ? at->until : sim_task->now + at->lasts;
        sim_trace("touches memory at %p, which takes %ld ns", address, (long)at->lasts);
        sim_wait(at->until);
        mprotect(here.from, (size_t)(here.to - here.from), PROT_READ | PROT_WRITE);
    } else {
        /* A device has pinned it. */
        mprotect(at->from, (size_t)(at->to - at->from), PROT_READ | PROT_WRITE);
    }
    *at = (struct slow){.from = NULL};
    memcpy(fault, outer_fault, sizeof fault);
    copying = outer;
    errno = error;
    return true;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    const ucontext_t *at = context;
    long where = at->uc_mcontext.gregs[REG_RIP];
    if (page_in(info->si_addr)) {
        return;
    }
    if (copying) {
        copying = 0;
        siglongjmp(fault, 1);
    }
    signal(number, SIG_DFL);
    if (sim_task != NULL) {
        where -= (long)(uintptr_t)sim_task->process->image.base;
    }
    sim_fail("signal %d at address %p, by the code at %#lx of the module", number, info->si_addr,
             where);
}

void sim_catch_faults(void)
{
    /* A task that waits for a page is on this stack; others that do have their own meanwhile. */
    static char stack[64 * 1024];
    const stack_t alternate = {
        .ss_sp = stack, .ss_size = sizeof stack, .ss_flags = (int)SS_AUTODISARM};
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

bool sim_copy(void *to, const void *from, size_t bytes)
{
    if (sigsetjmp(fault, 0) != 0) {
        return false;
    }
    copying = 1;
    memcpy(to, from, bytes);
    copying = 0;
    return true;
}

static short always_ready(struct sim_object *object)
{
    return POLLIN | POLLOUT;
}

static ssize_t read_real(struct sim_object *object, void *bytes, size_t count)
{
    ssize_t got = read(object->real, bytes, count);
    return got >= 0 ? got : sim_error(errno);
}

/*
 * The bytes that fallocate(2) has allocated from the begin of a file on. The host's file is sparse:
 * thousands of processes touch few of their pages.
 */
struct allocation {
    uint32_t references;
    off_t bytes;
};

/* The only objects with a descriptor of the host. */
struct file {
    struct sim_object base; /* the first field */
    struct allocation *allocation;
};

static void file_free(struct sim_object *object)
{
    struct file *file = (struct file *)object;
    if (--file->allocation->references == 0) {
        free(file->allocation);
    }
    free(file);
}

static const struct sim_class file_class = {"file", always_ready, read_real, NULL, file_free};

static int make_file(int real, struct allocation *allocation)
{
    struct file *file = sim_alloc(1, sizeof *file);
    sim_object_init(&file->base, &file_class);
    file->base.real = real;
    file->allocation = allocation;
    allocation->references++;
    return sim_descriptor_make(&file->base);
}

int sim_file_make(int real)
{
    return make_file(real, sim_alloc(1, sizeof(struct allocation)));
}

int sim_file_make_again(const struct sim_object *object, int real)
{
    return make_file(real, ((const struct file *)object)->allocation);
}

SYS(int, memfd_create, const char *name, unsigned flags)
{
    int real;
    sim_call();
    if (sim_fault_is_due("memfd_create")) {
        return sim_error(ENOMEM);
    }
    real = memfd_create(name, flags);
    sim_require(real >= 0, "no memfd for the simulation: %s", strerror(errno));
    return sim_file_make(real);
}

/* Runs a real call on the descriptor behind a simulated one. */
#define ON_REAL(fd, call)            \
    const struct sim_object *object; \
    int result;                      \
    sim_call();                      \
    object = sim_descriptor(fd);     \
    if (object == NULL) {            \
        return -1;                   \
    }                                \
    if (object->real < 0) {          \
        return sim_error(EINVAL);    \
    }                                \
    result = (int)(call);            \
    return result < 0 ? sim_error(errno) : result

SYS(int, ftruncate, int fd, off_t bytes)
{
    ON_REAL(fd, ftruncate(object->real, bytes));
}

/* Allocates the bytes of a file that follow those that are allocated, or gives some back. */
static int allocate(const struct file *file, int mode, off_t offset, off_t bytes)
{
    struct allocation *allocation = file->allocation;
    struct stat status;
    if (mode != 0 || offset > allocation->bytes) {
        allocation->bytes = allocation->bytes < offset ? allocation->bytes : offset;
        return fallocate(file->base.real, mode, offset, bytes);
    }
    if (fstat(file->base.real, &status) != 0 ||
        (status.st_size < offset + bytes && ftruncate(file->base.real, offset + bytes) != 0)) {
        return -1;
    }
    if (allocation->bytes < offset + bytes) {
        allocation->bytes = offset + bytes;
    }
    return 0;
}

SYS(int, fallocate, int fd, int mode, off_t offset, off_t bytes)
{
    if (sim_fault_is_due("fallocate")) {
        return sim_error(ENOSPC);
    }
    ON_REAL(fd, allocate((const struct file *)object, mode, offset, bytes));
}

/* Files belong to the user of the simulation, and have what was allocated of them. */
static int stat_simulated(const struct file *file, struct stat *status)
{
    blkcnt_t blocks = (file->allocation->bytes + PAGE - 1) / PAGE * (PAGE / BLOCK);
    int result = fstat(file->base.real, status);
    status->st_uid = sys_geteuid();
    status->st_blocks = status->st_blocks > blocks ? status->st_blocks : blocks;
    return result;
}

SYS(int, fstat, int fd, struct stat *status)
{
    ON_REAL(fd, stat_simulated((const struct file *)object, status));
}

SYS(int, fstatfs, int fd, struct statfs *status)
{
    ON_REAL(fd, fstatfs(object->real, status));
}

SYS(off_t, lseek, int fd, off_t offset, int whence)
{
    ON_REAL(fd, lseek(object->real, offset, whence));
}

SYS(int, ioctl, int fd, unsigned long request, ...)
{
    void *argument;
    va_list arguments;
    va_start(arguments, request);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    ON_REAL(fd, ioctl(object->real, request, argument));
}

static void add_map(struct sim_process *process, char *from, size_t bytes)
{
    if (process->map_count == (size_t)process->map_room) {
        process->maps = sim_grow(process->maps, &process->map_room, sizeof *process->maps);
    }
    process->maps[process->map_count++] = (struct sim_map){from, bytes};
}

/* Forgets a range, which may be a part of what was mapped. */
static void remove_map(struct sim_process *process, char *from, size_t bytes)
{
    char *to = from + bytes;
    for (size_t i = process->map_count; i-- > 0;) {
        struct sim_map map = process->maps[i];
        char *end = map.from + map.bytes;
        if (end <= from || map.from >= to) {
            continue;
        }
        process->maps[i] = process->maps[--process->map_count];
        if (map.from < from) {
            add_map(process, map.from, (size_t)(from - map.from));
        }
        if (end > to) {
            add_map(process, to, (size_t)(end - to));
        }
    }
}

#define MAPS_BYTES (UINT64_C(1) << 42)

static char *maps, *maps_next;

void sim_maps_begin(void)
{
    if (maps == NULL) {
        maps = sim_reserve(SIM_MAPS, MAPS_BYTES);
    }
    maps_next = maps;
}

/* Takes addresses that no mapping of this run has had. */
static void *take_addresses(size_t bytes)
{
    char *taken = maps_next;
    sim_require(bytes < MAPS_BYTES - (size_t)(taken - maps), "no addresses for mappings");
    maps_next += bytes;
    return taken;
}

/* Returns addresses, so that a later mapping of the host does not take them. */
static int unmap(void *address, size_t bytes)
{
    void *map = mmap(address, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return map == address ? 0 : -1;
}

SYS(void *, mmap, void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    const struct sim_object *object = NULL;
    size_t whole = (bytes + 4095) & ~(size_t)4095;
    void *map;
    sim_tick(1000);
    if (sim_fault_is_due("mmap")) {
        sim_error(ENOMEM);
        return MAP_FAILED;
    }
    if ((flags & MAP_ANONYMOUS) == 0) {
        object = sim_descriptor(fd);
        if (object == NULL) {
            return MAP_FAILED;
        }
    }
    if ((flags & MAP_FIXED) == 0) {
        address = take_addresses(whole);
    }
    /* Pages of files are the host's when they are touched. */
    map = mmap(address, bytes, protection, (flags & ~MAP_POPULATE) | MAP_FIXED,
               object != NULL ? object->real : -1, offset);
    if (map == MAP_FAILED) {
        sim_error(errno);
        return map;
    }
    remove_map(sim_task->process, map, whole);
    add_map(sim_task->process, map, whole);
    return map;
}

SYS(int, munmap, void *address, size_t bytes)
{
    sim_tick(1000);
    remove_map(sim_task->process, address, (bytes + 4095) & ~(size_t)4095);
    return unmap(address, bytes) == 0 ? 0 : sim_error(errno);
}

SYS(int, mprotect, void *address, size_t bytes, int access)
{
    sim_call();
    return mprotect(address, bytes, access) == 0 ? 0 : sim_error(errno);
}

SYS(int, madvise, void *address, size_t bytes, int advice)
{
    sim_call();
    /* The simulator never forks. */
    if (advice == MADV_DONTFORK || advice == MADV_WIPEONFORK) {
        return 0;
    }
    return madvise(address, bytes, advice) == 0 ? 0 : sim_error(errno);
}

SYS(int, msync, void *address, size_t bytes, int flags)
{
    sim_call();
    return msync(address, bytes, flags) == 0 ? 0 : sim_error(errno);
}

SYS(ssize_t, process_vm_readv, pid_t pid, const struct iovec *to, unsigned long to_count,
    const struct iovec *from, unsigned long from_count, unsigned long flags)
{
    ssize_t got;
    sim_tick(1500);
    if (sim_fault_is_due("readv")) {
        return sim_error(ENOMEM);
    }
    if (sim_process_find(sim_task->process->host, pid) == NULL) {
        return sim_error(ESRCH);
    }
    for (unsigned long i = 0; i < from_count; i++) {
        for (int j = 0; j < 4; j++) {
            const char *start = from[i].iov_base;
            if (start < slow[j].to && start + from[i].iov_len > slow[j].from) {
                page_in(slow[j].from);
            }
        }
    }
    got = process_vm_readv(getpid(), to, to_count, from, from_count, flags);
    return got < 0 ? sim_error(errno) : got;
}

void sim_maps_free(struct sim_process *process)
{
    for (size_t i = 0; i < process->map_count; i++) {
        unmap(process->maps[i].from, process->maps[i].bytes);
    }
    process->map_count = 0;
}
