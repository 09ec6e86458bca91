/* SPDX-License-Identifier: MIT */
/* Making a listener: its secret, its addresses, and its sockets. */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/environment.h"
#include "listener/admission.h"
#include "listener/rdmacm.h"

#define DEFAULT_BACKLOG 128
#define MOST_BACKLOG 4096
/* Attempts to find a port that is free at all addresses. */
#define PORT_TRIES 16

/*
 * Binds all addresses to the same port, except those that this host does not have. Returns the
 * number of sockets, or an error.
 */
static int bind_all(const struct slu_address *addresses, uint32_t count, uint16_t port, int *fds)
{
    int bound = 0, error = -EADDRNOTAVAIL;

    for (uint32_t i = 0; i < count; i++) {
        struct slu_address address = addresses[i];
        int fd;

        address.port = port;
        fd = slu_stream_listen_again(&address);
        if (fd >= 0) {
            fds[bound++] = fd;
            if (port == 0)
                port = slu_stream_port(fd);
            continue;
        }
        error = fd;
        if (fd != -EADDRNOTAVAIL && fd != -EAFNOSUPPORT)
            break;
    }
    if (bound > 0 && (error == -EADDRNOTAVAIL || error == -EAFNOSUPPORT))
        return bound;
    while (bound > 0)
        slu_fd_close(fds[--bound]);
    return error;
}

static int bind_where(const struct slu_address *addresses, uint32_t count, int *fds)
{
    int bound = -EADDRINUSE;

    for (int i = 0; i < PORT_TRIES && bound == -EADDRINUSE; i++) {
        bound = bind_all(addresses, count, addresses[0].port, fds);
        if (addresses[0].port != 0)
            break;
    }
    return bound;
}

/* Opens the sockets of an address. Returns their number, or an error with a text. */
static int listen_where(const char *address, int *fds)
{
    struct slu_address addresses[SLU_LISTENERS];
    struct slu_host_port where;
    int count, bound;

    if (address == NULL)
        return slu_misuse(EINVAL, "address must not be NULL");
    bound = slu_listen_parse(address, address, &where);
    if (bound < 0)
        return bound;
    if (where.host[0] == '\0') {
        fds[0] = slu_stream_listen_all((uint16_t)atoi(where.port));
        bound = fds[0] < 0 ? fds[0] : 1;
    } else {
        count = slu_listen_find(&where, addresses);
        if (count < 0)
            return count;
        bound = bind_where(addresses, (uint32_t)count, fds);
    }
    return bound < 0 ? slu_listen_fail(-bound, address) : bound;
}

/*
 * Duplicates a socket that the program was given: it has to be of TCP, and listening. The program's
 * descriptor is closed on success only, so that no failure leaves open who has to close it.
 */
static int adopt(int fd, int *fds)
{
    int listens = 0, family = 0;
    socklen_t size = sizeof listens;

    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens)
        return slu_misuse(EINVAL, "sluice_listen_attr.fd %d is no socket that listens", fd);
    size = sizeof family;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 ||
        (family != AF_INET && family != AF_INET6))
        return slu_misuse(EINVAL, "sluice_listen_attr.fd %d is no socket of TCP", fd);
    fds[0] = slu_fd_duplicate(fd);
    if (fds[0] < 0)
        return slu_fail(errno, "no descriptor for a listener: %s", strerrordesc_np(errno));
    return 1;
}

static struct slu_address own_address(int fd)
{
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;

    if (getsockname(fd, (struct sockaddr *)&storage, &length) != 0)
        return (struct slu_address){0};
    return slu_address_of((struct sockaddr *)&storage);
}

static uint32_t limit_backlog(uint32_t backlog)
{
    struct rlimit limit;

    if (backlog == 0)
        backlog = DEFAULT_BACKLOG;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < backlog)
        backlog = limit.rlim_cur >= 4 ? (uint32_t)(limit.rlim_cur / 4) : 1;
    return backlog;
}

/*
 * Returns how many may be let in at a time: each uses the descriptors of a connection and of a
 * channel.
 */
static uint32_t limit_let_in(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 8 >= SLU_LET_IN_MOST)
        return SLU_LET_IN_MOST;
    return limit.rlim_cur / 8 > SLU_LET_IN_LEAST ? (uint32_t)(limit.rlim_cur / 8)
                                                 : SLU_LET_IN_LEAST;
}

static int make(struct sluice_listener *listener)
{
    listener->epoll = slu_fd_epoll();
    listener->event = slu_fd_event();
    listener->timer = slu_fd_timer();
    if (listener->epoll < 0 || listener->event < 0 || listener->timer < 0)
        return slu_fail(errno, "no descriptors for a listener: %s", strerrordesc_np(errno));
    return 0;
}

