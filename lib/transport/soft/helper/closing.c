/* SPDX-License-Identifier: MIT */
/*
 * Closing sockets: the helper reads and discards input until the peer has closed, too, or
 * LINGER_TIME has passed. The kernel delivers the last bytes that were sent, but it drops them and
 * resets the connection if a socket is closed with unread input. Closing the context waits for no
 * peer.
 */
#include "transport/soft/helper/helper.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_TIME SLUICE_S(1)
#define LAST_READS 8

static void keep(struct soft_helper *helper, struct lingering *lingering)
{
    pthread_mutex_lock(&helper->lock);
    lingering->next = helper->lingering;
    helper->lingering = lingering;
    pthread_mutex_unlock(&helper->lock);
    atomic_store(&helper->lingers, true);
}

void slu_soft_helper_linger(struct soft_context *context, int fd)
{
    struct lingering *lingering = malloc(sizeof(*lingering));
    if (lingering == NULL) {
        slu_fd_close(fd);
        return;
    }
    int64_t now = slu_now();
    *lingering = (struct lingering){.fd = fd, .deadline = now + LINGER_TIME};
    keep(context->helper, lingering);
    slu_soft_helper_wake_before(context->helper, now + SLUICE_MS(LINGER_MS));
}

bool slu_soft_tcp_discard(int fd)
{
    SLU_UNCANCELLED_BLOCK;
    uint8_t trash[4096];
    ssize_t got;
    int budget = 256;
    do
        got = recv(fd, trash, sizeof(trash), MSG_DONTWAIT);
    while ((got > 0 || (got < 0 && errno == EINTR)) && --budget > 0);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

void slu_soft_linger_tick(struct soft_helper *helper)
{
    int64_t now = slu_now();
    atomic_store(&helper->lingers, false);
    pthread_mutex_lock(&helper->lock);
    struct lingering *list = helper->lingering;
    helper->lingering = NULL;
    pthread_mutex_unlock(&helper->lock);
    for (struct lingering *next; list != NULL; list = next) {
        next = list->next;
        if (slu_soft_tcp_discard(list->fd) || now >= list->deadline) {
            slu_fd_close(list->fd);
            free(list);
        } else {
            keep(helper, list);
        }
    }
}

void slu_soft_linger_end(struct soft_helper *helper)
{
    while (helper->lingering != NULL) {
        struct lingering *lingering = helper->lingering;
        helper->lingering = lingering->next;
        for (int reads = 0; reads < LAST_READS && !slu_soft_tcp_discard(lingering->fd); reads++)
            ;
        slu_fd_close(lingering->fd);
        free(lingering);
    }
}
