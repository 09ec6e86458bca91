/* SPDX-License-Identifier: MIT */
/* The structs of the fabric: fabric.c has the objects, wire.c the packets. */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "fabric.h"
#include "fault.h"
#include "process.h"
#include "random.h"
#include "report.h"
#include "system.h"

enum { MOST_SGES = 32, REPLAYS = 128 };

struct sim_region {
    struct sim_region *next;
    struct sim_process *process;
    const struct slu_tpd *pd;
    char *addr;
    uint64_t length;
    uint32_t key, access; /* key is the local one; the remote one is one more */
    bool gone;
};

struct completion {
    struct slu_wc wc;
    struct sim_pair *pair;
    uint32_t sends, receives; /* places that are free once it is polled */
};

struct sim_queue {
    struct sim_object object; /* the first field */
    struct slu_cq *base;
    struct sim_process *process;
    struct device *device;
    const struct sim_task *user; /* in one of its calls */
    struct completion *ring;
    uint32_t count, held; /* held: places of requests and completions that are taken */
    int room;
    bool armed, ready;
};

/* A request; its packets have the numbers from first on. */
struct work {
    struct work *next;
    uint64_t id, length, arrived, remote, operand[2];
    uint32_t opcode, flags, immediate, rkey, first, packets, sge_count, status;
    struct sluice_sge sges[MOST_SGES];
    char *copy; /* of inline bytes */
};

struct list {
    struct work *first, **end;
};

struct sim_pair {
    struct sim_pair *next; /* of the device */
    struct slu_qp *base;
    struct device *device;
    struct sim_process *process;
    struct sim_queue *queue;
    struct slu_qp_attr attr;
    enum slu_qp_state state;
    uint32_t qpn, remote_host, remote_qpn, remote_psn, mtu, reads, remote_reads;
    uint32_t sends_held, receives_held, unreported; /* see the completions */
    uint32_t event;                                 /* status of an alert that waits; 0: none */
    struct list sends, receives, answers;
    struct sim_event pump, timer, flush, land;
    /* As the one that asks. Numbers of packets count from 0; psn is added on the wire. */
    struct work *at; /* the next packet is of this request, */
    uint32_t sent;   /* and has this number */
    uint32_t posted, acked, tries, rnr_tries;
    int64_t not_before, arrival;
    bool loses; /* packets of it, or to it, were lost */
    bool stuck; /* it never flushes */
    /* As the one that answers. */
    uint32_t expected;
    bool complained, unready; /* of this side; of the peer */
    uint64_t offset;          /* of the message that arrives */
    struct packet *held;
    struct {
        uint64_t value;
        uint32_t number;
    } replays[REPLAYS];
};

struct device {
    struct sim_host *host;
    struct sim_region *regions;
    struct sim_pair *pairs;
    struct sim_event death;
    uint32_t last_key, last_qpn, flaky; /* one request in so many fails; 0: none */
    int64_t free_at, lag, slow;         /* lag: of each packet; slow: of a flush, at most */
    bool dead, polls_dead, stuck;
};

/* Properties of all devices of a run. */
struct fabric {
    bool infiniband, unordered, naks, events, empty_limits;
    uint32_t mtu, status; /* of local memory without the right */
};

extern struct fabric sim_fabric;

struct device *sim_device(uint32_t host);
/* Adds a completion, which frees so many places of the queue pair when it is polled. */
void sim_push(struct sim_pair *pair, const struct slu_wc *wc, uint32_t sends, uint32_t receives);
/* Frees the first element of a list. */
void sim_work_drop(struct list *list);
struct work *sim_work_add(struct list *list, const struct work *from);
/* The pair has nothing to do with the outside any more, or its process has. */
bool sim_pair_works(const struct sim_pair *pair);
/* Completes the oldest request of a queue. */
void sim_complete_send(struct sim_pair *pair, uint32_t status);
void sim_complete_receive(struct sim_pair *pair, const struct slu_wc *wc);
/* To the error state: what is posted is flushed soon. */
void sim_pair_break(struct sim_pair *pair, uint32_t event);
/* Returns the region of a remote key, or NULL if the peer must not do this. */
const struct sim_region *sim_region_remote(const struct sim_pair *pair, uint32_t key, uint64_t addr,
                                           uint64_t length, uint32_t access);
/* Copies between bytes and the memory of a request. Returns a status. */
uint32_t sim_move(const struct sim_pair *pair, const struct work *work, uint64_t offset,
                  char *bytes, uint64_t count, bool in);

enum kind { REQUEST, ACK, NAK, RNR, RESPONSE };
enum { FIRST = 1, LAST = 2, ASKS = 4 }; /* asks for an acknowledgement */
enum { WINDOW = 64 };                   /* packets in flight */

struct packet {
    struct sim_event event;   /* the first field */
    LIST_ENTRY(packet) place; /* among all */
    struct packet *next_held;
    enum kind kind;
    uint32_t from_host, from_qpn, to_host, to_qpn, number, ends;
    uint32_t status; /* of NAK; the timer of RNR */
    uint32_t opcode, flags, immediate, rkey, packets;
    uint64_t remote, total, operand[2];
    uint64_t bytes;
    char data[];
};

/* How far a number of the wire is ahead. */
static inline int32_t ahead(uint32_t wire, uint32_t psn, uint32_t number)
{
    return (int32_t)((wire - psn - number) << 8) >> 8;
}

#define FIELD(event, field) ((struct sim_pair *)((char *)(event)-offsetof(struct sim_pair, field)))

/* wire.c: packets, of which emit sends one behind all others of the pair */
struct packet *sim_packet_make(const struct sim_pair *pair, enum kind kind, uint32_t number,
                               uint64_t bytes);
void sim_packet_emit(struct sim_pair *pair, struct packet *packet);
void sim_packet_free(struct packet *packet);
struct sim_pair *sim_pair_find(uint32_t host, uint32_t qpn);
/* Goes on with what a pair has to send; drops all that it has. */
void sim_kick(struct sim_pair *pair);
void sim_pump(struct sim_event *event);
void sim_wire_forget(struct sim_pair *pair);
void sim_wire_end(void);

/* ask.c */
bool sim_may_ask(const struct sim_pair *pair);
void sim_ask(struct sim_pair *pair);
void sim_retry(struct sim_event *event);
void sim_take_answer(struct sim_pair *pair, struct packet *packet);

/* answer.c: sends one packet of the oldest answer */
void sim_give(struct sim_pair *pair);
void sim_land(struct sim_event *event);
/* Returns whether the packet is kept. */
bool sim_take_request(struct sim_pair *pair, struct packet *packet);

#endif
