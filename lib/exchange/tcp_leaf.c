/* SPDX-License-Identifier: MIT */
/*
 * Calls of all ranks but rank 0. Each sends what it gives, and receives the result or an error. A
 * rank whose deadline has passed says so, and waits TCP_GRACE_TIME for rank 0 to name the missing
 * ranks.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "exchange/tcp.h"

static int fail_gone(struct tcp *tcp)
{
    return slu_tcp_fail_without_root(tcp, slu_fail(ECONNRESET, "rank 0 at %s is gone", tcp->root));
}

/* Receives what follows the head of a verdict, whose length was checked. */
static int receive_verdict(struct tcp *tcp, size_t count)
{
    uint8_t *bytes = malloc(count);
    int error;

    if (bytes == NULL)
        return slu_fail(ENOMEM, "no memory for the reason why the ranks failed");
    tcp->link.in = bytes;
    tcp->link.want = count;
    tcp->link.out_count = 0;
    error = slu_tcp_transfer(&tcp->link, slu_after(TCP_GRACE_TIME));
    if (error == 0) {
        memset(tcp->missing, 0, tcp->ranks);
        error = slu_tcp_verdict_read(bytes, count, tcp->missing, tcp->ranks);
        slu_exchange_set_missing(tcp->exchange, tcp->missing);
    } else {
        error = slu_fail(ECONNRESET, "rank 0 at %s is gone", tcp->root);
    }
    tcp->link.want = 0;
    free(bytes);
    return error;
}

/* Fails with the reason that rank 0 gives in another frame than the one that was expected. */
static int check_reply(struct tcp *tcp, const uint8_t head[TCP_FRAME_BYTES],
                       const struct tcp_call *call)
{
    struct tcp_frame frame;

    if (slu_tcp_frame_decode(head, &frame) < 0)
        return slu_fail(EPROTO, "rank 0 at %s sent something that is not a frame", tcp->root);
    if (frame.type == TCP_VERDICT && slu_tcp_verdict_possible(frame.bytes, tcp->ranks))
        return receive_verdict(tcp, (size_t)frame.bytes);
    if (frame.type != call->type || frame.sequence != tcp->sequence || frame.bytes != call->bytes)
        return slu_fail(EPROTO,
                        "rank 0 at %s answers %s of %zu byte%s, call %llu, with %s of %llu byte%s, "
                        "call %llu",
                        tcp->root, slu_tcp_type_name(call->type), call->bytes, SLU_S(call->bytes),
                        (unsigned long long)tcp->sequence, slu_tcp_type_name(frame.type),
                        (unsigned long long)frame.bytes, SLU_S(frame.bytes),
                        (unsigned long long)frame.sequence);
    return 0;
}

/*
 * After the deadline, tells rank 0, if the connection takes it, and receives who was missing. A
 * result that comes now is too late, because rank 0 learns of the timeout.
 */
static int report_timeout(struct tcp *tcp, uint8_t head[TCP_FRAME_BYTES],
                          const struct tcp_call *call)
{
    struct tcp_frame frame = {.type = TCP_GAVE_UP, .sequence = tcp->sequence};
    uint8_t bytes[TCP_FRAME_BYTES];
    int error;

    slu_tcp_frame_encode(&frame, bytes);
    if (tcp->link.out_count == 0)
        slu_tcp_link_queue(&tcp->link, bytes, sizeof bytes);
    error = slu_tcp_transfer(&tcp->link, slu_after(TCP_GRACE_TIME));
    tcp->link.out_count = 0;
    if (error == -ETIMEDOUT)
        return slu_tcp_fail_without_root(
            tcp,
            slu_fail(ETIMEDOUT, "rank 0 at %s did not come to %s before the deadline of rank %u",
                     tcp->root, slu_tcp_type_name(call->type), tcp->rank));
    if (error < 0)
        return fail_gone(tcp);
    error = check_reply(tcp, head, call);
    return error < 0
               ? error
               : slu_fail(ETIMEDOUT, "the deadline of rank %u passed just before the end of %s",
                          tcp->rank, slu_tcp_type_name(call->type));
}

