/* SPDX-License-Identifier: MIT */
/*
 * A pretend RDMA device in the place of libibverbs: reliable-connected queue
 * pairs of one process that find each other by number and address, and do what
 * the specification says, in a thread of their own, as a device would. It is
 * stricter than any device: it stops the program with a reason where a real one
 * would corrupt, lose or wait for ever (an overrun queue, an object that is
 * destroyed with events unacknowledged, a context that is closed with children).
 *
 * A test links it instead of libibverbs and steers it by what follows; or it is
 * built as a libibverbs.so.1 that programs find first, which is steered by the
 * environment (fake_verbs_reset()).
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define FAKE_DEVICES 4
#define FAKE_PORTS 4
#define FAKE_GIDS 16
#define FAKE_PKEYS 8

/* An entry of a GID table; without a type it is empty. */
struct fake_gid {
    uint8_t raw[16];
    uint32_t type;      /* enum ibv_gid_type + 1 */
    uint32_t interface; /* index of its interface; 0: not told, as by old kernels */
};

/* A port. Peers find whatever a test changes here while the port is in use. */
struct fake_port {
    enum ibv_port_state state;
    uint8_t link_layer;
    uint8_t flags; /* IBV_QPF_GRH_REQUIRED */
    uint8_t lmc;   /* the port has 2^lmc LIDs, from lid on */
    uint16_t lid;
    enum ibv_mtu max_mtu;
    enum ibv_mtu active_mtu;
    uint8_t active_width;
    uint8_t active_speed;
    uint32_t max_msg_sz;
    uint32_t gids; /* length of the table */
    uint32_t pkeys;
    struct fake_gid gid[FAKE_GIDS];
    uint16_t pkey[FAKE_PKEYS];
};

struct fake_device {
    char name[32]; /* fake0 */
    enum ibv_transport_type transport_type;
    uint32_t ports;
    int max_qp;
    int max_qp_wr;
    int max_sge;
    int max_sge_rd;
    int max_cq;
    int max_cqe;
    int max_mr;
    uint64_t max_mr_size;
    int max_qp_rd_atom;
    int max_qp_init_rd_atom;
    int max_srq; /* 0: it has no shared receive queues */
    int max_srq_wr;
    int max_srq_sge;
    enum ibv_atomic_cap atomic_cap;
    uint32_t max_inline;
    uint32_t vendor_id;
    uint32_t vendor_part;
    bool denied;                       /* opening it fails */
    bool stuck;                        /* opening it never returns */
    struct fake_port port[FAKE_PORTS]; /* port 1 is the first */
};

/* The fate of the completions of a queue pair that is destroyed. */
enum fake_orphans {
    FAKE_LEAVE, /* they stay on the queue, as on rxe */
    FAKE_PURGE, /* they go with it */
    FAKE_LATE   /* held ones come when they are released */
};

/* Limits that some devices do not report. */
enum fake_limit {
    FAKE_MAX_MSG_SZ,
    FAKE_ACTIVE_MTU,
    FAKE_MAX_QP_WR,
    FAKE_MAX_CQE,
    FAKE_MAX_CQ,
    FAKE_MAX_SGE,
    FAKE_MAX_SGE_RD,
    FAKE_MAX_QP_RD_ATOM,
    FAKE_MAX_QP_INIT_RD_ATOM,
    FAKE_LIMITS
};
#define FAKE_SILENT(limit) (UINT32_C(1) << (limit))
#define FAKE_ALL_LIMITS (FAKE_SILENT(FAKE_LIMITS) - 1)

/* Objects that there are. */
struct fake_live {
    uint32_t device_lists;
    uint32_t contexts;
    uint32_t pds;
    uint32_t mrs;
    uint32_t channels;
    uint32_t cqs;
    uint32_t qps;
    uint32_t srqs;
};

