/* SPDX-License-Identifier: MIT */
/* The same works without sluice: with sockets, the C library, and memory of the kernel. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ways.h"

/* A socket that listens on the loopback, and one that is connected. */
struct plain {
    int listener, fd;
    struct sockaddr_in address;
};

static int connect_plain(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    MUST(connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : -errno);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static int accept_plain(int listener)
{
    int fd = MUST(accept(listener, NULL, NULL)), one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void open_listener(struct rank *rank, uint32_t owner)
{
    struct plain *plain = MAKE(calloc(1, sizeof *plain));
    struct sockaddr_in all[2];
    socklen_t length = sizeof plain->address;

    plain->fd = -1;
    plain->address.sin_family = AF_INET;
    plain->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    plain->listener = MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(bind(plain->listener, (struct sockaddr *)&plain->address, length) == 0 ? 0 : -errno);
    MUST(listen(plain->listener, 16) == 0 ? 0 : -errno);
    getsockname(plain->listener, (struct sockaddr *)&plain->address, &length);
    share(rank, &plain->address, all, sizeof all[0]);
    plain->address = all[owner];
    rank->state = plain;
}

static void open_plain(struct rank *rank)
{
    struct plain *plain;

    open_listener(rank, 0);
    plain = rank->state;
    plain->fd = rank->rank == 0 ? accept_plain(plain->listener) : connect_plain(&plain->address);
}

static void close_plain(struct rank *rank)
{
    struct plain *plain = rank->state;

    close(plain->listener);
    if (plain->fd >= 0)
        close(plain->fd);
    free(plain);
}

static void put(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = MUST(send(fd, bytes, size, MSG_NOSIGNAL));

        bytes += sent;
        size -= (size_t)sent;
    }
}

static void get(int fd, char *bytes, size_t size)
{
    MUST(recv(fd, bytes, size, MSG_WAITALL) == (ssize_t)size ? 0 : -ECONNRESET);
}

static void echo_plain(struct rank *rank, int fd)
{
    if (rank->rank == 0)
        put(fd, rank->memory, rank->size);
    get(fd, rank->memory, rank->size);
    if (rank->rank == 1)
        put(fd, rank->memory, rank->size);
}

static void plain_echo(struct rank *rank, uint64_t count)
{
    const struct plain *plain = rank->state;

    for (uint64_t i = 0; i < count; i++)
        echo_plain(rank, plain->fd);
}

static void plain_connect(struct rank *rank, uint64_t count)
{
    const struct plain *plain = rank->state;

    for (uint64_t i = 0; i < count; i++) {
        int fd = rank->rank == 1 ? accept_plain(plain->listener) : connect_plain(&plain->address);

        echo_plain(rank, fd);
        close(fd);
    }
}

/* Connects two ranks; rank 1 accepts, as in the other ways. */
static void open_connect(struct rank *rank)
{
    open_listener(rank, 1);
}

static void plain_malloc(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char *block = MAKE(malloc(rank->size));

        *(volatile char *)block = 1;
        free(block);
    }
}

/* Maps and populates shared memory, as the library does for memory that peers may map. */
static void plain_mmap(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        int fd = MUST(memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        char *block;

        MUST(ftruncate(fd, rank->size) == 0 ? 0 : -errno);
        block = mmap(NULL, rank->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        MUST(block != MAP_FAILED ? 0 : -errno);
        munmap(block, rank->size);
        close(fd);
    }
}

static void plain_copy(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        memcpy(rank->memory + rank->size, rank->memory, rank->size);
        __asm__ volatile("" ::: "memory");
    }
}

#define PLAIN(name, ranks, sizes, setup, end)                                        \
    {                                                                                \
#name, "plain", NULL, NULL, NULL, NULL, 0, {ranks }, sizes, setup, name, end \
    }

const struct way ways_plain[] = {
    PLAIN(plain_echo, 2, SIZES, open_plain, close_plain),
    PLAIN(plain_connect, 2, SMALL, open_connect, close_plain),
    PLAIN(plain_malloc, 1, SIZES, NULL, NULL),
    PLAIN(plain_mmap, 1, SIZES, NULL, NULL),
    PLAIN(plain_copy, 1, SIZES, NULL, NULL),
    {0},
};
