/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/descriptor.h"
#include "base/error.h"
#include "base/uncancelled.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* Descriptors of the standard streams, which any code may write to. */
#define STANDARD 3
#define WORD 64

/* Since Linux 5.9; older C libraries do not define it. */
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2U
#endif

/*
 * Held during each system call that makes or closes a kept descriptor, none of which blocks, and by
 * fork(2). So a child knows exactly which of its descriptors belong to the library.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *kept; /* one bit for each descriptor */
static size_t kept_words;
static unsigned guards;
static bool placeholder[STANDARD];

/* Checks all three by one call. It also reports placeholders as closed; then each is checked. */
static bool has_standard(void)
{
    struct pollfd fds[STANDARD] = {{.fd = 0}, {.fd = 1}, {.fd = 2}};

    return poll(fds, STANDARD, 0) >= 0 &&
           ((fds[0].revents | fds[1].revents | fds[2].revents) & POLLNVAL) == 0;
}

/*
 * Reading or writing an O_PATH descriptor gives EBADF, as a closed one does. If none can be opened,
 * lift() still moves descriptors away from 0, 1 and 2.
 */
static void take_standard(void)
{
    if (has_standard())
        return;
    for (int i = 0; i < STANDARD; i++) {
        int fd;

        if (fcntl(i, F_GETFD) >= 0)
            continue;
        fd = open("/", O_PATH | O_CLOEXEC);
        if (fd >= STANDARD)
            close(fd);
        else if (fd >= 0)
            placeholder[fd] = true;
    }
}

/* The program may have opened something of its own there meanwhile, which is left alone. */
static void give_standard(void)
{
    for (int i = 0; i < STANDARD; i++) {
        int flags = placeholder[i] ? fcntl(i, F_GETFL) : -1;

        if (flags >= 0 && (flags & O_PATH) != 0)
            close(i);
        placeholder[i] = false;
    }
}

/* The caller holds the lock. */
static void guard(void)
{
    int saved = errno;

    if (guards++ == 0)
        take_standard();
    errno = saved;
}

static void unguard(void)
{
    int saved = errno;

    if (guards > 0 && --guards == 0)
        give_standard();
    errno = saved;
}

/*
 * Moves a descriptor away from 0, 1 and 2, if the program closed one of them after the guard was
 * set.
 */
static int lift(int fd)
{
    int lifted, err;

    if (fd < 0 || fd >= STANDARD)
        return fd;
    lifted = fcntl(fd, F_DUPFD_CLOEXEC, STANDARD);
    err = errno == EINVAL ? EMFILE : errno; /* the limit is so low that there is no other */
    close(fd);
    errno = err;
    return lifted;
}

static bool reserve(int fd)
{
    size_t words = (size_t)fd / WORD + 1;
    uint64_t *grown;

    if (words <= kept_words)
        return true;
    words = words > 2 * kept_words ? words : 2 * kept_words;
    grown = realloc(kept, words * sizeof *kept);
    if (grown == NULL)
        return false;
    memset(grown + kept_words, 0, (words - kept_words) * sizeof *kept);
    kept = grown;
    kept_words = words;
    return true;
}

static void keep(int fd)
{
    kept[fd / WORD] |= UINT64_C(1) << fd % WORD;
}

static void forget(int fd)
{
    if ((size_t)fd / WORD < kept_words)
        kept[fd / WORD] &= ~(UINT64_C(1) << fd % WORD);
}

static void begin(void)
{
    pthread_mutex_lock(&lock);
    guard();
}

/* Keeps fd, which was made since begin(). If that failed, fd is negative and errno set. */
static int end(int fd)
{
    fd = lift(fd);
    if (fd >= 0 && reserve(fd)) {
        keep(fd);
    } else if (fd >= 0) {
        close(fd);
        fd = -1;
        errno = ENOMEM;
    }
    unguard();
    pthread_mutex_unlock(&lock);
    return fd;
}

