/* SPDX-License-Identifier: MIT */
/*
 * The inbox of a CQ: messages from other owners and from the helper. Any thread pushes, the owner
 * drains. Messages of one sender keep their order.
 *
 * No message is left lying: pusher and owner each write one word and then read
 * the other's, all sequentially consistent, so at least one of them sees the
 * other. The pusher writes the inbox and reads owner and armed; the owner
 * writes owner (leaving) or armed (going to sleep) and reads the inbox.
 *
 * A turn ends after SOFT_TURN_BYTES, so that threads that push faster than the owner copies cannot
 * keep it draining. The rest is left to the next owner: the helper, which is kicked, or a thread
 * that waits.
 */
#include "transport/soft/core/soft.h"

static void (*const handlers[SOFT_MESSAGE_KINDS])(struct soft_message *message) = {
    [SOFT_REQUEST] = slu_soft_self_request, [SOFT_RESPONSE] = slu_soft_self_response,
    [SOFT_HELLO] = slu_soft_self_request,   [SOFT_CLOSE] = slu_soft_self_close,
    [SOFT_ATTACH] = slu_soft_tcp_attach,    [SOFT_LOST] = slu_soft_tcp_lost,
};

void slu_soft_inbox_push(struct soft_cq *cq, struct soft_message *message)
{
    message->next = atomic_load_explicit(&cq->inbox, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&cq->inbox, &message->next, message))
        ;
}

static struct soft_message *reverse(struct soft_message *list)
{
    struct soft_message *reversed = NULL;
    while (list != NULL) {
        struct soft_message *next = list->next;
        list->next = reversed;
        reversed = list;
        list = next;
    }
    return reversed;
}

static struct soft_message *next_message(struct soft_cq *cq)
{
    if (cq->rest == NULL && !slu_soft_inbox_empty(cq))
        cq->rest = reverse(atomic_exchange(&cq->inbox, NULL));
    struct soft_message *message = cq->rest;
    if (message != NULL)
        cq->rest = message->next;
    return message;
}

/*
 * Executes messages until the inbox is empty or the turn is over. The caller has set drained to 0
 * at the beginning of its turn. The inbox of a dead CQ is drained to the end, as no later turn
 * would.
 */
bool slu_soft_inbox_drain(struct soft_cq *cq)
{
    while (cq->drained < SOFT_TURN_BYTES || atomic_load_explicit(&cq->dead, memory_order_relaxed)) {
        struct soft_message *message = next_message(cq);
        if (message == NULL)
            return true;
        handlers[message->kind](message);
        cq->drained += SOFT_SHORT_BYTES;
    }
    return cq->rest == NULL && slu_soft_inbox_empty(cq);
}
