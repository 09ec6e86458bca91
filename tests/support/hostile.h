/* SPDX-License-Identifier: MIT */
/*
 * A hostile peer of the soft transport's TCP wire, with plain sockets and an independent encoder of
 * its format; and a victim for it.
 */
#ifndef SUPPORT_HOSTILE_H
#define SUPPORT_HOSTILE_H

#include "pair.h"
#include "stranger.h"

#define REGION 256
#define LANDING 100
#define FILL 0x5c

enum type {
    SEND = 1,
    WRITE,
    READ_REQUEST,
    READ_REPLY,
    ACK,
    NAK,
    COMPARE_SWAP,
    FETCH_ADD,
    ATOMIC_REPLY,
    PROBE,
    ECHO,
    REPEAT,
    FAREWELL,
    WANT,
    LAST_TYPE = WANT
};
enum flag { IMMEDIATE = 1, PROMPT = 2 };

struct frame {
    uint8_t type;
    uint8_t flags;
    uint8_t status;
    uint8_t reserved;
    uint32_t immediate;
    uint32_t seq;
    uint32_t ack;
    uint32_t credit;
    uint32_t rkey;
    uint64_t addr;
    uint64_t length;
};

/* A hub of two peers: 0 is hostile, 1 is good. */
struct victim {
    struct star star;
    struct sluice_endpoint forged; /* of the hostile peer */
    uint64_t generation;           /* of that endpoint */
    struct sluice_endpoint endpoint;
    struct memory region;    /* with all rights for peers */
    struct memory read_only; /* with the right to read for peers */
    struct memory landing;   /* of the receives and reads of the hub */
    struct sluice_remote_mr remote;
    struct sluice_remote_mr remote_read_only;
    struct sluice_handle handles[3];
    uint32_t posted;
    int listener; /* the hostile peer's address */
    int fd;
    int fds;
};

/* Writes the checksum of a changed endpoint. */
void seal(struct sluice_endpoint *endpoint);

/* Dials the victim's listener, whose address is in its endpoint. */
int dial(const struct sluice_endpoint *endpoint);

void encode_frame(const struct frame *frame, uint8_t bytes[40]);

/* The words until both sides have proven themselves: hello, challenge, and proofs. */
#define HELLO_BYTES 96
#define CHALLENGE_BYTES 80
#define DENIAL_BYTES 16
enum proof { OF_DIALER, OF_ACCEPTOR, OF_CHOICE };
struct greeting {
    const struct sluice_endpoint *dialer;
    const struct sluice_endpoint *acceptor;
    uint8_t said[HELLO_BYTES + CHALLENGE_BYTES];
};
/* Makes a valid hello, and a valid challenge for the hello that came. */
void make_hello(struct greeting *greeting);
void make_challenge(struct greeting *greeting);
void make_proof(const struct greeting *greeting, enum proof part, uint8_t proof[PROOF_BYTES]);
/* Acts as the dialer until the acceptor's proof is due. Returns whether it was not denied. */
bool greet(struct greeting *greeting, int fd);
/* Sends a frame, and this many bytes behind it. */
void say_frame(int fd, const struct frame *frame, size_t payload);

/*
 * All bytes of the hostile nonce have this value: with 0xff the hostile peer connects, with 0 the
 * victim.
 */
void victim_open(struct victim *victim, uint8_t nonce);
void victim_open_with(struct victim *victim, uint8_t nonce, const struct sluice_channel_attr *attr);
/* Checks that no fd is left. */
void victim_close(struct victim *victim);
/* Resets the hostile peer, which needs a new generation to be accepted again. */
void reset_hostile(struct victim *victim);
/* The request of the victim to the hostile peer, of LANDING or 8 bytes. */
enum asked { NOTHING, A_READ, AN_ATOMIC };
/* Makes a new connection to the hostile peer, with a receive and perhaps another request posted. */
void connect_hostile(struct victim *victim, enum asked asked);

#define MASK(name) (1U << SLUICE_CLASS_##name)
/* Classes if the victim is not at fault, and may see only the end. */
#define ENDED (MASK(PEER_LOST) | MASK(PROTOCOL))

/* Requires that the channel fails with one of the classes, and that nothing else happens. */
void expect_failure(struct victim *victim, unsigned classes, const char *what);
/* Requires in addition that no byte of its memory was written, and that the good peer works. */
void expect_untouched(struct victim *victim, unsigned classes, const char *what);

#endif
