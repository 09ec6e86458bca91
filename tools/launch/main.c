/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

void die(int status, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    fprintf(stderr, "sluice-launch: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    exit(status);
}

void say(struct launcher *launcher, const char *format, ...)
{
    struct sink *sink = launcher->streams[1];
    char text[1024];
    va_list list;
    int count;

    va_start(list, format);
    count = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    count = count < (int)sizeof text ? count : (int)sizeof text - 1;
    buffer_add(&sink->unwritten, "sluice-launch: ", 15);
    buffer_add(&sink->unwritten, text, (size_t)count);
    buffer_add(&sink->unwritten, "\n", 1);
}

/* A standard stream that is closed would be the first descriptor that is opened here. */
static void open_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            exit(STATUS_ARGUMENTS);
}

/* Tells whether a user has a secret, or has chosen to have none. */
static bool has_own_secret(const struct job *job)
{
    static const char name[] = "SLUICE_SECRET_FILE=";

    for (uint32_t i = 0; job->environment[i] != NULL; i++)
        if (strncmp(job->environment[i], name, sizeof name - 1) == 0)
            return true;
    return getenv("SLUICE_SECRET_FILE") != NULL;
}

/* Starts the ranks of this host, or the launchers of the hosts. */
static void begin(struct launcher *launcher)
{
    static char root[64], name[64];
    char text[512];
    int status;

    make_job_name(name, sizeof name);
    launcher->job.name = name;
    if (!has_own_secret(&launcher->job))
        make_secret(&launcher->job);
    publish_secret(launcher);
    if (launcher->job.places[0].host[0] == '\0') {
        status = ranks_check(launcher, text, sizeof text);
        if (status != 0)
            die(status, "%s", text);
        find_local_root(root, sizeof root);
        launcher->job.root = root;
    }
    children_start(launcher);
    ranks_start(launcher);
}

int main(int count, char **words)
{
    static struct launcher launcher = {.secret = -1, .up = {.in = -1, .out = -1}, .watcher = -1};

    open_standard_streams();
    options_read(&launcher, count, words);
    signals_init();
    limits_raise();
    launcher.watcher = watcher_start();
    sinks_init(&launcher);
    if (launcher.remote) {
        remote_begin(&launcher);
        loop_run(&launcher);
        return launcher.orphan ? STATUS_LOST : 0;
    }
    verdict_init(&launcher);
    begin(&launcher);
    loop_run(&launcher);
    return verdict_status(&launcher);
}