/* After the deadline, in the middle of a frame of rank 0. Rank 0 still waits for this rank. */
static int give_up_amid(struct tcp *tcp, const struct tcp_call *call)
{
    struct tcp_frame frame = {.type = TCP_GAVE_UP, .sequence = tcp->sequence};
    uint8_t bytes[TCP_FRAME_BYTES];

    slu_tcp_frame_encode(&frame, bytes);
    slu_tcp_link_queue(&tcp->link, bytes, sizeof bytes);
    (void)slu_tcp_link_send(&tcp->link);
    tcp->link.out_count = 0;
    return slu_tcp_fail_without_root(
        tcp, slu_fail(ETIMEDOUT, "the deadline of rank %u passed in the middle of the result of %s",
                      tcp->rank, slu_tcp_type_name(call->type)));
}

/* Tells whether the result comes along a tree. */
static bool is_relay(const struct tcp *tcp, const uint8_t head[TCP_FRAME_BYTES],
                     const struct tcp_call *call)
{
    struct tcp_frame frame;

    return slu_tcp_frame_decode(head, &frame) == 0 && frame.type == TCP_RELAY &&
           call->type == TCP_ALLGATHER && frame.sequence == tcp->sequence &&
           frame.bytes == call->bytes;
}

/* The call is queued. Receives the head of the reply, and the rest to call->from. */
static int receive_result(struct tcp *tcp, const struct tcp_call *call, size_t count)
{
    uint8_t head[TCP_FRAME_BYTES];
    int error = 0;

    tcp->link.in = head;
    tcp->link.want = sizeof head;
    while (error == 0 && tcp->link.want > 0)
        error = slu_tcp_link_step(&tcp->link, call->until);
    if (error == -ETIMEDOUT)
        return report_timeout(tcp, head, call);
    if (error < 0)
        return fail_gone(tcp);
    if (is_relay(tcp, head, call)) {
        error = slu_tcp_relay(tcp, call, head);
        if (error == -ETIMEDOUT)
            return report_timeout(tcp, head, call);
        if (error == TCP_CUT)
            return give_up_amid(tcp, call);
        if (error != TCP_OTHER)
            return error < 0 ? fail_gone(tcp) : 0;
    }
    error = check_reply(tcp, head, call);
    if (error < 0)
        return error;
    tcp->link.in = call->from;
    tcp->link.want = count;
    error = slu_tcp_transfer(&tcp->link, call->until);
    if (error == -ETIMEDOUT)
        return slu_tcp_fail_without_root(
            tcp,
            slu_fail(ETIMEDOUT, "the deadline of rank %u passed in the middle of the result of %s",
                     tcp->rank, slu_tcp_type_name(call->type)));
    return error < 0 ? fail_gone(tcp) : 0;
}

int slu_tcp_leaf_open(struct tcp *tcp, int64_t until)
{
    struct tcp_call start = {.type = TCP_STARTED, .until = until};
    int error = slu_tcp_find_root(tcp, until);

    return error < 0 ? error : receive_result(tcp, &start, 0);
}

int slu_tcp_leaf_call(struct tcp *tcp, const struct tcp_call *call)
{
    struct tcp_frame frame = {
        .type = call->type, .sequence = ++tcp->sequence, .bytes = call->bytes};
    size_t all = call->bytes * tcp->ranks;
    uint8_t head[TCP_FRAME_BYTES];
    int error;

    if (call->type == TCP_ALLGATHER) {
        slu_tcp_relay_listen(tcp);
        frame.port = tcp->port;
    }
    slu_tcp_frame_encode(&frame, head);
    slu_tcp_link_queue(&tcp->link, head, sizeof head);
    slu_tcp_link_queue(&tcp->link, call->to, call->type == TCP_ALLTOALL ? all : call->bytes);
    error = receive_result(tcp, call, all);
    /* Otherwise rank 0 would wait for the rest of what this rank gives. */
    if (error < 0)
        slu_tcp_link_close(&tcp->link);
    return error;
}

/* Rank 0 tells all ranks when it comes to this call. */
void slu_tcp_leaf_abandon(struct tcp *tcp)
{
    struct tcp_frame frame = {.type = TCP_NO_MEMORY, .sequence = ++tcp->sequence};
    uint8_t head[TCP_FRAME_BYTES];

    slu_tcp_frame_encode(&frame, head);
    slu_tcp_link_queue(&tcp->link, head, sizeof head);
    tcp->link.want = 0;
    if (slu_tcp_transfer(&tcp->link, slu_after(TCP_GRACE_TIME)) < 0)
        slu_tcp_link_close(&tcp->link);
}
