/* SPDX-License-Identifier: MIT */
/* The files, environment, clock and addresses that a process finds. */
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/membarrier.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "launch.h"

/* Seconds between the clock of the day and that of the host. */
#define EPOCH INT64_C(1790000000)
#define COARSE_TICK INT64_C(4000000)

/* Fills in the text of a file below /proc; false: there is no such file. */
static bool fill_file(const char *path, char *text, size_t room)
{
    const struct sim_process *self = sim_task->process, *process = self;
    int pid = 0, count;
    if (self->host->hides_proc) {
        return false;
    }
    if (strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) {
        snprintf(text, room, "00000000-0000-4000-8000-%012x\n", self->host->index + 1);
        return true;
    }
    if (strcmp(path, "/proc/self/timens_offsets") == 0) {
        text[0] = '\0';
        return true;
    }
    if (strcmp(path, "/proc/self/stat") != 0) {
        count = 0;
        if (sscanf(path, "/proc/%d/stat%n", &pid, &count) != 1 || path[count] != '\0' ||
            count == 0) {
            return false;
        }
        process = sim_process_find(self->host, pid);
    }
    if (process == NULL) {
        return false;
    }
    count = snprintf(text, room, "%d (rank) S", process->pid);
    for (int field = 4; field <= 52; field++) {
        count += snprintf(text + count, room - (size_t)count, " %lld",
                          field == 22 ? (long long)(process->began / 10000000 + process->pid) : 0);
    }
    return true;
}

/* Opens the file of a descriptor once more, perhaps with fewer rights. */
static int open_again(const char *number, int flags)
{
    const struct sim_object *object = sim_descriptor((int)strtol(number, NULL, 10));
    char path[64];
    int real;
    if (object == NULL || object->real < 0) {
        return sim_error(ENOENT);
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", object->real);
    real = open(path, flags | O_CLOEXEC);
    return real < 0 ? sim_error(errno) : sim_file_make_again(object, real);
}

SYS(int, open, const char *path, int flags, ...)
{
    static const char own[] = "/proc/self/fd/";
    char text[1024];
    int real;
    sim_tick(1500);
    if (strcmp(path, "/proc/self/maps") == 0 && !sim_task->process->host->hides_proc) {
        return sim_file_make(open(path, O_RDONLY | O_CLOEXEC));
    }
    if (strncmp(path, own, sizeof own - 1) == 0 && !sim_task->process->host->hides_proc) {
        return open_again(path + sizeof own - 1, flags);
    }
    if (!sim_launch_file(path, text, sizeof text) && !fill_file(path, text, sizeof text)) {
        return sim_error(ENOENT);
    }
    if (sim_fault_is_due("open")) {
        return sim_error(EMFILE);
    }
    real = memfd_create(path, MFD_CLOEXEC);
    sim_require(real >= 0 && fchmod(real, 0600) == 0 &&
                    write(real, text, strlen(text)) == (ssize_t)strlen(text) &&
                    lseek(real, 0, SEEK_SET) == 0,
                "no file for the simulation");
    return sim_file_make(real);
}

SYS(int, stat, const char *path, struct stat *status)
{
    static const char *const namespaces[] = {"net", "user", "pid", "time", "time_for_children"};
    sim_call();
    memset(status, 0, sizeof *status);
    for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++) {
        char name[64];
        if (sim_task->process->host->hides_proc) {
            break;
        }
        snprintf(name, sizeof name, "/proc/self/ns/%s", namespaces[i]);
        if (strcmp(path, name) == 0) {
            /* Hosts have namespaces of their own, though the numbers may be the same. */
            status->st_ino = 4026531840 + (i < 3 ? i : 3);
            return 0;
        }
    }
    return sim_error(ENOENT);
}

SYS(int, access, const char *path, int mode)
{
    sim_call();
    return sim_error(ENOENT);
}

SYS(FILE *, fdopen, int fd, const char *mode)
{
    struct sim_object *object = sim_descriptor(fd);
    FILE *file;
    if (object == NULL || object->real < 0) {
        return NULL;
    }
    file = fdopen(dup(object->real), mode);
    sim_require(file != NULL, "no file for the simulation");
    sys_close(fd);
    return file;
}

SYS(DIR *, fdopendir, int fd)
{
    sim_fail("fdopendir(3) is not simulated: open(2) finds no folder");
}

SYS(char *, getenv, const char *name)
{
    size_t length = strlen(name);
    for (const char *const *at = sim_task->process->environment; at != NULL && *at != NULL; at++) {
        if (strncmp(*at, name, length) == 0 && (*at)[length] == '=') {
            return (char *)(uintptr_t)(*at + length + 1);
        }
    }
    return NULL;
}

SYS(pid_t, getpid, void)
{
    return sim_task->process->pid;
}

SYS(uid_t, geteuid, void)
{
    return 1000;
}

SYS(int, gethostname, char *name, size_t room)
{
    snprintf(name, room, "host%u", sim_task->process->host->index);
    return 0;
}

SYS(int, uname, struct utsname *name)
{
    memset(name, 0, sizeof *name);
    strcpy(name->sysname, "Linux");
    strcpy(name->release, "6.1.0");
    sys_gethostname(name->nodename, sizeof name->nodename);
    return 0;
}

