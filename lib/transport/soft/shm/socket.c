/* SPDX-License-Identifier: MIT */
/*
 * Messages between near processes over the socket on which they have met, once frames go through
 * shared memory: bells, and memory that the other side may map. A message is a byte with its
 * arguments, and for some a descriptor. messages.c reads them.
 */
#include "transport/soft/shm/shm.h"

#include <string.h>

/* If the socket is full, the bell is not needed: unread messages wake the peer. */
void slu_soft_shm_ring_bell(struct soft_tcp *tcp)
{
    static const uint8_t bell = SHM_WORD_BELL;
    slu_soft_shm_tell(tcp->fd, &bell, 1, -1);
}

int slu_soft_shm_say_bulk(struct soft_tcp *tcp, int fd)
{
    static const uint8_t word = SHM_WORD_BULK;
    return slu_soft_shm_tell(tcp->fd, &word, 1, fd);
}

int slu_soft_shm_say_no_bulk(struct soft_tcp *tcp)
{
    static const uint8_t word = SHM_WORD_NO_BULK;
    return slu_soft_shm_tell(tcp->fd, &word, 1, -1);
}

/*
 * If the socket is full, the message is not needed: with so much unread, the peer checks its
 * regions anyway.
 */
void slu_soft_shm_say_drop(struct soft_tcp *tcp)
{
    static const uint8_t word = SHM_WORD_DROP;
    slu_soft_shm_tell(tcp->fd, &word, 1, -1);
}

bool slu_soft_shm_say_table(struct soft_tcp *tcp, int fd)
{
    static const uint8_t word = SHM_WORD_TABLE;
    return slu_soft_shm_tell(tcp->fd, &word, 1, fd) == 0;
}

bool slu_soft_shm_say_key(struct soft_tcp *tcp, enum shm_socket_word word, uint32_t key)
{
    uint8_t bytes[1 + sizeof(key)] = {(uint8_t)word};
    memcpy(bytes + 1, &key, sizeof(key));
    return slu_soft_shm_tell(tcp->fd, bytes, sizeof(bytes), -1) == 0;
}

static bool say_region(struct soft_tcp *tcp, enum shm_socket_word word,
                       const struct shm_given *given, int fd)
{
    uint8_t bytes[1 + sizeof(*given)] = {(uint8_t)word};
    memcpy(bytes + 1, given, sizeof(*given));
    return slu_soft_shm_tell(tcp->fd, bytes, sizeof(bytes), fd) == 0;
}

bool slu_soft_shm_say_given(struct soft_tcp *tcp, const struct shm_given *given, int fd)
{
    return say_region(tcp, SHM_WORD_GIVE, given, fd);
}

bool slu_soft_shm_say_shown(struct soft_tcp *tcp, const struct shm_given *given)
{
    return say_region(tcp, SHM_WORD_SHOW, given, -1);
}

void slu_soft_shm_end_socket(struct soft_shm *shm)
{
    slu_soft_shm_refuse(slu_soft_shm_take_fd(shm));
}

int slu_soft_shm_take_fd(struct soft_shm *shm)
{
    int fd = shm->passed_fd;
    shm->passed_fd = -1;
    return fd;
}
