/* SPDX-License-Identifier: MIT */
/* The provider over TCP: what rank 0 (tcp_root.c) and the other ranks (tcp_leaf.c) share. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/environment.h"
#include "exchange/tcp.h"

/*
 * Closing a socket with unread bytes would make the kernel drop what is still on its way to the
 * peer.
 */
static void hang_up(struct tcp_link *link)
{
    uint8_t bytes[4096];

    for (int i = 0; i < 16 && link->fd >= 0; i++)
        if (recv(link->fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0)
            break;
    slu_tcp_link_close(link);
}

static void close_tcp(struct sluice_exchange *exchange)
{
    struct tcp *tcp = exchange->state;

    for (uint32_t i = 0; tcp->peers != NULL && i < tcp->ranks; i++)
        hang_up(&tcp->peers[i].link);
    hang_up(&tcp->link);
    if (tcp->door >= 0)
        slu_fd_close(tcp->door);
    if (tcp->epoll >= 0)
        slu_fd_close(tcp->epoll);
    if (tcp->listener >= 0)
        slu_fd_close(tcp->listener);
    slu_secret_forget(&tcp->secret);
    free(tcp->peers);
    free(tcp->missing);
    free(tcp);
    exchange->state = NULL;
}

static int run(const struct sluice_exchange *exchange, const struct tcp_call *call)
{
    struct tcp *tcp = exchange->state;

    return tcp->rank == 0 ? slu_tcp_root_call(tcp, call) : slu_tcp_leaf_call(tcp, call);
}

static int run_allgather(struct sluice_exchange *exchange, const void *own, void *all, size_t bytes,
                         int64_t until)
{
    return run(exchange, &(struct tcp_call){TCP_ALLGATHER, bytes, own, all, until});
}

static int run_alltoall(struct sluice_exchange *exchange, const void *to, void *from, size_t bytes,
                        int64_t until)
{
    return run(exchange, &(struct tcp_call){TCP_ALLTOALL, bytes, to, from, until});
}

static int run_barrier(struct sluice_exchange *exchange, int64_t until)
{
    return run(exchange, &(struct tcp_call){.type = TCP_BARRIER, .until = until});
}

/* Rank 0 sends the thread's text to the others. */
static void abandon(struct sluice_exchange *exchange)
{
    struct tcp *tcp = exchange->state;

    if (tcp->rank > 0)
        slu_tcp_leaf_abandon(tcp);
    else if (tcp->ranks > 1)
        slu_tcp_fail(tcp, -ENOMEM);
}

static const struct slu_exchange_provider provider = {
    .kind = SLUICE_EXCHANGE_TCP,
    .allgather = run_allgather,
    .alltoall = run_alltoall,
    .barrier = run_barrier,
    .abandon = abandon,
    .close = close_tcp,
};

static int fail_without_place(const struct tcp *tcp, const struct slu_launch *launch)
{
    bool other = launch->tcp_field != NULL && slu_getenv("PMIX_RANK") != NULL;

    return slu_fail(EINVAL,
                    "nothing says where rank 0 of %u ranks is: set sluice_exchange_attr.root or "
                    "SLUICE_ROOT to its host:port%s%s%s",
                    tcp->ranks, other ? "; PMIx was not asked, because sluice_exchange_attr." : "",
                    other ? launch->tcp_field : "", other ? " is set" : "");
}

/* Takes the one root that was given, or those that rank 0 published by PMI. */
static int find_places(struct tcp *tcp, const struct slu_launch *launch)
{
    snprintf(tcp->root, sizeof tcp->root, "%s",
             launch->root_count > 0 ? launch->roots[0] : launch->root);
    tcp->root_source = launch->root_source;
    if (tcp->root[0] == '\0')
        return fail_without_place(tcp, launch);
    tcp->place_count = launch->root_count > 0 ? launch->root_count : 1;
    for (uint32_t i = 0; i < tcp->place_count; i++) {
        const char *root = i == 0 ? tcp->root : launch->roots[i];

        if (slu_host_port_parse(root, SLU_HOST_PORT_UNIX, &tcp->places[i]) < 0)
            return slu_fail(EINVAL, "root \"%s\" is not host:port, or [1:2::3]:port for IPv6",
                            root);
    }
    return 0;
}

/* If the ranks were given no secret, munge can provide one. */
static int use_munge(struct tcp *tcp, int64_t until)
{
    uint8_t secret[SLU_SECRET_BYTES];
    int error;

    /*
     * The other ranks seal a secret that is not used, to find out whether their hosts have munge.
     */
    error = slu_munge_seal(secret, tcp->credential, until);
    if (error > 0) {
        tcp->means = TCP_MEANS_MUNGE;
        error = tcp->rank == 0 ? slu_secret_copy(secret, sizeof secret, &tcp->secret) : 0;
    }
    explicit_bzero(secret, sizeof secret);
    return error;
}

/* Warns once in a process, and in one rank of a job, that any process can connect. */
static void warn_unauthenticated(const struct tcp *tcp)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;

    if (tcp->rank != 0 || tcp->means != SLU_MEANS_NONE || atomic_flag_test_and_set(&warned))
        return;
    slu_log(SLUICE_LOG_WARN,
            "nothing proves that those who connect to rank 0 at %.128s belong to this job: "
            "give all ranks a file with a secret by SLUICE_SECRET_FILE",
            tcp->root);
}

static int prepare(struct tcp *tcp, const struct slu_launch *launch, int64_t until)
{
    int error;

    tcp->missing = calloc(tcp->ranks, sizeof *tcp->missing);
    if (tcp->missing == NULL)
        return slu_fail(ENOMEM, "no memory for an exchange of %u ranks", tcp->ranks);
    memcpy(tcp->job, launch->job, strnlen(launch->job, sizeof tcp->job - 1));
    if (launch->secret_count > 0 && launch->secret_file[0] == '\0')
        error = slu_secret_copy(launch->secret, launch->secret_count, &tcp->secret);
    else
        error = slu_name_source(slu_secret_read(launch->secret_file, &tcp->secret),
                                launch->secret_source);
    tcp->means = tcp->secret.bytes != NULL ? SLU_MEANS_SECRET : SLU_MEANS_NONE;
    /* A single rank needs no connection. */
    if (error < 0 || tcp->ranks == 1)
        return error;
    error = slu_proof_init();
    if (error == 0)
        error = find_places(tcp, launch);
    if (error == 0 && tcp->means == SLU_MEANS_NONE)
        error = use_munge(tcp, until);
    if (error == 0)
        warn_unauthenticated(tcp);
    return error;
}

int slu_tcp_open(struct sluice_exchange *exchange, const struct slu_launch *launch, int64_t until)
{
    struct tcp *tcp = calloc(1, sizeof *tcp);
    int error;

    if (tcp == NULL) {
        if (launch->listener >= 0)
            slu_fd_close(launch->listener);
        return slu_fail(ENOMEM, "no memory for an exchange over TCP");
    }
    exchange->provider = &provider;
    exchange->state = tcp;
    tcp->exchange = exchange;
    tcp->type = TCP_STARTED;
    tcp->rank = exchange->rank;
    tcp->ranks = exchange->ranks;
    tcp->epoll = tcp->door = -1;
    tcp->listener = launch->listener;
    tcp->link.fd = -1;
    error = prepare(tcp, launch, until);
    if (error == 0)
        error = tcp->rank == 0 ? slu_tcp_root_open(tcp, until) : slu_tcp_leaf_open(tcp, until);
    if (error < 0)
        close_tcp(exchange);
    else
        slu_secret_forget(&tcp->secret);
    return error;
}
