/* SPDX-License-Identifier: MIT */
/*
 * Frames of the soft transport's wire over a socket, from a peer of ours: decoded frames are
 * encoded to the same bytes; no byte is written outside of granted rights; posted requests complete
 * once, and all of them when the peer has left.
 *
 * The first byte of an input selects the posted requests. Then come pieces: raw bytes, or frames,
 * whose address and key are relative to a region, and whose number is relative to the next one.
 * Between them are polls, and receives that are posted late.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "fuzz.h"
#include "transport/soft/helper/meet.h"
#include "transport/soft/tcp/tcp.h"

const char fuzz_name[] = "frame";

#define REGION 256
#define FILL 0x5c
#define DEPTH 8
#define LENGTH 100 /* of receives and reads */
#define MOST_PAYLOAD 600
/* Sockets that the helper thread may still hold. */
#define MOST_LINGERING 64

/* Memory that peers may change lies between memory that they may not. */
static struct {
    uint8_t before[REGION], region[REGION], between[REGION], read_only[REGION], after[REGION];
    uint8_t landing[2 * DEPTH][REGION];
} memory __attribute__((aligned(4096)));

static const struct slu_transport *const soft = &slu_transport_soft;
static struct slu_tcontext *context;
static struct slu_tpd *pd;
static struct slu_cq *cq;
static struct slu_tmr *region, *read_only, *landing;

static struct slu_qp *qp;
static int peer;          /* our end */
static uint32_t requests; /* that it has said */
static uint32_t posted;   /* ids are 1 and up */
static uint32_t done[2 * DEPTH + 1];

static void register_memory(void *addr, size_t length, uint32_t access, struct slu_tmr **mr)
{
    hold(soft->mr_register(pd, addr, length, access, mr) == 0, "no region");
}

/* Opened once, as it has a thread. */
static void open_device(void)
{
    static const struct sluice_context_attr attr = {.size = sizeof(attr)};
    if (context != NULL) {
        return;
    }
    hold(soft->open("soft", &attr, &context) == 0, "no context");
    hold(soft->pd_alloc(context, &pd) == 0, "no domain");
    hold(soft->cq_create(context, 4 * DEPTH, &cq) == 0, "no queue");
    register_memory(memory.region, REGION,
                    SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ |
                        SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC,
                    &region);
    register_memory(memory.read_only, REGION, SLUICE_ACCESS_REMOTE_READ, &read_only);
    register_memory(memory.landing, sizeof(memory.landing), SLUICE_ACCESS_LOCAL_WRITE, &landing);
}

/* The peer has no address, so that the library does not dial: the connection comes from us. */
static void connect_peer(void)
{
    struct slu_endpoint remote = {.transport = SLU_TRANSPORT_SOFT,
                                  .qpn = 1,
                                  .initiator_depth = 4,
                                  .responder_depth = 4,
                                  .max_message = 1 << 20};
    struct tcp_attach *attach = calloc(1, sizeof(*attach));
    int fds[2];
    hold(attach != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "%s",
         strerror(errno));
    hold(soft->qp_connect(qp, &remote) == 0, "it does not connect");
    peer = fds[1];
    attach->fd = fds[0];
    attach->message.kind = SOFT_ATTACH;
    attach->message.to = (struct soft_qp *)qp;
    slu_soft_qp_hold(attach->message.to);
    slu_soft_send((struct soft_cq *)cq, &attach->message, (struct soft_cq *)cq);
}

static struct sluice_sge next_place(uint32_t length)
{
    return (struct sluice_sge){.addr = (uint64_t)(uintptr_t)memory.landing[posted],
                               .length = length,
                               .lkey = landing->lkey};
}

static void post_receive(void)
{
    struct sluice_sge sge = next_place(LENGTH);
    struct slu_receive_wr wr = {.id = ++posted, .sge_count = 1, .sges = &sge}, *bad;
    hold(soft->post_receive(qp, &wr, &bad) == 0, "it is not posted");
}

