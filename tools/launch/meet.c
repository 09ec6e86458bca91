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
#include <sys/resource.h>
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

static void refuse_secret(const char *what, const char *why)
{
    die(STATUS_ARGUMENTS,
        "cannot make a secret for the ranks: %s: %s; set SLUICE_SECRET_FILE to a file of your own, "
        "or to nothing for no secret",
        what, why);
}

/*
 * The secret is a file of memory, which no file system has and which ends with this process. Ranks
 * open it as a descriptor of this process, so programs that close the descriptors they inherited
 * can start others.
 */
void publish_secret(struct launcher *launcher)
{
    const struct job *job = &launcher->job;
    struct rlimit limit;
    char path[64];

    if (!job->has_secret)
        return;
    /* A write beyond the limit would raise SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof job->secret)
        refuse_secret("a file of memory", "ulimit -f is less than its size");
    launcher->secret = memfd_create("sluice-secret", MFD_CLOEXEC);
    if (launcher->secret < 0 || fchmod(launcher->secret, 0600) != 0 ||
        write(launcher->secret, job->secret, sizeof job->secret) != sizeof job->secret)
        refuse_secret("memfd_create(2), fchmod(2) or write(2)", strerror(errno));
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), launcher->secret);
    if (access(path, R_OK) != 0)
        refuse_secret(path, strerror(errno));
    setenv("SLUICE_SECRET_FILE", path, 1);
}

/* Writes the address, with a port. Returns its length. */
static socklen_t write_address(const char *ip, uint32_t port, struct sockaddr_storage *storage)
{
    struct sockaddr_in *four = (struct sockaddr_in *)storage;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)storage;

    *storage = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, ip, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        return sizeof *four;
    }
    inet_pton(AF_INET6, ip, &six->sin6_addr);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    return sizeof *six;
}

/* Tells whether a rank can listen there, and with reach, whether others can connect. */
static bool is_free(const char *ip, uint32_t port, bool reach)
{
    struct sockaddr_storage address;
    socklen_t length = write_address(ip, port, &address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), other = -1;
    bool result = bind(fd, (struct sockaddr *)&address, length) == 0;

    /* An interface that is down has addresses, too. */
    if (result && reach) {
        other = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        result = listen(fd, 1) == 0 && connect(other, (struct sockaddr *)&address, length) == 0;
        close(other);
    }
    close(fd);
    return result;
}

/* Returns a free port of the address, or 0. */
static uint32_t try_ports(const char *ip, bool reach)
{
    for (int i = 0; i < TRIES; i++) {
        uint32_t port;

        fill_random(&port, sizeof port);
        port = FIRST_PORT + port % PORTS;
        if (is_free(ip, port, reach))
            return port;
    }
    return 0;
}

uint32_t find_port(void)
{
    uint32_t port = try_ports("::", false);

    return port != 0 ? port : try_ports("0.0.0.0", false);
}

/* A host may have one of the two loopback addresses alone, or none: then ranks need no network. */
void find_local_root(char *root, size_t size)
{
    uint32_t port = try_ports("127.0.0.1", true), number[2];

    if (port != 0) {
        snprintf(root, size, "127.0.0.1:%u", port);
        return;
    }
    port = try_ports("::1", true);
    fill_random(number, sizeof number);
    if (port != 0)
        snprintf(root, size, "[::1]:%u", port);
    else
        snprintf(root, size, "@%08x%08x", number[0], number[1]);
}

void make_job_name(char *name, size_t size)
{
    uint32_t number;

    fill_random(&number, sizeof number);
    snprintf(name, size, "launch-%d-%08x", (int)getpid(), number);
}
