/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"

enum watched { WATCH_SOURCE, WATCH_CHILD, WATCH_UP, WATCH_SINK };

/* The descriptors that the loop waits for, listed anew for each round. */
struct round {
    struct pollfd *fds;
    struct watch {
        enum watched kind;
        uint32_t index, stream;
    } * watches;
    nfds_t count, room;
};

static void add(struct round *round, int fd, int events, struct watch watch)
{
    if (fd < 0 || events == 0)
        return;
    if (round->count == round->room) {
        nfds_t room = round->room == 0 ? 64 : 2 * round->room;
        struct pollfd *fds = realloc(round->fds, room * sizeof *fds);
        struct watch *watches = realloc(round->watches, room * sizeof *watches);

        if (fds == NULL || watches == NULL)
            die(STATUS_LOST, "no memory for %lu descriptors", (unsigned long)room);
        round->fds = fds;
        round->watches = watches;
        round->room = room;
    }
    round->fds[round->count] = (struct pollfd){.fd = fd, .events = (short)events};
    round->watches[round->count++] = watch;
}

static int events_of(const struct link *link, bool reads)
{
    return (reads ? POLLIN : 0) | (buffer_count(&link->unsent) > 0 ? POLLOUT : 0);
}

static void prepare(const struct launcher *launcher, struct round *round)
{
    bool full[2] = {output_is_full(launcher, 0), output_is_full(launcher, 1)};

    round->count = 0;
    for (uint32_t i = 0; i < launcher->count && launcher->ranks != NULL; i++)
        for (uint32_t stream = 0; stream < 2; stream++)
            add(round, launcher->ranks[i].sources[stream].fd, full[stream] ? 0 : POLLIN,
                (struct watch){WATCH_SOURCE, i, stream});
    for (uint32_t i = 0; i < launcher->child_count; i++) {
        const struct child *child = &launcher->children[i];

        add(round, child->link.in, events_of(&child->link, !child->closed && !full[0] && !full[1]),
            (struct watch){WATCH_CHILD, i, 0});
    }
    add(round, launcher->up.in, POLLIN, (struct watch){WATCH_UP, 0, 0});
    if (buffer_count(&launcher->up.unsent) > 0)
        add(round, launcher->up.out, POLLOUT, (struct watch){WATCH_UP, 1, 0});
    for (uint32_t i = 0; i < 2; i++)
        if (buffer_count(&launcher->sinks[i].unwritten) > 0)
            add(round, launcher->sinks[i].fd, POLLOUT, (struct watch){WATCH_SINK, i, 0});
}

static void handle(struct launcher *launcher, const struct watch *watch, int events)
{
    struct child *child;

    switch (watch->kind) {
    case WATCH_SOURCE:
        /* It may have been closed in this round. */
        if (launcher->ranks[watch->index].sources[watch->stream].fd >= 0)
            source_read(launcher, watch->index, watch->stream);
        break;
    case WATCH_CHILD:
        child = &launcher->children[watch->index];
        if ((events & POLLOUT) != 0)
            link_flush(&child->link);
        if ((events & ~POLLOUT) != 0 && child->state < CHILD_DONE && !child->closed)
            child_receive(launcher, child);
        break;
    case WATCH_UP:
        if (watch->index == 1)
            link_flush(&launcher->up);
        else if (!launcher->orphan)
            remote_receive(launcher);
        break;
    case WATCH_SINK:
        sink_write(launcher, &launcher->sinks[watch->index]);
        break;
    }
}

static void reap(struct launcher *launcher)
{
    for (;;) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return;
        if (!ranks_reap(launcher, info.si_pid)) {
            int status = 0;

            waitpid(info.si_pid, &status, WNOHANG);
            children_reap(launcher, info.si_pid, status);
        }
    }
}

static void take_signals(struct launcher *launcher)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};

    if (signals_take(SIGCHLD))
        reap(launcher);
    for (int i = 0; i < 3; i++) {
        if (!signals_take(numbers[i]))
            continue;
        if (!launcher->remote)
            verdict_signal(launcher, numbers[i]);
        else if (numbers[i] == SIGTERM)
            remote_lost(launcher, "sluice-launch was ended by signal 15");
    }
}

static void tick(struct launcher *launcher)
{
    int64_t now = clock_now();

    if (!launcher->remote)
        verdict_tick(launcher, now);
    if (launcher->kill_at != 0 && now >= launcher->kill_at) {
        launcher->kill_at = 0;
        signal_all(launcher, SIGKILL);
    }
    if (now < launcher->next_tick)
        return;
    /* If this host stood still, no peer could be heard: that counts as one tick. */
    launcher->next_tick = now + TICK;
    children_tick(launcher);
    if (launcher->remote)
        remote_tick(launcher);
}

/* Returns how long nothing is to be done, or -1. */
static int64_t time_left(const struct launcher *launcher)
{
    int64_t next = launcher->remote ? launcher->kill_at : verdict_next(launcher);
    int64_t now = clock_now();

    if ((launcher->remote || launcher->child_count > 0) &&
        (next == 0 || launcher->next_tick < next))
        next = launcher->next_tick;
    return next == 0 ? -1 : next > now ? next - now : 0;
}

static bool ranks_are_over(struct launcher *launcher)
{
    if (launcher->running > 0 || (launcher->remote && !launcher->started && !launcher->orphan))
        return false;
    /* Unmarked lines are not waited for, as if ranks had written them without a launcher. */
    if (launcher->job.plain || launcher->orphan)
        sources_finish(launcher);
    return !sources_open(launcher) && (launcher->orphan || children_done(launcher));
}

/* Returns whether all is over, and everything is written. */
static bool is_over(struct launcher *launcher, bool *finished)
{
    if (!*finished && !ranks_are_over(launcher))
        return false;
    if (!*finished && launcher->remote && !launcher->orphan) {
        frame_add(&launcher->up.unsent, FRAME_DONE, NULL, 0);
        launcher->done_sent = true;
    } else if (!*finished && !launcher->remote) {
        verdict_finish(launcher);
    }
    *finished = true;
    return buffer_count(&launcher->up.unsent) == 0 &&
           buffer_count(&launcher->sinks[0].unwritten) == 0 &&
           buffer_count(&launcher->sinks[1].unwritten) == 0;
}

void loop_run(struct launcher *launcher)
{
    struct round round = {0};
    bool finished = false;

    while (!is_over(launcher, &finished)) {
        prepare(launcher, &round);
        signals_poll(round.fds, round.count, time_left(launcher));
        for (nfds_t i = 0; i < round.count; i++)
            if (round.fds[i].revents != 0)
                handle(launcher, &round.watches[i], round.fds[i].revents);
        take_signals(launcher);
        tick(launcher);
    }
    free(round.fds);
    free(round.watches);
}
