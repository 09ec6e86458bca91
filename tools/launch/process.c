/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "launch.h"

/* Kept free for the time in which a process is started, and for what the C library opens. */
#define RESERVE 8
/* Descriptors that are looked at to find out how many are in use: few are, at the start. */
#define LOOKED_AT 256

static struct rlimit limit;

/* Linux shares processors among sessions before it shares them among processes (autogroup, in
   sched(7)): a rank that waits and yields lets only ranks of its own session run. So all ranks stay
   in one session, and each has a group without a terminal. */
static void leave_terminal(void)
{
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);

    setpgid(0, 0);
    if (terminal >= 0) {
        ioctl(terminal, TIOCNOTTY);
        close(terminal);
    }
}

pid_t process_start(const struct launcher *launcher)
{
    pid_t id = fork();

    if (id == 0) {
        leave_terminal();
        watcher_join(launcher);
    }
    return id;
}

/* A process that is so new that it has no group yet is signalled alone. */
void process_signal(pid_t id, int number)
{
    if (kill(-id, number) != 0)
        kill(id, number);
}

void limits_raise(void)
{
    struct rlimit highest;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    highest = limit;
    highest.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &highest);
}

void limits_restore(void)
{
    setrlimit(RLIMIT_NOFILE, &limit);
}

uint32_t limits_left(void)
{
    struct rlimit now;
    uint32_t used = RESERVE;

    if (getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_cur > MOST_RANKS * 4)
        return MOST_RANKS * 4;
    for (int fd = 0; fd < LOOKED_AT; fd++)
        used += fcntl(fd, F_GETFD) >= 0;
    return now.rlim_cur > used ? (uint32_t)now.rlim_cur - used : 0;
}