/* Calls, for counting them and making them fail. */
enum fake_call {
    FAKE_GET_DEVICE_LIST,
    FAKE_OPEN_DEVICE,
    FAKE_QUERY_DEVICE,
    FAKE_QUERY_PORT,
    FAKE_QUERY_GID,
    FAKE_QUERY_GID_TABLE,
    FAKE_QUERY_PKEY,
    FAKE_GET_PKEY_INDEX,
    FAKE_FORK_INIT,
    FAKE_ALLOC_PD,
    FAKE_REG_MR,
    FAKE_REG_DMABUF_MR,
    FAKE_CREATE_COMP_CHANNEL,
    FAKE_CREATE_CQ,
    FAKE_CREATE_QP,
    FAKE_CREATE_SRQ,
    FAKE_MODIFY_SRQ,
    FAKE_MODIFY_QP,
    FAKE_QUERY_QP,
    FAKE_POST_SEND,
    FAKE_POST_RECV,
    FAKE_POST_SRQ_RECV,
    FAKE_REQ_NOTIFY_CQ,
    FAKE_POLL_CQ,
    FAKE_GET_CQ_EVENT,
    FAKE_GET_ASYNC_EVENT,
    FAKE_MEMORY, /* calloc() and realloc() of the library, where the test wraps them */
    /* Ends of objects; they fail only if they are asked to. */
    FAKE_CLOSE_DEVICE,
    FAKE_DEALLOC_PD,
    FAKE_DEREG_MR,
    FAKE_DESTROY_COMP_CHANNEL,
    FAKE_DESTROY_CQ,
    FAKE_DESTROY_QP,
    FAKE_DESTROY_SRQ,
    FAKE_CALLS
};
#define FAKE_CALL(call) (UINT64_C(1) << (call))
#define FAKE_ALL_BUT_ENDS (FAKE_CALL(FAKE_CLOSE_DEVICE) - 1)

struct fake_verbs {
    uint32_t devices;
    struct fake_device device[FAKE_DEVICES];
    /* Habits. */
    bool rxe_statuses;     /* statuses of rxe, instead of those of the specification */
    bool responder_events; /* the target of a bad request gets an event */
    bool rnr_is_no_answer; /* a missing receive ends as a lost peer */
    bool silent_flush;     /* of flushed requests, only signaled ones are reported */
    bool refused_runs;     /* a refused request is done all the same */
    bool tolerate_overrun; /* an overrun queue loses the completion and reports an error */
    bool tolerate_misuse;  /* complaints are counted, the program goes on */
    bool
        flags_without_imm; /* a receive of a write with immediate data says so by its opcode only */
    bool dmabuf;           /* dmabufs can be registered */
    bool eager;            /* a post executes at once what is possible */
    bool rdmacm_moves;     /* iWARP: rdma_cm connects a queue pair, which no program may do */
    bool late_acks;        /* what is held as a queue pair fails is flushed, though it was done */
    bool release_at_arm;   /* all held completions come right before a queue is armed next */
    bool no_last_wqe;      /* no event says that a queue pair takes no more shared receives */
    uint32_t silent;       /* limits that it keeps and reports as 0: FAKE_SILENT() of each */
    enum fake_orphans orphans;
    enum ibv_fork_status fork_status;
    uint32_t hurry;  /* factor by which timers run faster */
    bool tidy;       /* a process must not end with objects alive */
    char sysfs[200]; /* where the devices have their files, in place of /sys/class/infiniband */
    /* Objects that exist, and counts of past events. */
    struct fake_live live;
    uint64_t calls[FAKE_CALLS];
    uint64_t polls_empty;
    uint64_t not_ready;  /* messages that found no receive, at each attempt */
    uint64_t srq_limits; /* shared receive queues that fell below their limit */
    uint64_t overruns;
    uint64_t complaints;
    uint64_t psn_mismatches; /* requests that the peer did not expect next */
    uint64_t mtu_mismatches;
    uint64_t read_mismatches; /* more reads at a time than the peer takes */
    uint64_t unarmed_writes;  /* completions that notified no thread */
    char complaint[200];
};
extern struct fake_verbs fake_verbs;

/*
 * Makes a new device, fake0, with one Ethernet port. No object may be alive. Words in
 * SLUICE_FAKE_VERBS change it: rxe, infiniband, events, purge, eager, tidy, hurry=20, max_cqe=64,
 * max_wr=64, max_inline=0, max_srq=0, no_last_wqe. With mlx5 there are mlx5_0, whose second port is
 * down, and mlx5_1, each with addresses of all kinds. Further words name a device and a port:
 * down=0:1, v1=0:1 (only GIDs of RoCE v1), link_local=0:1, no_gid=0:1. Words that name a device:
 * denied=1 (opening it fails), stuck=1 (opening it never returns). sysfs=DIR gives the directory of
 * "mlx5_0/device/numa_node" and similar files.
 */
