/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/identity.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sluice/time.h>

#include "base/descriptor.h"
#include "base/fork.h"

/* Field 22 of /proc/PID/stat: the 20th after the name, which may contain blanks. */
#define START_FIELD 20

static void read_host(uint8_t host[16])
{
    static const char digits[] = "0123456789abcdef";
    char text[64] = "";
    unsigned nibbles = 0;

    slu_fd_read_text("/proc/sys/kernel/random/boot_id", text, sizeof text);
    for (const char *at = text; *at != '\0' && nibbles < 32; at++) {
        const char *digit = strchr(digits, *at);

        if (digit == NULL)
            continue;
        host[nibbles / 2] |= (uint8_t)((digit - digits) << (nibbles % 2 == 0 ? 4 : 0));
        nibbles++;
    }
}

static uint64_t read_namespace(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? status.st_ino : 0;
}

static uint64_t read_start(const char *path)
{
    char text[1024];
    const char *at;

    slu_fd_read_text(path, text, sizeof text);
    at = strrchr(text, ')');
    for (int field = 0; at != NULL && field < START_FIELD; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

/*
 * Reads by how many ticks the time namespace of this process shifts the start times in /proc. Only
 * a process that was restored elsewhere has such a shift (Linux 5.6, time_namespaces(7)). Returns
 * false if it is not known, because the file describes the namespace of children, and this process
 * is not in that one.
 */
static bool read_shift(int64_t *shift)
{
    char text[256];
    long ticks = sysconf(_SC_CLK_TCK);
    long long seconds = 0, nanoseconds = 0;
    const char *line;

    slu_fd_read_text("/proc/self/timens_offsets", text, sizeof text);
    line = strstr(text, "boottime");
    if (line != NULL && sscanf(line, "boottime %lld %lld", &seconds, &nanoseconds) != 2)
        return false;
    *shift = seconds * ticks + nanoseconds / (SLUICE_S(1) / ticks);
    return read_namespace("/proc/self/ns/time") ==
           read_namespace("/proc/self/ns/time_for_children");
}

/* Reads the shift once in a process. Several threads at once read the same value. */
static bool find_shift(int64_t *shift)
{
    static atomic_uint reader; /* generation of the process that has read it, plus 1 */
    static _Atomic(int64_t) found;
    static atomic_bool known;
    uint32_t own = slu_fork_generation() + 1;

    if (atomic_load_explicit(&reader, memory_order_acquire) != own) {
        int64_t now = 0;

        atomic_store(&known, read_shift(&now));
        atomic_store(&found, now);
        atomic_store_explicit(&reader, own, memory_order_release);
    }
    *shift = atomic_load(&found);
    return atomic_load(&known);
}

/* Returns when a process began, by the clock of the first time namespace; 0 if not known. */
static uint64_t began(const char *path)
{
    uint64_t start = read_start(path);
    int64_t shift;

    return start != 0 && find_shift(&shift) ? start - (uint64_t)shift : 0;
}

void slu_identity_of_self(struct slu_identity *identity)
{
    *identity = (struct slu_identity){.pid = (uint32_t)getpid(), .uid = (uint32_t)geteuid()};
    read_host(identity->host);
    identity->network = read_namespace("/proc/self/ns/net");
    identity->users = read_namespace("/proc/self/ns/user");
    identity->processes = read_namespace("/proc/self/ns/pid");
    identity->start = began("/proc/self/stat");
}

bool slu_identity_is_placed(const struct slu_identity *identity)
{
    static const uint8_t unknown[sizeof identity->host];

    return identity->network != 0 && memcmp(identity->host, unknown, sizeof unknown) != 0;
}

bool slu_identity_same_network(const struct slu_identity *a, const struct slu_identity *b)
{
    return slu_identity_is_placed(a) && a->network == b->network &&
           memcmp(a->host, b->host, sizeof a->host) == 0;
}

bool slu_identity_near(const struct slu_identity *a, const struct slu_identity *b)
{
    return slu_identity_same_network(a, b) && a->users != 0 && a->users == b->users &&
           a->processes != 0 && a->processes == b->processes;
}

/* A process id is used again after its process has ended. The start time tells the two apart. */
static bool began_then(const struct slu_identity *identity)
{
    char path[40];
    uint64_t start;

    if (identity->start == 0)
        return true;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", identity->pid);
    start = began(path);
    /*
     * The file of another user's process may be hidden; and a namespace may add a part of a tick.
     */
    return start == 0 || start - identity->start + 1 <= 2;
}

bool slu_identity_holds(const struct slu_identity *identity, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.uid == identity->uid && (uint32_t)peer.pid == identity->pid && began_then(identity);
}

socklen_t slu_identity_name(uint64_t listener, struct sockaddr_un *address)
{
    int length;

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "sluice-%016" PRIx64,
                      listener);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}
