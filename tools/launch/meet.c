/* SPDX-License-Identifier: MIT */
/* The ranks need a root, a secret and the name of the job in order to meet. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"

/* Below the ports that the kernel assigns to clients. */
#define FIRST_PORT 20000
#define PORTS 12000
#define TRIES 100

static void fill_random(void *bytes, size_t count)
{
    if (getrandom(bytes, count, 0) != (ssize_t)count)
        die(STATUS_ARGUMENTS, "the kernel gives no random bytes: %s", strerror(errno));
}

void make_secret(struct job *job)
{
    fill_random(job->secret, sizeof job->secret);
    job->has_secret = true;
}

/*
 * The secret is a file of memory, which no file system has and which ends with this process. Ranks
 * open it as a descriptor of this process, so programs that close the descriptors they inherited
 * can start others.
 */
void publish_secret(struct launcher *launcher)
{
    const struct job *job = &launcher->job;
    char path[64];

    if (!job->has_secret)
        return;
    launcher->secret = memfd_create("sluice-secret", MFD_CLOEXEC);
    if (launcher->secret < 0 || fchmod(launcher->secret, 0600) != 0 ||
        write(launcher->secret, job->secret, sizeof job->secret) != sizeof job->secret)
        die(STATUS_ARGUMENTS, "cannot make a secret: %s", strerror(errno));
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), launcher->secret);
    setenv("SLUICE_SECRET_FILE", path, 1);
}

/* Returns whether nothing listens at this port of the address. */
static bool is_free(int family, const void *address, uint32_t port)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), bound;

    if (family == AF_INET)
        memcpy(&four.sin_addr, address, sizeof four.sin_addr);
    else
        memcpy(&six.sin6_addr, address, sizeof six.sin6_addr);
    bound = family == AF_INET ? bind(fd, (struct sockaddr *)&four, sizeof four)
                              : bind(fd, (struct sockaddr *)&six, sizeof six);
    close(fd);
    return bound == 0;
}

/* Returns a free port of the address, or 0. */
static uint32_t try_ports(int family, const void *address)
{
    for (int i = 0; i < TRIES; i++) {
        uint32_t port;

        fill_random(&port, sizeof port);
        port = FIRST_PORT + port % PORTS;
        if (is_free(family, address, port))
            return port;
    }
    return 0;
}

uint32_t find_port(void)
{
    struct in_addr any = {.s_addr = INADDR_ANY};
    uint32_t port = try_ports(AF_INET6, &in6addr_any);

    return port != 0 ? port : try_ports(AF_INET, &any);
}

/* A host may have one of the two loopback addresses alone. */
void find_local_root(char *root, size_t size)
{
    struct in_addr four = {.s_addr = htonl(INADDR_LOOPBACK)};
    uint32_t port = try_ports(AF_INET, &four);

    if (port != 0) {
        snprintf(root, size, "127.0.0.1:%u", port);
        return;
    }
    port = try_ports(AF_INET6, &in6addr_loopback);
    if (port == 0)
        die(STATUS_ARGUMENTS,
            "ranks cannot meet: neither 127.0.0.1 nor ::1 can be used on this host; "
            "bring its loopback interface up");
    snprintf(root, size, "[::1]:%u", port);
}

void make_job_name(char *name, size_t size)
{
    uint32_t number;

    fill_random(&number, sizeof number);
    snprintf(name, size, "launch-%d-%08x", (int)getpid(), number);
}