static void post_request(uint32_t opcode)
{
    static const uint64_t operand[2] = {0, 1};
    struct sluice_sge sge = next_place(slu_opcode_is_atomic(opcode) ? 8 : LENGTH);
    struct slu_send_wr wr = {.id = ++posted,
                             .opcode = opcode,
                             .flags = SLU_SIGNALED,
                             .sge_count = 1,
                             .sges = &sge,
                             .operand = operand,
                             .remote_addr = 4096,
                             .rkey = 5},
                       *bad;
    hold(soft->post_send(qp, &wr, &bad) == 0, "it is not posted");
}

static void take_completions(void)
{
    struct slu_wc wcs[4];
    int count;
    do {
        count = soft->cq_poll(cq, wcs, 4);
        hold(count >= 0, "%d", count);
        for (int i = 0; i < count; i++) {
            hold(wcs[i].id > 0 && wcs[i].id <= posted, "id %llu", (unsigned long long)wcs[i].id);
            hold(done[wcs[i].id]++ == 0, "%llu completes again", (unsigned long long)wcs[i].id);
            hold(wcs[i].status <= SLUICE_STATUS_GENERAL_ERR, "status %u", wcs[i].status);
            hold(wcs[i].bytes <= SOFT_MAX_MESSAGE, "%llu bytes", (unsigned long long)wcs[i].bytes);
        }
    } while (count > 0);
}