void fake_verbs_reset(void);

/* The device's lock: hold it while changing fake_verbs when contexts are open. */
void fake_verbs_lock(void);
void fake_verbs_unlock(void);

/* Counts existing objects of all kinds; or of one, "qp" or "mr". */
uint32_t fake_verbs_alive(void);
int fake_verbs_count(const char *kind);

/*
 * The n-th call from now of the kinds fails with the errno value; 0: none does.
 * Polling the queue fails with the errno value for ever after.
 */
void fake_verbs_fail(uint32_t n, uint64_t kinds, int err);
/* Returns the name of the call that failed by order, or NULL. */
const char *fake_verbs_failed(void);
/* For calls that the test wraps: returns true, with errno set, if this one must fail. */
bool fake_verbs_fails(enum fake_call call);

enum fake_queue { FAKE_SEND, FAKE_RECEIVE };

/* The n-th post to the queue of a queue pair (0: any) from now is refused at its k-th request. */
void fake_verbs_refuse(uint32_t qpn, enum fake_queue queue, uint32_t n, uint32_t k, int err);

/*
 * The n-th request from now that the device executes in the queue ends with the status. Up to eight
 * at a time.
 */
void fake_verbs_end(uint32_t qpn, enum fake_queue queue, uint32_t n, enum ibv_wc_status status,
                    uint32_t vendor);

/*
 * Holds completions of a queue pair (0: of all, also later ones). Released ones come in their
 * order; some of them, or all.
 */
void fake_verbs_hold(uint32_t qpn);
void fake_verbs_release(uint32_t qpn);
void fake_verbs_release_some(uint32_t qpn, enum fake_queue queue, uint32_t count);
/* Returns how many of the queue are held. */
uint32_t fake_verbs_held(uint32_t qpn, enum fake_queue queue);

/* Drops all packets from and to the queue pair, or stops doing so. */
void fake_verbs_cut(uint32_t qpn, bool cut);

/*
 * Delivers an asynchronous event: of the queue pair, of the queue that its sends complete on, of a
 * port (by its number) or of a device. All contexts of the device get events of ports and devices.
 * Returns false if there is no recipient.
 */
bool fake_verbs_qp_event(uint32_t qpn, enum ibv_event_type type, bool fail);
bool fake_verbs_cq_event(uint32_t qpn);
bool fake_verbs_port_event(uint32_t device, uint32_t port, enum ibv_event_type type);
/* Events that were not read, and that were read and not acknowledged. */
uint32_t fake_verbs_unread_events(void);
uint32_t fake_verbs_unacked_events(void);

/* A queue pair as it was made and modified. */
#define FAKE_MODIFIES 8
struct fake_qp_info {
    uint32_t qpn;
    enum ibv_qp_state state;
    const struct ibv_context *context;
    const struct ibv_cq *send_cq;
    const struct ibv_cq *recv_cq;
    struct ibv_qp_init_attr init;
    uint32_t modifies;
    struct ibv_qp_attr attr[FAKE_MODIFIES];
    int mask[FAKE_MODIFIES];
    uint32_t posted[2];   /* requests ever taken */
    uint32_t signaled;    /* of the sends */
    uint32_t doorbells;   /* calls of post_send */
    uint32_t waiting[2];  /* taken, and not done yet */
    uint64_t inline_data; /* bytes sent inline */
};
/* Returns the i-th existing one, in the order of creation, or false. */
bool fake_verbs_qp(uint32_t i, struct fake_qp_info *info);
/* Returns the queue pair of this number, or NULL. */
struct ibv_qp *fake_verbs_find(uint32_t qpn);
/* Returns the attributes of its change to the state; fails the program if there was none. */
const struct ibv_qp_attr *fake_verbs_change(const struct fake_qp_info *info,
                                            enum ibv_qp_state state);

/* A completion queue: the i-th of those with a channel, in the order of their making. */
struct fake_cq_info {
    const struct ibv_context *context;
    uint32_t depth; /* asked for */
    uint32_t count; /* completions on it */
    uint32_t most;  /* most completions that were on it at a time */
    uint32_t qps;
    uint64_t events; /* delivered */
};
bool fake_verbs_cq(uint32_t i, struct fake_cq_info *info);

#endif
