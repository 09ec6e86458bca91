/* SPDX-License-Identifier: MIT */
/* The ranks that this process itself has started. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"

static bool is_program(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* Tells whether execvp(3) would find the program. */
static bool program_exists(const char *name)
{
    const char *at = getenv("PATH");

    if (strchr(name, '/') != NULL)
        return is_program(name);
    for (at = at != NULL ? at : "/bin:/usr/bin";; at++) {
        size_t length = strcspn(at, ":");
        char path[4096];

        if (snprintf(path, sizeof path, "%.*s%s%s", (int)length, at, length > 0 ? "/" : "", name) <
                (int)sizeof path &&
            is_program(path))
            return true;
        at += length;
        if (*at == '\0')
            return false;
    }
}

int ranks_check(const struct launcher *launcher, char *text, size_t size)
{
    const struct job *job = &launcher->job;

    if (job->directory != NULL && job->directory[0] != '\0' && chdir(job->directory) != 0) {
        snprintf(text, size, "folder %s: %s", job->directory, strerror(errno));
        return STATUS_ARGUMENTS;
    }
    if (!program_exists(job->command[0])) {
        snprintf(text, size, "%s: there is no such program, or it cannot be executed",
                 job->command[0]);
        return STATUS_NO_PROGRAM;
    }
    return job->bind ? bind_find(text, size) : 0;
}

static void set_number(const char *name, uint32_t number)
{
    char text[12];

    snprintf(text, sizeof text, "%u", number);
    setenv(name, text, 1);
}

/* In the process of a rank. fds: its standard output and standard error, or -1 for ours. */
static void run_rank(const struct launcher *launcher, uint32_t index, const int fds[2])
{
    const struct job *job = &launcher->job;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), error;

    dup2(null, STDIN_FILENO);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            dup2(fds[i], STDOUT_FILENO + i);
    set_number("SLUICE_RANK", launcher->first + index);
    set_number("SLUICE_RANKS", job->ranks);
    set_number("SLUICE_LOCAL_RANK", launcher->local + index);
    setenv("SLUICE_ROOT", job->root, 1);
    setenv("SLUICE_JOB", job->name, 1);
    if (job->bind)
        bind_self(launcher->local + index);
    limits_restore();
    signals_restore();
    execvp(job->command[0], (char *const *)job->command);
    error = errno;
    fprintf(stderr, "sluice-launch: cannot execute %s: %s\n", job->command[0], strerror(error));
    _exit(error == ENOENT ? STATUS_NO_PROGRAM : STATUS_NO_PROGRAM - 1);
}

/* Opens a pipe for the output of a rank. The rank itself never finds it nonblocking. */
static int open_source(struct source *source)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    source->fd = fds[0];
    return fds[1];
}

static void start_rank(struct launcher *launcher, uint32_t index)
{
    struct rank *rank = &launcher->ranks[index];
    bool direct = launcher->job.plain && !launcher->remote;
    int fds[2] = {-1, -1};

    rank->sources[0].fd = rank->sources[1].fd = -1;
    for (int i = 0; i < 2 && !direct; i++) {
        fds[i] = open_source(&rank->sources[i]);
        if (fds[i] < 0)
            die(STATUS_ARGUMENTS, "no pipe for the output of rank %u: %s", launcher->first + index,
                strerror(errno));
    }
    rank->id = process_start(launcher);
    if (rank->id == 0)
        run_rank(launcher, index, fds);
    if (rank->id < 0)
        die(STATUS_ARGUMENTS, "no process for rank %u: %s", launcher->first + index,
            strerror(errno));
    launcher->running++;
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

void ranks_start(struct launcher *launcher)
{
    if (launcher->count == 0)
        return;
    launcher->ranks = calloc(launcher->count, sizeof *launcher->ranks);
    if (launcher->ranks == NULL)
        die(STATUS_ARGUMENTS, "no memory for %u ranks", launcher->count);
    for (uint32_t i = 0; i < launcher->count; i++)
        start_rank(launcher, i);
}

void ranks_signal(const struct launcher *launcher, int number)
{
    for (uint32_t i = 0; i < launcher->count; i++)
        if (launcher->ranks != NULL && launcher->ranks[i].id > 0)
            process_signal(launcher->ranks[i].id, number);
}

bool ranks_reap(struct launcher *launcher, pid_t id)
{
    siginfo_t info = {0};
    struct frame_ended ended;
    uint32_t index = 0;

    while (index < launcher->count && (launcher->ranks == NULL || launcher->ranks[index].id != id))
        index++;
    if (index == launcher->count)
        return false;
    if (waitid(P_PID, (id_t)id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != id)
        return true;
    ended.rank = launcher->first + index;
    ended.killed = info.si_code != CLD_EXITED;
    ended.status = (uint32_t)info.si_status;
    /* Until the process is reaped, no other group can have its number. */
    if (ended.killed || ended.status != 0)
        kill(-id, SIGKILL);
    waitpid(id, NULL, WNOHANG);
    launcher->ranks[index].id = 0;
    launcher->running--;
    watcher_forget(launcher, id);
    event_ended(launcher, &ended);
    return true;
}