/* Bytes from the library are dropped, but must be read so that they do not block it. */
static void look(void)
{
    uint8_t bytes[4096];
    take_completions();
    while (recv(peer, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
    }
}

static void say(const uint8_t *bytes, size_t count)
{
    (void)!send(peer, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool is_request(uint8_t type)
{
    return type == TCP_SEND || type == TCP_WRITE || type == TCP_READ_REQUEST ||
           type == TCP_COMPARE_SWAP || type == TCP_FETCH_ADD;
}

static void say_frame(struct fuzz_input *input, const struct slu_tmr *to, uint8_t filling)
{
    uint8_t bytes[TCP_FRAME_BYTES + MOST_PAYLOAD];
    struct tcp_frame frame;
    uint64_t length;
    frame.type = fuzz_byte(input);
    frame.flags = fuzz_byte(input);
    frame.status = fuzz_byte(input);
    frame.immediate = (uint32_t)fuzz_number(input, 4);
    frame.seq = (uint32_t)fuzz_number(input, 1);
    frame.ack = (uint32_t)fuzz_number(input, 1);
    frame.credit = (uint32_t)fuzz_number(input, 4);
    frame.rkey = (uint32_t)fuzz_number(input, 1);
    frame.addr = (uint64_t)(int64_t)(int16_t)fuzz_number(input, 2);
    frame.length = fuzz_number(input, 2);
    frame.length = frame.length == UINT16_MAX ? UINT64_MAX : frame.length;
    if (is_request(frame.type)) {
        frame.seq += requests++;
    }
    if (is_request(frame.type) && frame.type != TCP_SEND) {
        frame.addr += to->iova;
        frame.rkey ^= to->rkey;
    }
    slu_soft_frame_encode(&frame, bytes);
    length = slu_soft_frame_payload(&frame);
    length = length > MOST_PAYLOAD ? MOST_PAYLOAD : length;
    memset(bytes + TCP_FRAME_BYTES, filling, length);
    say(bytes, TCP_FRAME_BYTES + length);
}

static void say_bytes(struct fuzz_input *input)
{
    size_t count = fuzz_byte(input);
    const uint8_t *bytes = fuzz_bytes(input, &count);
    say(bytes, count);
}

static bool is_filled(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != FILL) {
            return false;
        }
    }
    return true;
}

static void check_memory(void)
{
    hold(is_filled(memory.before, REGION) && is_filled(memory.between, REGION) &&
             is_filled(memory.read_only, REGION) && is_filled(memory.after, REGION),
         "memory was written that no peer may write");
    for (size_t i = 0; i < 2 * DEPTH; i++) {
        hold(is_filled(memory.landing[i] + LENGTH, REGION - LENGTH), "behind receive %zu", i);
        hold(i < posted || is_filled(memory.landing[i], LENGTH), "receive %zu, never posted", i);
    }
}

static void post_all(unsigned what)
{
    static const uint32_t opcodes[] = {SLUICE_OP_READ, SLUICE_OP_FETCH_ADD, SLUICE_OP_SEND};
    for (unsigned i = 0; i < (what >> 3) % 4; i++) {
        post_receive();
    }
    for (unsigned i = 0; i < 3; i++) {
        if ((what >> i) % 2 == 1) {
            post_request(opcodes[i]);
        }
    }
}

/* The end of a peer ends all posted requests. */
static void end(void)
{
    uint32_t left = posted;
    shutdown(peer, SHUT_WR);
    for (int i = 0; i < 1000 && left > 0; i++) {
        look();
        left = 0;
        for (uint32_t id = 1; id <= posted; id++) {
            left += done[id] == 0;
        }
    }
    hold(left == 0, "%u of %u have not completed", left, posted);
    fuzz_taken += ((struct soft_qp *)qp)->tcp->executed > 0;
    close(peer);
    soft->qp_destroy(qp);
    qp = NULL;
}

static void await_lingering(int before)
{
    for (int i = 0; fuzz_free_descriptor() > before + MOST_LINGERING; i++) {
        hold(i < 10000, "sockets are left");
        usleep(1000);
    }
}

static void try_bytes(const uint8_t *data, size_t size)
{
    uint8_t again[TCP_FRAME_BYTES], *bytes;
    struct tcp_frame frame;
    if (size < TCP_FRAME_BYTES) {
        return;
    }
    /* A buffer of exactly that size, so that reading one byte too many is noticed. */
    bytes = malloc(TCP_FRAME_BYTES);
    hold(bytes != NULL, "no memory");
    memcpy(bytes, data + size - TCP_FRAME_BYTES, TCP_FRAME_BYTES);
    if (slu_soft_frame_decode(bytes, &frame)) {
        hold(frame.type >= TCP_SEND && frame.type < TCP_TYPES, "type %u", frame.type);
        hold(slu_soft_frame_payload(&frame) <= SOFT_MAX_MESSAGE, "too long");
        slu_soft_frame_encode(&frame, again);
        hold(memcmp(bytes, again, sizeof(again)) == 0, "other bytes");
    }
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct slu_qp_attr attr = {.send_depth = DEPTH,
                                            .receive_depth = DEPTH,
                                            .max_sge = 2,
                                            .access = SLUICE_ACCESS_REMOTE_READ |
                                                      SLUICE_ACCESS_REMOTE_WRITE |
                                                      SLUICE_ACCESS_REMOTE_ATOMIC,
                                            .read_depth = 4,
                                            .max_message = 1 << 20};
    static int before;
    struct fuzz_input input = {data, size};
    try_bytes(data, size);
    open_device();
    memset(&memory, FILL, sizeof(memory));
    memset(done, 0, sizeof(done));
    posted = requests = 0;
    hold(soft->qp_create(pd, cq, &attr, &qp) == 0, "no queue pair");
    before = before == 0 ? fuzz_free_descriptor() : before;
    soft->cq_enter(cq);
    connect_peer();
    post_all(fuzz_byte(&input));
    while (input.left > 0) {
        unsigned step = fuzz_byte(&input);
        if (step % 4 == 0) {
            say_bytes(&input);
        } else if (step % 8 == 5 && posted < DEPTH) {
            post_receive();
        } else if (step % 4 == 1) {
            look();
        } else {
            say_frame(&input, step % 4 == 2 ? region : read_only, (uint8_t)(step >> 2));
        }
    }
    end();
    check_memory();
    soft->cq_leave(cq);
    await_lingering(before);
    return 0;
}
