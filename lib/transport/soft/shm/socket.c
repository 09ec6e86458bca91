/* SPDX-License-Identifier: MIT */
/*
 * Messages between near processes over the socket on which they have met, once frames go through
 * shared memory: bells, and memory that the other side may map. A message is a byte with its
 * arguments, and for some a descriptor. messages.c reads them.
 */
#include "transport/soft/shm/shm.h"

#include <string.h>
#include <sys/socket.h>

int slu_soft_shm_tell(int socket, const void *bytes, size_t length, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    SLU_KEEP_ERRNO;
    ssize_t sent;
    if (fd >= 0) {
        memset(&control, 0, sizeof(control));
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    do
        sent = SLU_UNCANCELLED(sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
    while (sent < 0 && errno == EINTR);
    int err = sent < 0 ? -errno : 0;
    return err == 0 && (size_t)sent < length ? -EAGAIN : err;
}

void slu_soft_shm_ring_bell(struct soft_tcp *tcp)
{
    if (slu_is_shortage(-slu_soft_shm_say(tcp, SHM_WORD_BELL, NULL, 0, -1)))
        slu_soft_tcp_starve(tcp);
}

int slu_soft_shm_say(struct soft_tcp *tcp, enum shm_socket_word word, const void *argument,
                     size_t length, int fd)
{
    uint8_t bytes[SHM_SAID_BYTES] = {(uint8_t)word};
    if (length > 0)
        memcpy(bytes + 1, argument, length);
    return slu_soft_shm_tell(tcp->fd, bytes, 1 + length, fd);
}
