/* SPDX-License-Identifier: MIT */
/*
 * Letting in without waiting, while clients are stopped or killed when the server has just heard of
 * them: the others get in, and each of these has its end.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/client.h"
#include "../support/process.h"

enum fate { LIVES, STOPS, DIES, FATES };

static void run_process(int port)
{
    struct sluice_context *context = sluice_context_open(test_device(), NULL);
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_private_data own = {.bytes = sizeof(pid_t)};
    const struct sluice_connect_attr options = {
        .size = sizeof(options), .secret_file = "", .own = &own};
    pid_t pid = getpid();
    char address[64];
    memcpy(own.data, &pid, sizeof(pid));
    snprintf(address, sizeof(address), "127.0.0.1:%d", port);
    _exit(sluice_connect(address, pd, NULL, &options, PATIENCE * SLUICE_S(60)) != NULL ? 0 : 1);
}

static pid_t start_process(int gate[2])
{
    int port = 0;
    pid_t pid = fork();
    require(pid >= 0, "%s", strerror(errno));
    if (pid != 0) {
        return pid;
    }
    close(gate[1]);
    require(read(gate[0], &port, sizeof(port)) == sizeof(port), "no port");
    run_process(port);
    return 0;
}

static int number_of(const pid_t *pids, int count, struct sluice_incoming *incoming)
{
    struct sluice_incoming_info info = {.size = sizeof(info)};
    pid_t pid;
    int i = 0;
    require_ok(sluice_incoming_query(incoming, &info));
    memcpy(&pid, info.private_data.data, sizeof(pid));
    while (i < count && pids[i] != pid) {
        i++;
    }
    require(i < count, "process %d", pid);
    return i;
}

static void suffer(enum fate fate, pid_t pid)
{
    if (fate == STOPS) {
        stop_process(pid);
    } else if (fate == DIES) {
        require(kill(pid, SIGKILL) == 0, "%s", strerror(errno));
    }
}

TEST(processes_that_stop_or_die, .unless = device_is_pretend)
{
    enum { EACH = 4, COUNT_OF = EACH * FATES };
    struct sides sides;
    pid_t pids[COUNT_OF];
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    int gate[2], in = 0, dead = 0;
    require(pipe(gate) == 0, "%s", strerror(errno));
    for (int i = 0; i < COUNT_OF; i++) {
        pids[i] = start_process(gate);
    }
    sides_open(&sides);
    struct sluice_listener *listener = listen_with("127.0.0.1:0", "");
    struct pollfd pollfd = {.fd = sluice_listener_fd(listener), .events = POLLIN};
    int port = sluice_listener_address(listener, NULL, 0);
    for (int i = 0; i < COUNT_OF; i++) {
        require(write(gate[1], &port, sizeof(port)) == sizeof(port), "%s", strerror(errno));
    }
    for (int came = 0; came < COUNT_OF || in < EACH || dead < EACH;) {
        struct sluice_incoming *incoming;
        require(poll(&pollfd, 1, PATIENCE * 60000) > 0, "%d came, %d in, %d dead", came, in, dead);
        while ((incoming = sluice_listener_next(listener, 0)) != NULL) {
            int number = number_of(pids, COUNT_OF, incoming);
            suffer((enum fate)(number % FATES), pids[number]);
            if (sluice_incoming_admit(incoming, sides.pds[0], NULL, NULL, SLUICE_FOREVER,
                                      (uint64_t)number) < 0) {
                require(number % FATES == DIES, "%d: %s", number, sluice_last_error());
                dead++;
            }
            came++;
        }
        while (sluice_listener_admitted(listener, 0, &admitted) == 0) {
            enum fate fate = (enum fate)(admitted.user_data % FATES);
            require(fate == (admitted.error == 0 ? LIVES : DIES), "%d of fate %u: %s",
                    admitted.error, fate, sluice_last_error());
            in += fate == LIVES;
            dead += fate == DIES;
            sluice_channel_close(admitted.channel);
        }
    }
    for (int i = 0; i < COUNT_OF; i++) {
        int status = 0;
        if (i % FATES == STOPS) {
            require_result(sluice_listener_cancel(listener, (uint64_t)i), 1);
            require(kill(pids[i], SIGKILL) == 0, "%s", strerror(errno));
        }
        require(waitpid(pids[i], &status, 0) == pids[i], "%s", strerror(errno));
        require(i % FATES != LIVES || status == 0, "process %d: %x", i, status);
    }
    close(gate[0]);
    close(gate[1]);
    sluice_listener_close(listener);
    sides_close(&sides);
}

int main(void)
{
    return RUN_GROUPS("admitted_processes", {"processes", WIRE_SHM, 60});
}
