/* SPDX-License-Identifier: MIT */
/*
 * Reads memory of the peer's process by its process ID, if the kernel permits. After the process
 * ends, its ID can belong to another process, with the memory of another program. So each call also
 * reads a token from the same memory: random bytes that the peer has sent, and that a child of
 * fork(2) does not have.
 */
#include "transport/soft/shm/shm.h"

#include <string.h>

#include "base/fork.h"

struct shm_token slu_soft_shm_token(void)
{
    struct shm_token token = {.addr = (uintptr_t)slu_process_token()};
    memcpy(token.bytes, slu_process_token(), sizeof(token.bytes));
    return token;
}

static pid_t ask_pid(const struct soft_tcp *tcp)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    return getsockopt(tcp->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

int slu_soft_shm_read_process(struct soft_tcp *tcp, struct iovec *to, uint32_t to_count,
                              struct iovec *from, uint32_t from_count, uint64_t length)
{
    struct soft_shm *shm = tcp->shm;
    uint8_t found[SLU_TOKEN_BYTES];
    if (shm->pid == 0)
        shm->pid = ask_pid(tcp);
    to[0] = (struct iovec){found, sizeof(found)};
    from[0] = (struct iovec){(void *)(uintptr_t)shm->token.addr, sizeof(found)};
    ssize_t got = process_vm_readv(shm->pid, to, to_count, from, from_count, 0);
    if (got < 0 && errno != EFAULT)
        return errno;
    if (got < (ssize_t)sizeof(found) || memcmp(found, shm->token.bytes, sizeof(found)) != 0)
        return ESRCH;
    return (uint64_t)got - sizeof(found) == length ? 0 : EFAULT;
}
