/* SPDX-License-Identifier: MIT */
/*
 * The wire that SLUICE_WIRE selects between two contexts of one host, as seen from the sockets of
 * the process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../support/pair.h"
#include "../support/process.h"

/* More than any test uses. */
#define FDS 1024

/* Sockets of this process: those that listen, and those that are connected. */
struct sockets {
    int unix_listening, unix_connected;
    int tcp_listening, tcp_connected;
};

static struct sockets count_sockets(void)
{
    struct sockets sockets = {0};

    for (int fd = 3; fd < FDS; fd++) {
        struct sockaddr_storage own, peer;
        socklen_t own_size = sizeof own, peer_size = sizeof peer, size = sizeof(int);
        int type = 0, listening = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM ||
            getsockname(fd, (struct sockaddr *)&own, &own_size) != 0)
            continue;
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size);
        if (listening != 0)
            *(own.ss_family == AF_UNIX ? &sockets.unix_listening : &sockets.tcp_listening) += 1;
        else if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0)
            *(own.ss_family == AF_UNIX ? &sockets.unix_connected : &sockets.tcp_connected) += 1;
    }
    return sockets;
}

/*
 * Opens two contexts, each with its own value of the variable, or none. Returns the sockets that
 * they added.
 */
static struct sockets connect_under(const char *const values[2])
{
    struct sockets before = count_sockets(), after;
    struct pair pair = {0};

    for (int i = 0; i < 2; i++) {
        if (values[i] != NULL)
            setenv("SLUICE_WIRE", values[i], 1);
        else
            unsetenv("SLUICE_WIRE");
        pair.sides.contexts[i] = open_context();
        pair.sides.pds[i] = made(sluice_pd_alloc(pair.sides.contexts[i]));
    }
    unsetenv("SLUICE_WIRE");
    pair_connect(&pair, NULL);
    pair_works(&pair);
    after = count_sockets();
    pair_close(&pair);
    return (struct sockets){
        after.unix_listening - before.unix_listening, after.unix_connected - before.unix_connected,
        after.tcp_listening - before.tcp_listening, after.tcp_connected - before.tcp_connected};
}

TEST(peers_on_one_host_need_no_address)
{
    struct sockets made = connect_under((const char *const[]){NULL, "auto"});

    require_result(made.unix_listening, 2);
    require_result(made.tcp_listening, 2);
    require(made.unix_connected >= 2, "%d", made.unix_connected);
    require_result(made.tcp_connected, 0);
}

TEST(tcp_is_enough_on_one_side, .times = 3)
{
    static const char *const values[][2] = {{"tcp", "tcp"}, {"tcp", NULL}, {"auto", "tcp"}};
    struct sockets made = connect_under(values[_i]);

    require_result(made.unix_listening, _i == 0 ? 0 : 1);
    require_result(made.tcp_listening, 2);
    require_result(made.unix_connected, 0);
    require(made.tcp_connected >= 2, "%d", made.tcp_connected);
}

static void keep_line(uint32_t level, const char *line, void *user)
{
    if (level == SLUICE_LOG_ERROR && strstr(line, "SLUICE_WIRE"))
        snprintf(user, 200, "%s", line);
}

TEST(unknown_wire_is_logged)
{
    char line[200] = "";
    struct sockets made;

    require_ok(sluice_log_set(SLUICE_LOG_ERROR, keep_line, line));
    made = connect_under((const char *const[]){NULL, "pigeon"});
    require_words(line, "'pigeon' auto, tcp or shm; using auto");
    require(made.unix_connected >= 2, "%d", made.unix_connected);
    require_result(made.tcp_connected, 0);
}

int main(void)
{
    return RUN_ON_SOFT("wire", {"wire", WIRE_TCP, 30});
}
