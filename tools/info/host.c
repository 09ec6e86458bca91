/* SPDX-License-Identifier: MIT */
/* Finds the limits of the host and of this process that matter to the library. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "info.h"

#define CAP_IPC_LOCK_BIT 14
#define MOST_CPUS 8192

static struct limit find_limit(int which)
{
    struct limit limit = {INFO_NO_LIMIT, INFO_NO_LIMIT};
    struct rlimit found;

    if (getrlimit(which, &found) != 0)
        return limit;
    if (found.rlim_cur != RLIM_INFINITY)
        limit.soft = found.rlim_cur;
    if (found.rlim_max != RLIM_INFINITY)
        limit.hard = found.rlim_max;
    return limit;
}

/* Reads the effective capabilities from one hexadecimal number, "CapEff:\t000001ffffffffff". */
static bool has_capability(int bit)
{
    char text[4096];
    const char *line;

    file_text(text, sizeof text, "/proc/self/status");
    line = strstr(text, "\nCapEff:");
    return line != NULL && (strtoull(line + 8, NULL, 16) >> bit & 1) != 0;
}

/* Returns whether this is the initial user namespace, where the kernel checks CAP_IPC_LOCK. */
static bool is_first_namespace(void)
{
    unsigned long first = 1, length = 0;
    char text[200];

    return file_text(text, sizeof text, "/proc/self/uid_map") &&
           sscanf(text, "%lu %*u %lu", &first, &length) == 2 && first == 0 && length == UINT32_MAX;
}

static void find_kernel(struct host *host)
{
    struct utsname name;

    if (uname(&name) == 0)
        snprintf(host->kernel, sizeof host->kernel, "%.40s %.80s %.30s", name.sysname, name.release,
                 name.machine);
}

static void find_cpus(struct host *host)
{
    cpu_set_t cpus[MOST_CPUS / CPU_SETSIZE];
    size_t used = 0;

    if (sched_getaffinity(0, sizeof cpus, cpus) < 0)
        return;
    for (int first = 0; first < MOST_CPUS && used < sizeof host->cpus; first++) {
        int last = first;

        if (!CPU_ISSET_S(first, sizeof cpus, cpus))
            continue;
        while (last + 1 < MOST_CPUS && CPU_ISSET_S(last + 1, sizeof cpus, cpus))
            last++;
        used +=
            (size_t)snprintf(host->cpus + used, sizeof host->cpus - used,
                             last > first ? "%s%d-%d" : "%s%d", used > 0 ? "," : "", first, last);
        first = last;
    }
}

static void find_shm(struct host *host)
{
    struct statvfs found;

    host->has_shm = statvfs("/dev/shm", &found) == 0;
    if (!host->has_shm)
        return;
    host->shm_bytes = (uint64_t)found.f_blocks * found.f_frsize;
    host->shm_free = (uint64_t)found.f_bavail * found.f_frsize;
}

static void find_huge_pages(struct host *host)
{
    static const uint32_t kilobytes[] = {64, 2048, 32768, 524288, 1048576, 16777216};
    static const char *const folder = "/sys/kernel/mm/hugepages/hugepages";
    char words[64];
    const char *chosen;

    for (size_t i = 0; i < sizeof kilobytes / sizeof kilobytes[0]; i++) {
        struct huge *huge = &host->huge[host->huge_count];

        if (!file_number(&huge->total, "%s-%ukB/nr_hugepages", folder, kilobytes[i]))
            continue;
        file_number(&huge->free, "%s-%ukB/free_hugepages", folder, kilobytes[i]);
        huge->bytes = (uint64_t)kilobytes[i] << 10;
        host->huge_count++;
    }
    file_text(words, sizeof words, "/sys/kernel/mm/transparent_hugepage/enabled");
    chosen = strchr(words, '[');
    if (chosen != NULL)
        snprintf(host->transparent, sizeof host->transparent, "%.*s", (int)strcspn(chosen + 1, "]"),
                 chosen + 1);
}

/* Finds the smallest limit of a group and its ancestors, as all of them apply. */
static void find_group_limit(struct host *host, const char *root, char *path, const char *file)
{
    for (;;) {
        uint64_t limit;
        char *slash = strrchr(path, '/');

        /* A group without a limit has the word "max", or a number near 2^63. */
        if (file_number(&limit, "%s%s/%s", root, path, file) && limit < INT64_MAX >> 1 &&
            limit < host->memory_limit) {
            host->memory_limit = limit;
            snprintf(host->memory_group, sizeof host->memory_group, "%.150s",
                     *path != '\0' ? path : "/");
        }
        if (slash == NULL)
            return;
        *slash = '\0';
    }
}

/* Finds the control group: "0::/path" in version 2, "9:memory:/path" in version 1. */
static void find_group(struct host *host)
{
    char text[4096], *rest = NULL;

    host->memory_limit = INFO_NO_LIMIT;
    file_text(text, sizeof text, "/proc/self/cgroup");
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *first = strchr(line, ':');
        char *second = first != NULL ? strchr(first + 1, ':') : NULL;

        if (second == NULL)
            continue;
        *second++ = '\0';
        if (strcmp(second, "/") == 0)
            *second = '\0';
        if (strcmp(first, ":") == 0)
            find_group_limit(host, "/sys/fs/cgroup", second, "memory.max");
        else if (strcmp(first, ":memory") == 0)
            find_group_limit(host, "/sys/fs/cgroup/memory", second, "memory.limit_in_bytes");
    }
}

/* Guesses whether this is a container; the kernel does not say. */
static void find_container(struct host *host)
{
    static const char *const words[] = {"docker", "kubepods", "containerd", "libpod", "lxc"};
    char text[4096];

    if (file_text(text, sizeof text, "/run/systemd/container") && *text != '\0')
        snprintf(host->container, sizeof host->container, "%.60s", text);
    else if (access("/.dockerenv", F_OK) == 0)
        snprintf(host->container, sizeof host->container, "docker");
    else if (access("/run/.containerenv", F_OK) == 0)
        snprintf(host->container, sizeof host->container, "podman");
    else if (getenv("APPTAINER_CONTAINER") != NULL || getenv("SINGULARITY_CONTAINER") != NULL)
        snprintf(host->container, sizeof host->container, "apptainer");
    if (host->container[0] != '\0' || !file_text(text, sizeof text, "/proc/self/cgroup"))
        return;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(text, words[i]) != NULL) {
            snprintf(host->container, sizeof host->container, "%s", words[i]);
            return;
        }
}

static void find_memory(struct host *host)
{
    char text[4096];
    const char *line;

    file_text(text, sizeof text, "/proc/meminfo");
    line = strstr(text, "MemTotal:");
    if (line != NULL)
        host->memory = strtoull(line + 9, NULL, 10) << 10;
}

void host_find(struct host *host)
{
    uint64_t scope;

    watch_step("reading the limits of the host");
    find_kernel(host);
    find_cpus(host);
    host->memlock = find_limit(RLIMIT_MEMLOCK);
    host->nofile = find_limit(RLIMIT_NOFILE);
    host->locks_freely = has_capability(CAP_IPC_LOCK_BIT) && is_first_namespace();
    find_shm(host);
    find_huge_pages(host);
    find_memory(host);
    find_group(host);
    find_container(host);
    host->ptrace_scope =
        file_number(&scope, "/proc/sys/kernel/yama/ptrace_scope") ? (int)scope : -1;
    watch_step("reading the memory of another process");
    host->reads = process_vm_try();
}