SYS(int, getrlimit, int resource, struct rlimit *limit)
{
    rlim_t value =
        resource == RLIMIT_NOFILE ? (rlim_t)sim_task->process->descriptor_limit : RLIM_INFINITY;
    *limit = (struct rlimit){value, value};
    return 0;
}

SYS(int, setrlimit, int resource, const struct rlimit *limit)
{
    sim_call();
    if (resource == RLIMIT_NOFILE) {
        sim_task->process->descriptor_limit = (int)limit->rlim_cur;
    }
    return 0;
}

SYS(int, sched_getaffinity, pid_t pid, size_t bytes, cpu_set_t *set)
{
    memset(set, 0, bytes);
    CPU_SET_S(0, bytes, set);
    CPU_SET_S(1, bytes, set);
    return (int)bytes;
}

SYS(int, sched_yield, void)
{
    sim_tick(400);
    return 0;
}

SYS(long, sysconf, int name)
{
    sim_call();
    return sysconf(name);
}

/* A simulated program is a module of the simulator: no kernel has run its file. */
SYS(unsigned long, getauxval, unsigned long type)
{
    return 0;
}

SYS(int, prctl, int option, ...)
{
    return 0;
}

SYS(long, syscall, long number, ...)
{
    sim_call();
    switch (number) {
    case SYS_membarrier: /* tasks take turns, so their memory is always up to date */
        return 0;
    case SYS_mbind:
        return sim_error(ENOSYS);
    case SYS_close_range:
        return sim_error(ENOSYS);
    default:
        sim_fail("syscall(2) %ld is not simulated", number);
    }
}

SYS(ssize_t, getrandom, void *bytes, size_t count, unsigned flags)
{
    uint8_t *to = bytes;
    sim_call();
    for (size_t i = 0; i < count; i++) {
        to[i] = (uint8_t)sim_random(SIM_SYSTEM);
    }
    return (ssize_t)count;
}

SYS(int, clock_gettime, clockid_t clock, struct timespec *time)
{
    int64_t now;
    sim_tick(25);
    now = sim_task->now;
    if (clock == CLOCK_MONOTONIC_COARSE) {
        now -= now % COARSE_TICK;
    }
    if (clock == CLOCK_REALTIME) {
        now += EPOCH * 1000000000 + sim_task->process->host->clock_ahead;
    }
    *time = (struct timespec){now / 1000000000, now % 1000000000};
    return 0;
}

/* Numbers only: a name server is not simulated, and the host's must not be asked. */
SYS(int, getaddrinfo, const char *name, const char *service, const struct addrinfo *hints,
    struct addrinfo **list)
{
    struct addrinfo wish = hints != NULL ? *hints : (struct addrinfo){.ai_family = AF_UNSPEC};
    sim_tick(20000);
    wish.ai_flags |= AI_NUMERICHOST;
    wish.ai_family = wish.ai_family == AF_UNSPEC ? AF_INET : wish.ai_family;
    return getaddrinfo(name != NULL && strcmp(name, "localhost") == 0 ? "127.0.0.1" : name, service,
                       &wish, list);
}

struct interface {
    struct ifaddrs base; /* the first field */
    struct sockaddr_in address, mask;
};

/* The loopback, the network of hosts, and one where the host is alone. */
SYS(int, getifaddrs, struct ifaddrs **list)
{
    static char names[3][8] = {"lo", "eth0", "eth1"};
    const struct sim_host *host = sim_task->process->host;
    const uint32_t own = sim_host_address(host);
    const uint32_t addresses[] = {INADDR_LOOPBACK, own, UINT32_C(0xac100000) + host->index + 1};
    struct interface *interfaces = sim_alloc(3, sizeof *interfaces);
    sim_tick(20000);
    for (int i = 0; i < 2 + host->has_isle; i++) {
        struct interface *at = &interfaces[i];
        at->base.ifa_name = names[i];
        at->base.ifa_flags = IFF_UP | IFF_RUNNING | (i == 0 ? IFF_LOOPBACK : 0);
        at->base.ifa_addr = (struct sockaddr *)&at->address;
        at->base.ifa_netmask = (struct sockaddr *)&at->mask;
        at->base.ifa_next = i == 1 + host->has_isle ? NULL : &at[1].base;
        at->address.sin_family = at->mask.sin_family = AF_INET;
        at->address.sin_addr.s_addr = htonl(addresses[i]);
        at->mask.sin_addr.s_addr = htonl(0xff000000);
    }
    *list = &interfaces[0].base;
    return 0;
}

SYS(void, freeifaddrs, struct ifaddrs *list)
{
    free(list);
}

SYS(long, strtol, const char *text, char **end, int base)
{
    long value;
    errno = 0;
    value = strtol(text, end, base);
    sim_task->error = errno != 0 ? errno : sim_task->error;
    return value;
}

SYS(unsigned long, strtoul, const char *text, char **end, int base)
{
    unsigned long value;
    errno = 0;
    value = strtoul(text, end, base);
    sim_task->error = errno != 0 ? errno : sim_task->error;
    return value;
}

SYS(unsigned long, strtoull, const char *text, char **end, int base)
{
    return sys_strtoul(text, end, base);
}

SYS(void, abort, void)
{
    sim_fail("the library ends the process by abort(3)");
}

SYS(const char *, dlerror, void)
{
    return "the simulation has no such library";
}
