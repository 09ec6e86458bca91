/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/identity.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"

/* The 22nd field of /proc/PID/stat, and the 20th behind the name, which may have blanks. */
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

void slu_identity_of_self(struct slu_identity *identity)
{
    *identity = (struct slu_identity){.pid = (uint32_t)getpid(), .uid = (uint32_t)geteuid()};
    read_host(identity->host);
    identity->network = read_namespace("/proc/self/ns/net");
    identity->users = read_namespace("/proc/self/ns/user");
    identity->processes = read_namespace("/proc/self/ns/pid");
    identity->start = read_start("/proc/self/stat");
}

bool slu_identity_same_network(const struct slu_identity *a, const struct slu_identity *b)
{
    return a->network != 0 && a->network == b->network &&
           memcmp(a->host, b->host, sizeof a->host) == 0;
}

bool slu_identity_near(const struct slu_identity *a, const struct slu_identity *b)
{
    return slu_identity_same_network(a, b) && a->users != 0 && a->users == b->users &&
           a->processes != 0 && a->processes == b->processes;
}

/* A number of a process is used again once it is gone; when it began tells the two apart. */
static bool began_then(const struct slu_identity *identity)
{
    char path[40];
    uint64_t start;

    if (identity->start == 0)
        return true;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", identity->pid);
    start = read_start(path);
    /* Those of other users can be hidden. */
    return start == 0 || start == identity->start;
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
