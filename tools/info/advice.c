/* SPDX-License-Identifier: MIT */
/*
 * Advice on the host, the environment and the launcher: what is wrong, and what to do. Each
 * piece of advice has an id, which the manual page lists, and a test that provokes it.
 */
#include "config.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "info.h"

/* The buffers of a program that uses RDMA soon lock more than this. */
#define MEMLOCK_LEAST (UINT64_C(64) << 20)
/* MPI and UCX use at least this much of it. */
#define SHM_LEAST (UINT64_C(64) << 20)
#define NOFILE_LEAST 1024
/* Descriptors that a process needs beside one for each peer. */
#define NOFILE_OTHERS 64

void advice_add(struct facts *facts, const char *id, const char *about, const char *format, ...)
{
    struct advice *advice;
    va_list arguments;

    facts->advice = facts_grow(facts->advice, &facts->advice_count, sizeof *facts->advice);
    advice = &facts->advice[facts->advice_count - 1];
    snprintf(advice->id, sizeof advice->id, "%s", id);
    snprintf(advice->about, sizeof advice->about, "%s", about);
    va_start(arguments, format);
    vsnprintf(advice->text, sizeof advice->text, format, arguments);
    va_end(arguments);
}

static bool has_rdma(const struct facts *facts)
{
    for (uint32_t i = 0; i < facts->device_count; i++)
        if (facts->devices[i].info.level == SLUICE_LEVEL_NIC)
            return true;
    return facts->kernel.count > 0;
}

/* Advises on locked memory, which the library needs only with RDMA devices. */
static void advise_memlock(struct facts *facts)
{
    const struct host *host = &facts->host;
    char soft[32], hard[32];

    if (!has_rdma(facts) || host->locks_freely || host->memlock.soft >= MEMLOCK_LEAST)
        return;
    if (host->memlock.hard > host->memlock.soft)
        advice_add(facts, "memlock", "",
                   "only %s of memory may be locked, and registering memory for an RDMA device "
                   "locks it: it fails with ENOMEM. 'ulimit -l' raises it up to %s, beyond that "
                   "/etc/security/limits.conf, LimitMEMLOCK= of a systemd unit, or --ulimit "
                   "memlock=-1 of a container",
                   bytes_text(host->memlock.soft, soft), bytes_text(host->memlock.hard, hard));
    else
        advice_add(facts, "memlock", "",
                   "only %s of memory may be locked, and registering memory for an RDMA device "
                   "locks it: it fails with ENOMEM. An administrator raises it by "
                   "/etc/security/limits.conf (memlock unlimited), LimitMEMLOCK= of a systemd "
                   "unit, or --ulimit memlock=-1 of a container",
                   bytes_text(host->memlock.soft, soft));
}

static void advise_nofile(struct facts *facts)
{
    uint64_t soft = facts->host.nofile.soft;
    uint64_t ranks = facts->launch_result == 0 ? facts->launch.ranks : 0;

    if (soft >= NOFILE_LEAST && soft >= ranks + NOFILE_OTHERS)
        return;
    advice_add(facts, "nofile", "",
               "a process may open only %llu files, and each peer over TCP or shared memory takes "
               "some%s: 'ulimit -n' raises it",
               (unsigned long long)soft, ranks > 0 ? ", as does each of the other ranks" : "");
}

static void advise_shm(struct facts *facts)
{
    const struct host *host = &facts->host;
    char size[32], left[32];

    if (host->has_shm && host->shm_free >= SHM_LEAST)
        return;
    if (!host->has_shm)
        advice_add(facts, "shm", "/dev/shm",
                   "/dev/shm does not exist: sluice does not need it, but MPI, UCX and others in "
                   "the same program do; mount a tmpfs there");
    else
        advice_add(facts, "shm", "/dev/shm",
                   "/dev/shm has %s free of %s: sluice does not need it, but MPI, UCX and others "
                   "in the same program need more; remount it with a larger size=, or give a "
                   "container --shm-size",
                   bytes_text(host->shm_free, left), bytes_text(host->shm_bytes, size));
}

static void advise_loopback(struct facts *facts)
{
    struct ifaddrs *list;
    bool up = false;

    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next)
        up = up || (at->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == (IFF_UP | IFF_LOOPBACK);
    freeifaddrs(list);
    if (!up)
        advice_add(facts, "loopback", "lo",
                   "the loopback interface of this network namespace is down, so the ranks of this "
                   "host cannot find each other: 'ip link set lo up', or take another namespace");
}

static void advise_reads(struct facts *facts)
{
    const struct host *host = &facts->host;

    if (host->reads == READS_ALLOWED || host->reads == READS_UNTRIED)
        return;
    advice_add(facts, "process-vm", "process_vm_readv",
               "processes may not read each other's memory (%s), so large messages between those "
               "of this host are copied twice instead of once: %s",
               strerror(host->reads),
               host->reads == ENOSYS    ? "this kernel does not have it"
               : host->ptrace_scope > 0 ? "sysctl kernel.yama.ptrace_scope=0 allows it"
                                        : "a seccomp filter refuses it, as those of containers do; "
                                          "--cap-add SYS_PTRACE or another --security-opt seccomp= "
                                          "allows it");
}

static void advise_version(struct facts *facts)
{
    char version[32];

    if (strcmp(library_version(version), PACKAGE_VERSION) == 0)
        return;
    advice_add(facts, "version", "libsluice",
               "the loaded library is %s, but this tool and its headers are %s: check the file "
               "above, LD_LIBRARY_PATH, and ldconfig",
               version, PACKAGE_VERSION);
}

static void advise_variables(struct facts *facts)
{
    for (uint32_t i = 0; i < facts->variable_count; i++) {
        const struct sluice_variable_info *info = &facts->variables[i];

        if (info->state == SLUICE_VARIABLE_UNKNOWN)
            advice_add(facts, "variable-unknown", info->name,
                       "%s is %s; it is ignored. sluice_environment(7) lists all variables",
                       info->name, info->reason);
        else if (info->state == SLUICE_VARIABLE_WRONG)
            advice_add(facts, "variable-wrong", info->name,
                       "%s has a wrong value: %s; it can be %s", info->name, info->reason,
                       info->allowed);
    }
}

static void advise_launch(struct facts *facts)
{
    if (facts->launch_result < 0 && facts->launch_result != -ENOENT)
        advice_add(facts, "launcher", "", "no exchange can be opened without attributes: %s",
                   facts->launch_error);
    else if (facts->launch_warning[0] != '\0')
        advice_add(facts, "launcher-doubt", "",
                   "the variables of two launchers contradict each other: %s. If it is the wrong "
                   "one, unset its variables or set SLUICE_RANK and SLUICE_RANKS",
                   facts->launch_warning);
}

void advise(struct facts *facts)
{
    advise_version(facts);
    advise_variables(facts);
    advise_environment(facts);
    advise_launch(facts);
    advise_devices(facts);
    advise_memlock(facts);
    advise_nofile(facts);
    advise_shm(facts);
    advise_loopback(facts);
    advise_reads(facts);
}

void print_advice(const struct facts *facts, struct out *out)
{
    out_list(out, "list", NULL);
    for (uint32_t i = 0; i < facts->advice_count; i++) {
        const struct advice *advice = &facts->advice[i];

        out_object(out, NULL, NULL);
        out_text(out, "id", NULL, advice->id);
        out_text(out, "about", NULL, advice->about);
        out_text(out, "text", NULL, advice->text);
        out_end(out);
        out_line(out, "%s: %s", advice->id, advice->text);
    }
    out_end(out);
    if (facts->advice_count == 0)
        out_line(out, "no problem was found");
}
