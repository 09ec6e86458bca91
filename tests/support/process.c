/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "suite.h"

int count_fds(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) {
        return -1;
    }
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    return count - 1;
}

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t cpu_used(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void let_pass(int64_t nanoseconds)
{
    int64_t end = clock_now() + nanoseconds;
    for (int64_t left = nanoseconds; left > 0; left = end - clock_now()) {
        poll(NULL, 0, (int)((left + 999999) / 1000000));
    }
}

int settle_fds(int most)
{
    int64_t end = clock_now() + 3000000000;
    int count = count_fds();
    while (count > most && clock_now() < end) {
        let_pass(5000000);
        count = count_fds();
    }
    return count;
}

/* The pretend device of check-verbs.sh, which the kernel does not know, counts its own objects. */
static int (*find_fake_count(void))(const char *)
{
    return (int (*)(const char *))dlsym(RTLD_DEFAULT, "fake_verbs_count");
}

enum sluice_error_class class_of_own_mistakes(void)
{
    struct utsname name;
    int major = 0, minor = 0;
    if (strncmp(test_device(), "rxe", 3) != 0 || uname(&name) != 0) {
        return SLUICE_CLASS_LOCAL;
    }
    require(sscanf(name.release, "%d.%d", &major, &minor) == 2, "release %s", name.release);
    return major > 6 || (major == 6 && minor > 1) ? SLUICE_CLASS_PEER_LOST : SLUICE_CLASS_LOCAL;
}

bool device_is_pretend(void)
{
    return !device_is_soft() && find_fake_count() != NULL;
}

int count_objects(const char *kind)
{
    char command[160];
    char line[512];
    char owner[32];
    int count = 0;
    if (device_is_soft()) {
        return 0;
    }
    int (*fake_count)(const char *) = find_fake_count();
    if (fake_count) {
        return fake_count(kind);
    }
    snprintf(command, sizeof(command),
             "PATH=$PATH:/usr/sbin:/sbin rdma resource show %s | grep -w %s", kind, test_device());
    snprintf(owner, sizeof(owner), " pid %d ", (int)getpid());
    FILE *pipe = popen(command, "re");
    if (!pipe) {
        return -1;
    }
    while (fgets(line, sizeof(line), pipe)) {
        count += strstr(line, owner) != NULL;
    }
    /* 1: there are none at all. */
    int status = pclose(pipe);
    return WIFEXITED(status) && WEXITSTATUS(status) <= 1 ? count : -1;
}

/* Returns the letter behind the name, which is in brackets and may contain any letters. */
static char state_of(pid_t pid, const char *thread)
{
    char path[300], line[400] = "";
    snprintf(path, sizeof(path), "/proc/%d/task/%.200s/stat", (int)pid, thread);
    FILE *file = fopen(path, "re");
    if (file) {
        if (!fgets(line, sizeof(line), file)) {
            line[0] = '\0';
        }
        fclose(file);
    }
    const char *end = strrchr(line, ')');
    return end && end[1] == ' ' ? end[2] : '?';
}

static bool is_stopped(pid_t pid)
{
    char path[64];
    bool stopped = true;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    require(folder, "%s: %s", path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] != '.' && state_of(pid, entry->d_name) != 'T') {
            stopped = false;
        }
    }
    closedir(folder);
    return stopped;
}

void stop_process(pid_t pid)
{
    int64_t begin = fair_now();
    require(kill(pid, SIGSTOP) == 0, "%s", strerror(errno));
    while (!is_stopped(pid)) {
        require(fair_now() - begin < SLUICE_S(30), "process %d goes on", (int)pid);
        let_pass(SLUICE_MS(1));
    }
}
