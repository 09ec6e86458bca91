/* SPDX-License-Identifier: MIT */
/* The section of the host. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "info.h"

static void print_limit(struct out *out, const char *key, const char *label,
                        const struct limit *limit, const char *(*words)(uint64_t, char *),
                        const char *remark)
{
    char soft[32], hard[32];

    out_object(out, key, NULL);
    out_limit(out, "soft", NULL, limit->soft, "");
    out_limit(out, "hard", NULL, limit->hard, "");
    out_end(out);
    if (limit->soft == INFO_NO_LIMIT)
        out_words(out, label, "not limited");
    else if (limit->soft == limit->hard)
        out_words(out, label, "%s%s", words(limit->soft, soft), remark);
    else
        out_words(out, label, "%s, can be raised: %s%s", words(limit->soft, soft),
                  words(limit->hard, hard), remark);
}

static void print_shm(const struct host *host, struct out *out)
{
    char size[32], left[32];

    if (!host->has_shm) {
        out_null(out, "shm", "/dev/shm", "does not exist (sluice does not need it)");
        return;
    }
    out_object(out, "shm", NULL);
    out_limit(out, "bytes", NULL, host->shm_bytes, "");
    out_limit(out, "free", NULL, host->shm_free, "");
    out_end(out);
    out_words(out, "/dev/shm", "%s, %s free (sluice does not need it)",
              bytes_text(host->shm_bytes, size), bytes_text(host->shm_free, left));
}

/* Returns the name of an error that process_vm_readv(2) lists, or its number in text. */
static const char *error_name(int error, char text[static 16])
{
    switch (error) {
    case EACCES:
        return "EACCES";
    case EFAULT:
        return "EFAULT";
    case EINVAL:
        return "EINVAL";
    case ENOMEM:
        return "ENOMEM";
    case ENOSYS:
        return "ENOSYS";
    case EPERM:
        return "EPERM";
    case ESRCH:
        return "ESRCH";
    default:
        snprintf(text, 16, "%d", error);
        return text;
    }
}

static void print_reads(const struct host *host, struct out *out)
{
    static const char *const scopes[] = {"0, the same user may", "1, parents may",
                                         "2, administrators may", "3, nobody may"};
    const char *scope = host->ptrace_scope >= 0 && host->ptrace_scope < 4
                            ? scopes[host->ptrace_scope]
                            : "of no known kind";
    char error[16];

    out_object(out, "process_vm_readv", NULL);
    if (host->reads == READS_UNTRIED)
        out_null(out, "allowed", NULL, "none");
    else
        out_flag(out, "allowed", NULL, host->reads == READS_ALLOWED, "none");
    out_text(out, "error", NULL, host->reads > 0 ? error_name(host->reads, error) : "");
    out_end(out);
    out_words(out, "process_vm_readv", "%s%s",
              host->reads == READS_ALLOWED   ? "allowed, tried between two processes"
              : host->reads == READS_UNTRIED ? "could not be tried"
                                             : "refused: ",
              host->reads > 0 ? strerror(host->reads) : "");
    if (host->ptrace_scope >= 0)
        out_number(out, "ptrace_scope", "ptrace_scope (Yama)", host->ptrace_scope, "%s", scope);
    else
        out_null(out, "ptrace_scope", "ptrace_scope (Yama)", "no Yama");
}

static void print_huge(const struct host *host, struct out *out)
{
    char size[32];

    out_list(out, "huge_pages", NULL);
    for (uint32_t i = 0; i < host->huge_count; i++) {
        const struct huge *huge = &host->huge[i];

        out_object(out, NULL, NULL);
        out_limit(out, "bytes", NULL, huge->bytes, "");
        out_limit(out, "total", NULL, huge->total, "");
        out_limit(out, "free", NULL, huge->free, "");
        out_end(out);
    }
    out_end(out);
    for (uint32_t i = 0; i < host->huge_count; i++)
        out_words(out, i == 0 ? "huge pages" : "", "%llu of %s, %llu free",
                  (unsigned long long)host->huge[i].total, bytes_text(host->huge[i].bytes, size),
                  (unsigned long long)host->huge[i].free);
    out_text(out, "transparent_huge_pages", "transparent ones", host->transparent);
}

static void print_memory(const struct host *host, struct out *out)
{
    char size[32];

    if (host->memory != 0)
        out_limit(out, "memory", "memory", host->memory, bytes_text(host->memory, size));
    else
        out_null(out, "memory", "memory", "not known");
    out_object(out, "cgroup", NULL);
    out_limit(out, "memory_limit", NULL, host->memory_limit, "");
    out_text(out, "path", NULL, host->memory_group);
    out_end(out);
    if (host->memory_limit == INFO_NO_LIMIT)
        out_words(out, "control group", "sets no limit of memory");
    else
        out_words(out, "control group", "%s of memory, by %s", bytes_text(host->memory_limit, size),
                  host->memory_group);
}

void print_host(const struct facts *facts, struct out *out)
{
    const struct host *host = &facts->host;

    out_text(out, "kernel", "kernel", host->kernel);
    out_text(out, "container", "container, perhaps", host->container);
    out_text(out, "cpus", "CPUs of this process", host->cpus);
    print_limit(out, "memlock", "locked memory", &host->memlock, bytes_text,
                host->locks_freely ? " (not for this process: CAP_IPC_LOCK)" : "");
    out_flag(out, "memlock_exempt", NULL, host->locks_freely, "none");
    print_limit(out, "nofile", "open files", &host->nofile, limit_text, "");
    print_shm(host, out);
    print_reads(host, out);
    print_huge(host, out);
    print_memory(host, out);
}
