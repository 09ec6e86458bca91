/* SPDX-License-Identifier: MIT */
/* What rank 0 must have before it lets anybody in: file descriptors, and a port. */
#include "config.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/descriptor.h"
#include "exchange/tcp.h"

/* File descriptors in use below the limit; all of them if there is none to count with. */
static uint64_t count_used(uint64_t limit)
{
    DIR *directory = slu_fd_read_folder("/proc/self/fd");
    const struct dirent *entry;
    uint64_t used = 0;

    if (directory == NULL)
        return errno == EMFILE ? limit : 0;
    while ((entry = readdir(directory)) != NULL) {
        char *end;
        unsigned long fd = strtoul(entry->d_name, &end, 10);

        used += end != entry->d_name && fd < limit && fd != (unsigned long)dirfd(directory);
    }
    closedir(directory);
    return used;
}

/* Better now than when all but a few are there: each rank takes a file descriptor. */
static int check_limit(const struct tcp *tcp)
{
    struct rlimit limit;
    uint64_t needed = tcp->ranks - 1 + (tcp->listener < 0), used;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    used = count_used(limit.rlim_cur);
    if (used + needed <= limit.rlim_cur)
        return 0;
    return slu_fail(EMFILE,
                    "rank 0 of %u ranks needs %llu file descriptors and has %llu in use, but the "
                    "limit is %llu: set ulimit -n to at least %llu",
                    tcp->ranks, (unsigned long long)needed, (unsigned long long)used,
                    (unsigned long long)limit.rlim_cur, (unsigned long long)(used + needed));
}

int slu_tcp_open_door(struct tcp *tcp)
{
    int error = check_limit(tcp);

    if (error == 0 && tcp->listener < 0)
        tcp->listener = slu_tcp_listen(&tcp->places[0], tcp->root_source);
    if (error == 0 && tcp->listener < 0)
        error = tcp->listener;
    return error;
}
