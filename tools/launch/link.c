/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "launch.h"

#define RECEIVE_BYTES 65536

void link_open(struct link *link, int in, int out)
{
    *link = (struct link){.in = in, .out = out};
    fcntl(in, F_SETFL, O_NONBLOCK);
    fcntl(out, F_SETFL, O_NONBLOCK);
}

void link_close(struct link *link)
{
    if (link->in >= 0)
        close(link->in);
    if (link->out >= 0 && link->out != link->in)
        close(link->out);
    link->in = link->out = -1;
    buffer_free(&link->received);
    buffer_free(&link->unsent);
}

bool link_receive(struct link *link)
{
    static char bytes[RECEIVE_BYTES];
    ssize_t got = read(link->in, bytes, sizeof bytes);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    link->silent = 0;
    buffer_add(&link->received, bytes, (size_t)got);
    return got > 0;
}

/* An error is not handled here: the other direction then ends as well. */
void link_flush(struct link *link)
{
    while (link->out >= 0 && buffer_count(&link->unsent) > 0) {
        ssize_t sent = write(link->out, buffer_front(&link->unsent), buffer_count(&link->unsent));

        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        buffer_drop(&link->unsent, sent < 0 ? buffer_count(&link->unsent) : (size_t)sent);
    }
}
