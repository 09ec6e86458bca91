/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that libibverbs opens for the library are closed in a child of fork(2), at whatever
 * moment another thread forks: also right after opening and right before closing. Here each of
 * these moments is made long.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/process.h"
#include "check.h"

#define FDS 256
#define MOMENT SLUICE_US(500)

struct ibv_context *__real_ibv_open_device(struct ibv_device *device);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device);
int __real_ibv_close_device(struct ibv_context *ibv);
int __wrap_ibv_close_device(struct ibv_context *ibv);
struct ibv_comp_channel *__real_ibv_create_comp_channel(struct ibv_context *ibv);
struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *ibv);
int __real_ibv_destroy_comp_channel(struct ibv_comp_channel *channel);
int __wrap_ibv_destroy_comp_channel(struct ibv_comp_channel *channel);

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *ibv = __real_ibv_open_device(device);
    let_pass(MOMENT);
    return ibv;
}

int __wrap_ibv_close_device(struct ibv_context *ibv)
{
    let_pass(MOMENT);
    return __real_ibv_close_device(ibv);
}

struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *ibv)
{
    struct ibv_comp_channel *channel = __real_ibv_create_comp_channel(ibv);
    let_pass(MOMENT);
    return channel;
}

int __wrap_ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    let_pass(MOMENT);
    return __real_ibv_destroy_comp_channel(channel);
}

/* Descriptors of the pretend device are all of one kind, as are others that the library keeps. */
static bool is_event_fd(int fd)
{
    char path[32], target[32] = "";
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return readlink(path, target, sizeof(target) - 1) > 0 &&
           strcmp(target, "anon_inode:[eventfd]") == 0;
}

enum { OPEN_DEVICES, LIST_DEVICES, CHANNELS, WORKS };

static int work;
static atomic_bool stopped;
static atomic_uint rounds;

static void open_all(void)
{
    struct sluice_context *context = sluice_context_open(test_device(), NULL);
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    for (int i = 0; i < 4 && work == CHANNELS; i++) {
        struct sluice_prepared_channel *prepared = made(sluice_channel_prepare(pd, NULL));
        sluice_prepared_channel_free(prepared);
    }
    sluice_pd_free(pd);
    sluice_context_close(context);
}

static void *open_and_close(void *argument)
{
    while (!atomic_load(&stopped)) {
        if (work == LIST_DEVICES) {
            sluice_device_list_free(sluice_device_list_get());
        } else {
            open_all();
        }
        atomic_fetch_add(&rounds, 1);
    }
    return argument;
}

/* The child only reads: it cannot release locks that other threads held at the fork. */
static void fork_and_look(const bool *foreign)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        for (int fd = 0; fd < FDS; fd++) {
            if (!foreign[fd] && is_event_fd(fd)) {
                _exit(fd);
            }
        }
        _exit(FDS - 1);
    }
    require(pid > 0, "%s", strerror(errno));
    require(waitpid(pid, &status, 0) == pid, "%s", strerror(errno));
    require(WIFEXITED(status), "the child ended with %#x", status);
    require(WEXITSTATUS(status) == FDS - 1, "the child has %d of the device", WEXITSTATUS(status));
}

TEST(no_descriptor_gets_to_a_child, .times = WORKS)
{
    bool foreign[FDS];
    unsigned most = short_run() ? 100 : 400;
    pthread_t threads[2];
    work = _i;
    atomic_store(&stopped, false);
    atomic_store(&rounds, 0);
    for (int fd = 0; fd < FDS; fd++) {
        foreign[fd] = is_event_fd(fd);
    }
    for (size_t i = 0; i < COUNT(threads); i++) {
        require_ok(pthread_create(&threads[i], NULL, open_and_close, NULL));
    }
    for (unsigned i = 0; i < most || atomic_load(&rounds) < 20; i++) {
        fork_and_look(foreign);
    }
    atomic_store(&stopped, true);
    for (size_t i = 0; i < COUNT(threads); i++) {
        require_ok(pthread_join(threads[i], NULL));
    }
}

int main(void)
{
    return run_verbs("verbs_forked", WIRE_SELF, 60);
}
