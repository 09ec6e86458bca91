/* SPDX-License-Identifier: MIT */
/*
 * Two copies of the library in one process: each makes one end of a channel, and they pass messages
 * and writes. tests/check-copies.sh builds it twice: with both copies loaded by dlopen(3), and with
 * LINKED, where the first one is linked.
 *
 *   copies FIRST SECOND     the paths of two files
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sluice.h>

/* The calls of this program. */
#define CALLS(call)                   \
    call(channel_close);              \
    call(channel_prepare);            \
    call(channel_query);              \
    call(channel_receive);            \
    call(channel_send);               \
    call(channel_write);              \
    call(context_close);              \
    call(context_open);               \
    call(last_error);                 \
    call(mr_addr);                    \
    call(mr_alloc);                   \
    call(mr_deregister);              \
    call(mr_remote);                  \
    call(mr_sge);                     \
    call(pd_alloc);                   \
    call(pd_free);                    \
    call(prepared_channel_endpoint);  \
    call(prepared_channel_handshake); \
    call(version)
#define FIELD(name) __typeof__(sluice_##name) *name
#define FIND(name) copy->name = (__typeof__(copy->name))dlsym(copy->library, "sluice_" #name)
#define TAKE(name) copy->name = sluice_##name

/* The functions of one copy of the library, and one end of a channel made by them. */
struct copy {
    CALLS(FIELD);
    void *library;
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_prepared_channel *prepared;
    struct sluice_endpoint endpoint;
    struct sluice_channel *channel;
    struct sluice_mr *mr;
    struct sluice_remote_mr remote;
    struct copy *peer;
    int result;
};

static struct copy copies[2];

/* Returns 0 on success. A call that the file has not stays NULL. */
static int load(struct copy *copy, const char *path)
{
    copy->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!copy->library)
        return fprintf(stderr, "%s\n", dlerror());
    CALLS(FIND);
    return 0;
}

static int open_first(struct copy *copy, const char *path)
{
#ifdef LINKED
    (void)path;
    CALLS(TAKE);
    return 0;
#else
    return load(copy, path);
#endif
}

#define DEMAND(what)                                                                          \
    do {                                                                                      \
        if (!(what)) {                                                                        \
            fprintf(stderr, "line %d: %s; %s; %s\n", __LINE__, #what, copies[0].last_error(), \
                    copies[1].last_error());                                                  \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

static void prepare(struct copy *copy)
{
    DEMAND(copy->context = copy->context_open("soft", NULL));
    DEMAND(copy->pd = copy->pd_alloc(copy->context));
    DEMAND(copy->mr = copy->mr_alloc(copy->pd, 1 << 20,
                                     SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE |
                                         SLUICE_ACCESS_REMOTE_READ));
    DEMAND(copy->mr_remote(copy->mr, &copy->remote) == 0);
    DEMAND(copy->prepared = copy->channel_prepare(copy->pd, NULL));
    DEMAND(copy->prepared_channel_endpoint(copy->prepared, &copy->endpoint) == 0);
}

static void *receive(void *argument)
{
    struct copy *copy = argument;
    struct sluice_sge sge;

    DEMAND(copy->mr_sge(copy->mr, 4096, 4096, &sge) == 0);
    copy->result = copy->channel_receive(copy->channel, &sge, 1, SLUICE_S(30), NULL);
    return NULL;
}

/* A message of one copy to the other, and a write of 1 MiB - 8 KiB. */
static void work(struct copy *copy, int value)
{
    struct copy *peer = copy->peer;
    size_t length = (1 << 20) - 8192;
    struct sluice_remote_mr remote = peer->remote;
    struct sluice_sge sge;
    pthread_t thread;

    DEMAND(pthread_create(&thread, NULL, receive, peer) == 0);
    memset(copy->mr_addr(copy->mr), value, 4096);
    DEMAND(copy->mr_sge(copy->mr, 0, 4096, &sge) == 0);
    DEMAND(copy->channel_send(copy->channel, &sge, 1, SLUICE_S(30)) == 0);
    pthread_join(thread, NULL);
    DEMAND(peer->result >= 0);
    DEMAND(((char *)peer->mr_addr(peer->mr))[8191] == value);
    memset((char *)copy->mr_addr(copy->mr) + 8192, value, length);
    DEMAND(copy->mr_sge(copy->mr, 8192, length, &sge) == 0);
    remote.addr += 8192;
    remote.length -= 8192;
    DEMAND(copy->channel_write(copy->channel, &sge, 1, &remote, SLUICE_S(30)) == 0);
    DEMAND(((char *)peer->mr_addr(peer->mr))[(1 << 20) - 1] == value);
}

static int count_fds(void)
{
    int count = 0;

    for (int fd = 0; fd < 1000; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void look_at_signals(struct sigaction actions[32])
{
    for (int i = 1; i < 32; i++)
        sigaction(i, NULL, &actions[i]);
}

/* The handlers of both copies run: a child can use both, and the parent goes on. */
static void fork_once(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        _exit(copies[0].context_open("soft", NULL) && copies[1].context_open("soft", NULL) ? 0 : 1);
    DEMAND(waitpid(child, &status, 0) == child && status == 0);
}

static void pass(void)
{
    struct sluice_channel_info info = {.size = sizeof info};

    for (int i = 0; i < 2; i++)
        prepare(&copies[i]);
    for (int i = 0; i < 2; i++)
        DEMAND(copies[i].channel =
                   copies[i].prepared_channel_handshake(copies[i].prepared, &copies[!i].endpoint));
    work(&copies[0], 3);
    work(&copies[1], 4);
    DEMAND(copies[0].channel_query(copies[0].channel, &info) == 0);
    printf("%s and %s: level %u, %s\n", copies[0].version(), copies[1].version(), info.level,
           info.address);
    fork_once();
    work(&copies[0], 5);
    work(&copies[1], 6);
    for (int i = 0; i < 2; i++) {
        copies[i].channel_close(copies[i].channel);
        DEMAND(copies[i].mr_deregister(copies[i].mr) == 0);
        copies[i].pd_free(copies[i].pd);
        copies[i].context_close(copies[i].context);
    }
}

int main(int argc, char **argv)
{
    struct sigaction before[32], after[32];
    int fds = 0;

    if (argc != 3)
        return 2;
    look_at_signals(before);
    if (open_first(&copies[0], argv[1]) || load(&copies[1], argv[2]))
        return 3;
    copies[0].peer = &copies[1];
    copies[1].peer = &copies[0];
    DEMAND(copies[0].channel_send != copies[1].channel_send);
    for (int i = 0; i < 5; i++) {
        pass();
        if (i == 1)
            fds = count_fds();
    }
    DEMAND(count_fds() == fds);
    look_at_signals(after);
    for (int i = 1; i < 32; i++)
        DEMAND(before[i].sa_handler == after[i].sa_handler);
    DEMAND(dlclose(copies[1].library) == 0);
    return 0;
}