static void unmake(struct sluice_listener *listener)
{
    slu_rdmacm_unlisten(listener->gate);
    slu_listener_drop(listener);
}

static int start_over_rdmacm(struct sluice_listener *listener, const char *address,
                             const struct sluice_listen_attr *attr)
{
    int error = slu_rdmacm_refuse_secret(&listener->secret);

    if (error == 0 && (attr->flags & SLUICE_LISTEN_FD) != 0)
        error = slu_misuse(EINVAL, "SLUICE_LISTEN_FD gives a socket of TCP, and the address is of "
                                   "rdma_cm");
    if (error == 0)
        error = slu_rdmacm_listen(listener, address);
    if (error < 0)
        return error;
    error = slu_listener_start(listener);
    return error == 0 ? 0 : slu_listen_fail_watch(error);
}

/* Starts to listen at the sockets, and owns them even on failure. */
static int start(struct sluice_listener *listener, const int *fds, int count)
{
    int error = slu_listener_start(listener);

    listener->address = own_address(fds[0]);
    for (int i = 0; i < count; i++) {
        if (error == 0)
            error = slu_acceptor_add(&listener->offers.acceptor, fds[i]);
        else
            slu_fd_close(fds[i]);
    }
    if (error == 0)
        return 0;
    slu_acceptor_close(&listener->offers.acceptor);
    return slu_listen_fail_watch(error);
}

static int check_attr(const struct sluice_listen_attr *given, struct sluice_listen_attr *attr)
{
    int error = SLU_ATTR_COPY(sluice_listen_attr, attr, given);

    if (error < 0)
        return error;
    if ((attr->flags & ~SLUICE_LISTEN_FD) != 0)
        return slu_misuse(EINVAL, "sluice_listen_attr.flags 0x%x: not known", attr->flags);
    if ((attr->flags & SLUICE_LISTEN_FD) == 0 && attr->fd != 0 && attr->fd != -1)
        return slu_misuse(EINVAL, "sluice_listen_attr.fd is %d, but SLUICE_LISTEN_FD is not set",
                          attr->fd);
    if (attr->backlog > MOST_BACKLOG)
        return slu_misuse(EINVAL, "sluice_listen_attr.backlog %u: must be in 1..%d", attr->backlog,
                          MOST_BACKLOG);
    return 0;
}

/* Opens a listener whose secret is known. */
static int open_listener(struct sluice_listener *listener, const char *address,
                         const struct sluice_listen_attr *attr)
{
    int fds[SLU_LISTENERS], count;
    int error = make(listener);
    bool given;

    if (error < 0)
        return error;
    if (slu_rdmacm_address(address) != NULL)
        return start_over_rdmacm(listener, address, attr);
    given = (attr->flags & SLUICE_LISTEN_FD) != 0;
    count = given ? adopt(attr->fd, fds) : listen_where(address, fds);
    error = count < 0 ? count : start(listener, fds, count);
    if (error == 0 && given) {
        fcntl(fds[0], F_SETFL, fcntl(fds[0], F_GETFL) | O_NONBLOCK);
        close(attr->fd);
    }
    return error;
}

static struct sluice_listener *make_listener(const char *address,
                                             const struct sluice_listen_attr *given,
                                             const struct slu_secret *secret)
{
    struct sluice_listen_attr attr;
    struct sluice_listener *listener;
    int error = check_attr(given, &attr);

    if (error < 0)
        return slu_none(error);
    listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return slu_fail_null(ENOMEM, "no memory for a listener");
    listener->holds = 1;
    listener->epoll = listener->event = listener->timer = -1;
    listener->backlog = limit_backlog(attr.backlog);
    listener->let_in_most = limit_let_in();
    listener->timer_at = SLUICE_FOREVER;
    slu_admissions_init(listener);
    error = secret != NULL ? slu_secret_copy(secret->bytes, secret->count, &listener->secret)
                           : slu_listener_secret(attr.secret_file, &listener->secret);
    if (error == 0)
        error = open_listener(listener, address, &attr);
    if (error < 0) {
        unmake(listener);
        return slu_none(error);
    }
    listener->magic = SLU_MAGIC_LISTENER;
    slu_made();
    return listener;
}

struct sluice_listener *slu_listen_secretly(const char *address, const struct slu_secret *secret)
{
    return make_listener(address, NULL, secret);
}

struct sluice_listener *sluice_listen(const char *address, const struct sluice_listen_attr *given)
{
    SLU_UNCANCELLED_BLOCK;
    return make_listener(address, given, NULL);
}
