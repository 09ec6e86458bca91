/* SPDX-License-Identifier: MIT */
/*
 * Memory of the process at the other end, read by the number of that process, where the
 * kernel lets us. The number may be another's after its death: what was read counts only
 * if the process with which we have met still lives and has its socket.
 */
#include "transport/soft/shm.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static int keep(int fd)
{
    if (fd < 0 || slu_fd_adopt(fd) == 0)
        return fd;
    close(fd);
    return -1;
}

static int open_process(struct soft_tcp *tcp)
{
    int fd = -1;
    int err = EMFILE;
    socklen_t size = sizeof(fd);
    slu_fd_guard();
    if (getsockopt(tcp->fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) != 0) {
        err = errno;
        fd = -1;
    }
    tcp->shm->process = keep(fd);
    slu_fd_unguard();
    return tcp->shm->process >= 0 ? 0 : err;
}

int slu_soft_shm_find_process(struct soft_tcp *tcp)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    if (tcp->shm->process >= 0)
        return 0;
    if (getsockopt(tcp->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return errno;
    tcp->shm->pid = peer.pid;
    return open_process(tcp);
}

int slu_soft_shm_read_process(const struct soft_tcp *tcp, const struct iovec *to, uint32_t to_count,
                              const struct iovec *from, uint32_t from_count, uint64_t length)
{
    ssize_t got = process_vm_readv(tcp->shm->pid, to, to_count, from, from_count, 0);
    if (got < 0)
        return errno;
    return (uint64_t)got == length ? 0 : EFAULT;
}

bool slu_soft_shm_process_lives(const struct soft_tcp *tcp)
{
    struct pollfd ends[2] = {{.fd = tcp->shm->process, .events = POLLIN},
                             {.fd = tcp->fd, .events = POLLRDHUP}};
    return poll(ends, 2, 0) == 0;
}

const char *slu_soft_shm_describe_refusal(int err)
{
    return err == ENOPROTOOPT ? "that takes Linux 6.5" : strerrordesc_np(err);
}

void slu_soft_shm_forget_process(struct soft_shm *shm)
{
    if (shm->process >= 0)
        slu_fd_close(shm->process);
    shm->process = -1;
}