int slu_fd_stream(int family)
{
    SLU_UNCANCELLED_BLOCK;
    begin();
    return end(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

int slu_fd_accept(int listener, struct sockaddr *address, socklen_t *length)
{
    SLU_UNCANCELLED_BLOCK;
    begin();
    return end(accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

int slu_fd_epoll(void)
{
    SLU_UNCANCELLED_BLOCK;
    begin();
    return end(epoll_create1(EPOLL_CLOEXEC));
}

int slu_fd_event(void)
{
    SLU_UNCANCELLED_BLOCK;
    begin();
    return end(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

int slu_fd_timer(void)
{
    SLU_UNCANCELLED_BLOCK;
    begin();
    return end(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
}

int slu_fd_memory(const char *name, unsigned flags)
{
    SLU_UNCANCELLED_BLOCK;
    begin();
    return end(memfd_create(name, MFD_CLOEXEC | flags));
}

int slu_fd_duplicate(int fd)
{
    SLU_UNCANCELLED_BLOCK;
    begin();
    return end(fcntl(fd, F_DUPFD_CLOEXEC, STANDARD));
}

/* Returns the first descriptor and closes the others; -1 if there was none. */
static int take_passed(struct msghdr *message)
{
    int taken = -1;

    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL; at = CMSG_NXTHDR(message, at)) {
        size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
            if (taken < 0)
                taken = fd;
            else
                close(fd);
        }
    }
    return taken;
}

ssize_t slu_fd_receive(int socket, void *bytes, size_t size, int *fd)
{
    SLU_UNCANCELLED_BLOCK;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec piece = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got;
    int err;

    begin();
    do
        got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    err = errno;
    *fd = end(got >= 0 ? take_passed(&message) : -1);
    errno = err;
    return got;
}

void slu_fd_close(int fd)
{
    SLU_UNCANCELLED_BLOCK;
    int saved = errno;

    pthread_mutex_lock(&lock);
    forget(fd);
    close(fd);
    pthread_mutex_unlock(&lock);
    errno = saved;
}

int slu_fd_adopt(int fd)
{
    SLU_UNCANCELLED_BLOCK;
    bool known;

    if (fd < 0)
        return 0;
    pthread_mutex_lock(&lock);
    known = reserve(fd);
    if (known)
        keep(fd);
    pthread_mutex_unlock(&lock);
    if (known)
        return 0;
    errno = ENOMEM;
    return -1;
}

void slu_fd_disown(int fd)
{
    SLU_UNCANCELLED_BLOCK;
    if (fd < 0)
        return;
    pthread_mutex_lock(&lock);
    forget(fd);
    pthread_mutex_unlock(&lock);
}

/* Without the lock, since opening a path may block, for example on a network file system. */
int slu_fd_open(const char *path, int flags)
{
    SLU_UNCANCELLED_BLOCK;
    int fd;

    slu_fd_guard();
    fd = lift(open(path, flags | O_CLOEXEC));
    slu_fd_unguard();
    return fd;
}

static void close_unkept(int fd)
{
    int saved = errno;

    close(fd);
    errno = saved;
}

FILE *slu_fd_read_file(const char *path)
{
    int fd = slu_fd_open(path, O_RDONLY);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

    if (file == NULL && fd >= 0)
        close_unkept(fd);
    return file;
}

void slu_fd_read_text(const char *path, char *text, size_t size)
{
    SLU_UNCANCELLED_BLOCK;
    int fd = slu_fd_open(path, O_RDONLY);
    ssize_t got = fd < 0 ? 0 : read(fd, text, size - 1);

    text[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

DIR *slu_fd_read_folder(const char *path)
{
    int fd = slu_fd_open(path, O_RDONLY | O_DIRECTORY);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;

    if (folder == NULL && fd >= 0)
        close_unkept(fd);
    return folder;
}

/* Counts descriptors in use below the limit. Returns the limit if none is left to count with. */
static uint64_t count_used(uint64_t limit)
{
    DIR *folder = slu_fd_read_folder("/proc/self/fd");
    const struct dirent *entry;
    uint64_t used = 0;

    if (folder == NULL)
        return errno == EMFILE ? limit : 0;
    while ((entry = readdir(folder)) != NULL) {
        char *end;
        unsigned long fd = strtoul(entry->d_name, &end, 10);

        used += end != entry->d_name && fd < limit && fd != (unsigned long)dirfd(folder);
    }
    closedir(folder);
    return used;
}

uint64_t slu_fd_count_left(uint64_t *limit)
{
    SLU_KEEP_ERRNO;
    struct rlimit given;
    bool none = getrlimit(RLIMIT_NOFILE, &given) != 0 || given.rlim_cur == RLIM_INFINITY;

    *limit = none ? UINT64_MAX : given.rlim_cur;
    return none ? UINT64_MAX : *limit - count_used(*limit);
}

void slu_fd_guard(void)
{
    SLU_UNCANCELLED_BLOCK;
    pthread_mutex_lock(&lock);
    guard();
    pthread_mutex_unlock(&lock);
}

void slu_fd_unguard(void)
{
    SLU_UNCANCELLED_BLOCK;
    pthread_mutex_lock(&lock);
    unguard();
    pthread_mutex_unlock(&lock);
}

void slu_fd_unshare(void)
{
    SLU_UNCANCELLED_BLOCK;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE) != 0)
        return;
    /* For code that writes errors to a standard stream. */
    for (int i = 0; i < STANDARD; i++)
        open("/", O_PATH | O_CLOEXEC);
#endif
}

int slu_fd_find_addresses(const char *host, const char *port, const struct addrinfo *hints,
                          struct addrinfo **list)
{
    SLU_UNCANCELLED_BLOCK;
    int error;

    slu_fd_guard();
    error = getaddrinfo(host, port, hints, list);
    slu_fd_unguard();
    return error;
}

int slu_fd_list_interfaces(struct ifaddrs **list)
{
    SLU_UNCANCELLED_BLOCK;
    int error;

    slu_fd_guard();
    error = getifaddrs(list);
    slu_fd_unguard();
    return error;
}

const char *slu_fd_interface_name(unsigned index, char *name)
{
    SLU_UNCANCELLED_BLOCK;
    const char *found;

    slu_fd_guard();
    found = if_indextoname(index, name);
    slu_fd_unguard();
    return found;
}

void slu_fd_name_thread(pthread_t thread, const char *name)
{
    SLU_UNCANCELLED_BLOCK;
    slu_fd_guard();
    pthread_setname_np(thread, name);
    slu_fd_unguard();
}

void slu_fd_before_fork(void)
{
    SLU_UNCANCELLED_BLOCK;
    pthread_mutex_lock(&lock);
}

void slu_fd_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

void slu_fd_in_child(void)
{
    for (size_t i = 0; i < kept_words; i++) {
        for (; kept[i] != 0; kept[i] &= kept[i] - 1)
            close((int)(i * WORD) + __builtin_ctzll(kept[i]));
    }
    guards = 0;
    give_standard();
    pthread_mutex_unlock(&lock);
}
