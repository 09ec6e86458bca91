/* SPDX-License-Identifier: MIT */
/* Reads the messages of the peer over the socket: see socket.c. */
#include "transport/soft/shm/shm.h"

#include <string.h>

/* Bytes of one read: fewer than any socket queues, even of the shortest messages. */
#define MUCH 64
/* Reads of one event. A peer that sends without end does not keep the thread. */
#define READS_MOST 16

static const uint8_t lengths[SHM_WORDS] = {
    [SHM_WORD_BELL] = 1,
    [SHM_WORD_BULK] = 1,
    [SHM_WORD_NO_BULK] = 1,
    [SHM_WORD_ASK] = 1 + sizeof(uint32_t),
    [SHM_WORD_TABLE] = 1,
    [SHM_WORD_GIVE] = 1 + sizeof(struct shm_given),
    [SHM_WORD_SHOW] = 1 + sizeof(struct shm_given),
    [SHM_WORD_DENY] = 1 + sizeof(uint32_t),
    [SHM_WORD_DROP] = 1,
    [SHM_WORD_FAREWELL] = 2,
};

_Static_assert(SHM_SAID_BYTES == 1 + sizeof(struct shm_given), "the longest");

static int take_fd(struct soft_shm *shm)
{
    int fd = shm->passed_fd;
    shm->passed_fd = -1;
    return fd;
}

/* Handles a complete message. False: it is not valid now. */
static bool hear_word(struct soft_tcp *tcp)
{
    struct soft_shm *shm = tcp->shm;
    struct shm_given given;
    uint32_t key;
    memcpy(&given, shm->said + 1, sizeof(given));
    memcpy(&key, shm->said + 1, sizeof(key));
    switch (shm->said[0]) {
    case SHM_WORD_BULK:
        return slu_soft_shm_take_bulk(tcp, take_fd(shm));
    case SHM_WORD_NO_BULK:
        slu_soft_shm_lose_bulk(tcp);
        return true;
    case SHM_WORD_ASK:
        if (tcp->phase == PHASE_OPEN)
            slu_soft_shm_answer(tcp, key);
        return true;
    case SHM_WORD_TABLE:
        return slu_soft_shm_accept_table(tcp, take_fd(shm));
    case SHM_WORD_GIVE:
        return slu_soft_shm_accept_given(tcp, &given, take_fd(shm));
    case SHM_WORD_SHOW:
        return slu_soft_shm_accept_shown(tcp, &given);
    case SHM_WORD_DENY:
        return slu_soft_shm_accept_denied(tcp, key);
    case SHM_WORD_FAREWELL: /* the end of the socket follows */
        slu_soft_note_farewell(tcp->qp, shm->said[1]);
        return true;
    case SHM_WORD_DROP:
        shm->drops = true;
        return true;
    default: /* a bell */
        return true;
    }
}

static bool hear_byte(struct soft_tcp *tcp, uint8_t byte)
{
    struct soft_shm *shm = tcp->shm;
    shm->said[shm->said_length++] = byte;
    if (shm->said[0] >= SHM_WORDS || lengths[shm->said[0]] == 0)
        return false;
    if (shm->said_length < lengths[shm->said[0]])
        return true;
    shm->said_length = 0;
    return hear_word(tcp);
}

/*
 * Returns how many bytes to read. A descriptor arrives with the first bytes of its message, perhaps
 * behind earlier messages. If the message is incomplete, only its rest is read next, because the
 * message behind it may have a descriptor of its own.
 */
static size_t next_read(const struct soft_shm *shm)
{
    if (shm->passed_fd < 0 || shm->said_length == 0)
        return MUCH;
    return (size_t)(lengths[shm->said[0]] - shm->said_length);
}

/* Keeps a descriptor for its message. False: the last one was not taken by its message. */
static bool pass_fd(struct soft_shm *shm, int fd)
{
    if (fd < 0)
        return true;
    if (shm->passed_fd >= 0) {
        slu_fd_close(fd);
        return false;
    }
    shm->passed_fd = fd;
    return true;
}

/*
 * Drops regions that the peer has deregistered. If MUCH was unread, the socket may have been full
 * and a message to drop a region may be missing.
 */
static void drop_imports(struct soft_shm *shm, size_t heard)
{
    if (shm->drops || heard >= MUCH)
        slu_soft_shm_drop_imports(&shm->imports);
    shm->drops = false;
}

/*
 * A read that is not full was the last one, unless it ended before the message of a descriptor.
 * What comes later makes the socket readable again.
 */
bool slu_soft_shm_hear_socket(struct soft_tcp *tcp, bool *sound)
{
    uint8_t bytes[MUCH];
    size_t heard = 0;
    uint32_t reads = 0;
    ssize_t got;
    bool more;
    *sound = true;
    do {
        int fd = -1;
        size_t size = next_read(tcp->shm);
        got = slu_fd_receive(tcp->fd, bytes, size, &fd);
        more = got == (ssize_t)size || fd >= 0 || tcp->shm->passed_fd >= 0;
        *sound = pass_fd(tcp->shm, fd);
        for (ssize_t i = 0; i < got && *sound; i++)
            *sound = hear_byte(tcp, bytes[i]);
        heard += got > 0 ? (size_t)got : 0;
    } while (got > 0 && more && *sound && ++reads < READS_MOST);
    drop_imports(tcp->shm, heard);
    return got > 0 || (got < 0 && errno == EAGAIN);
}
