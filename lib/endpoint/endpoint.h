/* SPDX-License-Identifier: MIT */
/*
 * The decoded form of an endpoint. The wire form is in endpoint.c: 384 bytes,
 * network byte order, versions first, a checksum last.
 */
#ifndef SLU_ENDPOINT_H
#define SLU_ENDPOINT_H

#include <stdint.h>

#include <sluice/endpoint.h>

#define SLU_TRANSPORT_VERBS 1
#define SLU_TRANSPORT_SOFT 2

#define SLU_ENDPOINT_ADDRESSES 4
#define SLU_NONCE_BYTES 16
/* GIDs beside the first one. */
#define SLU_ENDPOINT_GIDS 4
/* Queue pairs that a peer can have. */
#define SLU_QUEUE_PAIRS 8
/* Messages that a queue pair spills until they have a receive, and the longest such message. */
#define SLU_EARLY_MOST 16
#define SLU_EARLY_BYTES 4096

/* The peer understands the farewell, which tells why a connection ends. */
#define SLU_KNOWS_FAREWELL 1
/* It receives from a pool: a message that cannot be early is announced, and waits for a receive. */
#define SLU_KNOWS_WANT 2
/* Peers on its host may share memory with it, as in shm/join.c. */
#define SLU_KNOWS_SHARING 4

/* The family of a Unix socket, whose name is made of the first 8 bytes of ip; in no endpoint. */
#define SLU_FAMILY_UNIX 1

/* An IP address and TCP port. */
struct slu_address {
    uint16_t family; /* 0: unused; 4 or 6, or SLU_FAMILY_UNIX */
    uint16_t port;   /* host byte order */
    uint8_t ip[16];  /* network byte order; IPv4 in the first 4 */
    uint32_t scope;  /* of a link-local address: the interface index; only valid on its host */
};

/* Identifies a process to others of its host; connect/identity.h compares it. */
struct slu_identity {
    uint8_t host[16]; /* boot id */
    uint64_t network; /* an inode for each namespace; 0 is equal to nothing */
    uint64_t users;
    uint64_t processes; /* in an endpoint 0: it has no Unix socket */
    uint64_t start;     /* in ticks since the host started, in any time namespace; 0: not known */
    uint32_t pid;       /* as the process sees itself */
    uint32_t uid;       /* likewise, effective */
};

/* The fields that differ between the queue pairs of a peer, for each after the first. */
struct slu_further {
    uint32_t qpn;
    uint32_t psn;
};

/* A GID and how many of its bits name its subnet. */
struct slu_endpoint_gid {
    uint8_t gid[16];
    uint8_t prefix; /* 0: not known */
};

struct slu_endpoint {
    uint32_t transport;       /* SLU_TRANSPORT_* */
    uint32_t qpn;             /* number of the queue pair */
    uint32_t psn;             /* first packet sequence number we send; 24 bits */
    uint32_t mtu;             /* largest path MTU in bytes */
    uint32_t initiator_depth; /* reads we may have in flight */
    uint32_t responder_depth; /* reads of the peer we can answer at a time */
    uint64_t max_message;     /* largest message we take, bytes */
    uint64_t identity;        /* random, of the prepared object; kept over resets; not 0 */
    uint64_t generation;      /* from 1; grows with each reset */
    uint32_t access;          /* rights of peers: SLUICE_ACCESS_REMOTE_* */
    uint32_t further_count;
    struct slu_further further[SLU_QUEUE_PAIRS - 1];
    union {
        struct {
            uint32_t lid;
            uint32_t link_layer; /* of libibverbs: 1 InfiniBand, 2 Ethernet */
            uint32_t gid_type;   /* enum ibv_gid_type of libibverbs */
            uint32_t port;
            uint32_t pkey;      /* 0: not known */
            uint32_t global;    /* 1: packets between the two must have a GRH; else 0 */
            uint8_t gid[16];    /* all zero: none */
            uint64_t hint_addr; /* where the peer writes hints of its receives; 0: nowhere */
            uint32_t hint_rkey;
            uint64_t farewell;  /* what it is told there of a close; 0: nothing */
            uint8_t gids;       /* GIDs of which both sides choose; 0: it has the first alone */
            uint8_t gid_prefix; /* of the first */
            struct slu_endpoint_gid others[SLU_ENDPOINT_GIDS];
        } verbs;
        struct {
            struct slu_identity who;
            uint64_t context;               /* random identity of the context */
            uint64_t generation;            /* of the queue pair; never repeats in a context */
            uint32_t everywhere;            /* 1: it listens on the loopback as well; else 0 */
            uint32_t shares;                /* 0; 1 from versions before SLU_KNOWS_SHARING */
            uint8_t early;                  /* messages it spills; 0: none */
            uint8_t knows;                  /* later additions it understands: SLU_KNOWS_* */
            uint8_t nonce[SLU_NONCE_BYTES]; /* a peer must prove that it has it to connect */
            struct slu_address addresses[SLU_ENDPOINT_ADDRESSES];
        } soft;
    };
};

void slu_endpoint_encode(const struct slu_endpoint *endpoint, struct sluice_endpoint *wire);

/* Decodes and checks an endpoint: 0, or -EPROTO with a text. *endpoint is set only on success. */
int slu_endpoint_decode(const struct sluice_endpoint *wire, struct slu_endpoint *endpoint);

#endif
