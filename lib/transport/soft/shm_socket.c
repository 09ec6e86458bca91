/* SPDX-License-Identifier: MIT */
/*
 * What near processes say to each other over the socket on which they have met, once frames
 * go through shared memory: bells, and which memory the other one may map. A word of one
 * byte, what belongs to it, and with some of them a descriptor.
 */
#include "transport/soft/shm.h"

#include <string.h>

/* Bytes: less than any socket takes of the shortest words. */
#define MUCH 64

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
};

_Static_assert(SHM_SAID_BYTES == 1 + sizeof(struct shm_given), "the longest");

/* A byte that does not fit wakes nobody: there are others before it. */
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

/* Where there is no room for it, there is so much else that the peer looks all the same. */
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

/* The descriptor that came last, which now belongs to a word, or -1. */
static int take_fd(struct soft_shm *shm)
{
    int fd = shm->passed_fd;
    shm->passed_fd = -1;
    return fd;
}

/* All of a word is here. False: it makes no sense now. */
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
 * A descriptor comes with the first bytes of its word that are read, perhaps behind those of
 * earlier words. If that is not all of the word, what is read next is the rest of it and no
 * more, for the word behind it may have a descriptor of its own.
 */
static size_t next_read(const struct soft_shm *shm)
{
    if (shm->passed_fd < 0 || shm->said_length == 0)
        return MUCH;
    return (size_t)(lengths[shm->said[0]] - shm->said_length);
}

/* So each is taken by its word before the next one comes. */
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

/* Where as much is unread as the socket takes, the peer may have had more to say. */
static void drop_imports(struct soft_shm *shm, size_t heard)
{
    if (shm->drops || heard >= MUCH)
        slu_soft_shm_drop_imports(&shm->imports);
    shm->drops = false;
}

bool slu_soft_shm_hear_socket(struct soft_tcp *tcp, bool *sound)
{
    uint8_t bytes[MUCH];
    size_t heard = 0;
    ssize_t got;
    *sound = true;
    do {
        int fd = -1;
        got = slu_fd_receive(tcp->fd, bytes, next_read(tcp->shm), &fd);
        *sound = pass_fd(tcp->shm, fd);
        for (ssize_t i = 0; i < got && *sound; i++)
            *sound = hear_byte(tcp, bytes[i]);
        heard += got > 0 ? (size_t)got : 0;
    } while (got > 0 && *sound);
    drop_imports(tcp->shm, heard);
    return got > 0 || (got < 0 && errno == EAGAIN);
}

void slu_soft_shm_end_socket(struct soft_shm *shm)
{
    slu_soft_shm_refuse(take_fd(shm));
}
