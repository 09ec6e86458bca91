/* SPDX-License-Identifier: MIT */
/*
 * Where rank 0 is, by the launcher's server of PMI-1, as mpiexec of MPICH has it:
 * rank 0 listens, and puts its addresses, its port and a secret under a key, which
 * the others get; all else is of the exchange over TCP.
 *
 * The server is asked through the socket that PMI_FD names, a line for a line, so
 * that nothing is left in it which MPI, initialised later, would read. Of an MPI
 * that is initialised already it is left alone. "finalize" is said when the process
 * exits, and no sooner: after it the server hears no MPI_Init(), and without it
 * takes the exit for a crash. Who has failed once is out of step with the server.
 */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "connect/stream.h"
#include "exchange/pmi.h"
#include "exchange/tcp.h"

#define NAME_BYTES 512
#define VALUE_BYTES 1024
#define FINALIZE_TIME SLUICE_S(2)
#define PAUSE 5 /* milliseconds */

/*
 * Of the process. It ends with the socket that it began with: MPI_Finalize() closes
 * the descriptor, which may then be that of any file of the program.
 */
static struct {
    pid_t process; /* that has begun; 0: none */
    int fd;
    dev_t device;
    ino_t inode;
    bool broken;
    uint32_t exchanges; /* opened so far, in all ranks the same */
    uint32_t name_max, key_max, value_max;
    char name[NAME_BYTES]; /* of the space of keys of this job */
} client;
static struct slu_fork_lock lock = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Of MPI in this process, wherever it is from; it stays so after MPI_Finalize(). */
static bool mpi_initialized(void)
{
    int (*function)(int *flag);
    void *found = dlsym(RTLD_DEFAULT, "MPI_Initialized");
    int flag = 0;

    if (found == NULL)
        return false;
    memcpy(&function, &found, sizeof function);
    return function(&flag) == 0 && flag != 0;
}

static bool is_same_socket(void)
{
    struct stat status;

    return fstat(client.fd, &status) == 0 && status.st_dev == client.device &&
           status.st_ino == client.inode;
}

/* The answer may come behind one that was waited for in vain. */
static void end_client(void)
{
    struct pmi_talk talk = {.fd = client.fd,
                            .until = slu_after(FINALIZE_TIME),
                            .command = "finalize",
                            .line = "cmd=finalize\n"};
    size_t count = 0;

    if (client.process != getpid() || !is_same_socket() || mpi_initialized())
        return;
    if (slu_pmi_send(&talk) < 0)
        return;
    while (count < sizeof talk.line - 1 && slu_pmi_await(&talk, POLLIN) == 0) {
        ssize_t got = recv(talk.fd, talk.line + count, sizeof talk.line - 1 - count, MSG_DONTWAIT);

        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return;
        count += got > 0 ? (size_t)got : 0;
        talk.line[count] = '\0';
        if (strstr(talk.line, "cmd=finalize_ack") != NULL && talk.line[count - 1] == '\n')
            return;
    }
}

/* The socket that the launcher left to this process. */
static int find_socket(void)
{
    const char *text = slu_getenv("PMI_FD");
    struct stat status;
    uint32_t fd;

    if (text == NULL || slu_parse_number(text, 0, INT32_MAX, &fd) < 0)
        return slu_fail(EINVAL, "PMI_FD is '%.64s', must be the number of a socket",
                        text != NULL ? text : "");
    if (fstat((int)fd, &status) != 0 || !S_ISSOCK(status.st_mode))
        return slu_fail(EINVAL,
                        "nothing says where rank 0 is: PMI_FD is %u, which is no socket of this "
                        "process; set SLUICE_ROOT to its host:port",
                        fd);
    if (client.process != 0 && ((int)fd != client.fd || !is_same_socket()))
        return slu_fail(ECONNRESET, "PMI: the socket of PMI_FD, %u, is another one than before",
                        fd);
    client.fd = (int)fd;
    client.device = status.st_dev;
    client.inode = status.st_ino;
    return 0;
}

static int greet_server(struct pmi_talk *talk)
{
    char version[16];
    int error = slu_pmi_ask(talk, "init", "response_to_init", " pmi_version=1 pmi_subversion=1");

    if (error == 0)
        error = slu_pmi_word(talk, "pmi_version", version, sizeof version);
    if (error == 0 && strcmp(version, "1") != 0)
        error = slu_fail(EPROTO, "PMI: the server speaks version %s, this library 1", version);
    if (error == 0)
        error = slu_pmi_success(talk);
    if (error == 0)
        error = slu_pmi_ask(talk, "get_maxes", "maxes", "%s", "");
    if (error == 0)
        error = slu_pmi_number(talk, "kvsname_max", &client.name_max);
    if (error == 0)
        error = slu_pmi_number(talk, "keylen_max", &client.key_max);
    if (error == 0)
        error = slu_pmi_number(talk, "vallen_max", &client.value_max);
    if (error == 0)
        error = slu_pmi_ask(talk, "get_my_kvsname", "my_kvsname", "%s", "");
    if (error == 0)
        error = slu_pmi_word(talk, "kvsname", client.name, sizeof client.name);
    return error;
}

/* Once in a process. */
static int begin_client(struct pmi_talk *talk)
{
    int error;

    if (mpi_initialized())
        return slu_fail(EINVAL, "nothing says where rank 0 is: MPI, which is initialised, uses the "
                                "PMI server; use sluice_exchange_open_mpi(), "
                                "or set SLUICE_ROOT to its host:port");
    if (client.process != 0 && client.process != getpid())
        return slu_fail(ECONNRESET, "PMI: the server is that of the process that forked this one");
    if (client.broken)
        return slu_fail(ECONNRESET, "PMI: an earlier attempt to open an exchange failed in this "
                                    "process and left it out of step with its server");
    error = find_socket();
    talk->fd = client.fd;
    if (error < 0 || client.process != 0)
        return error;
    client.process = getpid();
    atexit(end_client);
    return greet_server(talk);
}

/* Whether all ranks are on this host, by a variable of mpiexec. */
static bool all_are_here(uint32_t ranks)
{
    const char *text = slu_getenv("MPI_LOCALNRANKS");
    uint32_t here;

    return text != NULL && slu_parse_number(text, 1, SLUICE_MAX_RANKS, &here) == 0 && here == ranks;
}

static int listen_somewhere(struct slu_launch *launch, bool here, uint32_t *port)
{
    struct slu_host_port place = {.port = "0"};

    /* A name stands for all addresses. */
    snprintf(place.host, sizeof place.host, here ? "127.0.0.1" : "this-host");
    launch->listener = slu_tcp_listen(&place, NULL);
    if (launch->listener < 0)
        return launch->listener;
    *port = slu_stream_port(launch->listener);
    return 0;
}

/* "1/PORT/SECRET/ADDRESS,...": as many addresses as the server takes; "-": no secret. */
static int write_value(const struct slu_launch *launch, uint32_t port, bool here, char *value)
{
    struct slu_address addresses[SLU_ROOTS] = {{.family = 4, .port = 0, .ip = {127, 0, 0, 1}}};
    uint32_t count = here ? 1 : slu_stream_addresses(addresses, SLU_ROOTS, true, 0);
    size_t most = client.value_max < VALUE_BYTES ? client.value_max : VALUE_BYTES;
    size_t length =
        (size_t)snprintf(value, VALUE_BYTES, "1/%u/%s", port, launch->secret_count > 0 ? "" : "-");

    for (size_t i = 0; i < launch->secret_count; i++)
        length += (size_t)snprintf(value + length, 3, "%02x", launch->secret[i]);
    for (uint32_t i = 0; i < count; i++) {
        char host[INET6_ADDRSTRLEN] = "";
        size_t more;

        inet_ntop(addresses[i].family == 4 ? AF_INET : AF_INET6, addresses[i].ip, host,
                  sizeof host);
        more = 1 + strlen(host);
        if (length + more >= most && i > 0)
            break;
        if (length + more >= most)
            return slu_fail(EPROTO, "PMI: the server takes values of %u bytes only",
                            client.value_max);
        length +=
            (size_t)snprintf(value + length, VALUE_BYTES - length, "%c%s", i > 0 ? ',' : '/', host);
    }
    return 0;
}

static int read_secret(struct slu_launch *launch, const char *text, size_t length)
{
    if (length == 1 && text[0] == '-')
        return 0;
    if (length != 2 * sizeof launch->secret || strspn(text, "0123456789abcdef") != length)
        return -EPROTO;
    for (size_t i = 0; i < sizeof launch->secret; i++) {
        unsigned byte;

        sscanf(text + 2 * i, "%2x", &byte);
        launch->secret[i] = (uint8_t)byte;
    }
    launch->secret_count = sizeof launch->secret;
    return 0;
}

static int read_addresses(struct slu_launch *launch, char *text, uint32_t port)
{
    char *rest = NULL;

    for (char *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        uint8_t ip[sizeof(struct in6_addr)];
        bool four = inet_pton(AF_INET, word, ip) == 1;

        if (launch->root_count == SLU_ROOTS || (!four && inet_pton(AF_INET6, word, ip) != 1))
            return -EPROTO;
        snprintf(launch->roots[launch->root_count++], sizeof launch->roots[0],
                 four ? "%s:%u" : "[%s]:%u", word, port);
    }
    return launch->root_count > 0 ? 0 : -EPROTO;
}

/* What write_value() wrote. The secret is in it, and so it is in no text. */
static int read_value(struct slu_launch *launch, char *value)
{
    char *secret = NULL, *addresses = NULL;
    uint32_t port;

    if (strncmp(value, "1/", 2) == 0)
        secret = strchr(value + 2, '/');
    if (secret != NULL)
        addresses = strchr(secret + 1, '/');
    if (addresses == NULL)
        return -EPROTO;
    *secret++ = '\0';
    *addresses++ = '\0';
    if (slu_parse_number(value + 2, 1, 65535, &port) < 0 ||
        read_secret(launch, secret, strlen(secret)) < 0)
        return -EPROTO;
    return read_addresses(launch, addresses, port);
}

/* With a file of their own the ranks need no other secret. */
static int put_root(struct slu_launch *launch, struct pmi_talk *talk, const char *key)
{
    bool here = all_are_here(launch->ranks);
    char value[VALUE_BYTES];
    uint32_t port = 0;
    int error = listen_somewhere(launch, here, &port);

    if (error == 0 && launch->secret_file[0] == '\0') {
        error = slu_random(launch->secret, sizeof launch->secret);
        launch->secret_count = sizeof launch->secret;
    }
    if (error == 0)
        error = write_value(launch, port, here, value);
    if (error == 0)
        error = slu_pmi_ask(talk, "put", "put_result", " kvsname=%s key=%s value=%s", client.name,
                            key, value);
    if (error == 0)
        error = slu_pmi_success(talk);
    /* Our own texts name what the others look for. */
    if (error == 0)
        error = read_value(launch, value);
    explicit_bzero(value, sizeof value);
    return error;
}

static int get_root(struct slu_launch *launch, struct pmi_talk *talk, const char *key)
{
    char value[VALUE_BYTES];
    int error = slu_pmi_ask(talk, "get", "get_result", " kvsname=%s key=%s", client.name, key);

    if (error == 0)
        error = slu_pmi_success(talk);
    if (error == 0)
        error = slu_pmi_word(talk, "value", value, sizeof value);
    if (error == 0 && read_value(launch, value) < 0)
        error =
            slu_fail(EPROTO, "PMI: the value of %s, which rank 0 has put, is not an address", key);
    explicit_bzero(value, sizeof value);
    return error;
}

/* Rank 0 puts, all meet, the others get. */
static int meet(struct slu_launch *launch, struct pmi_talk *talk)
{
    char key[32];
    int error = begin_client(talk);
    bool mine = client.process == getpid();

    if (error == 0 && client.name_max < strlen(client.name))
        error = slu_fail(EPROTO, "PMI: the server's kvsname has more than %u bytes, its own limit",
                         client.name_max);
    snprintf(key, sizeof key, "sluice-%u", client.exchanges++);
    if (error == 0 && strlen(key) >= client.key_max)
        error = slu_fail(EPROTO, "PMI: the server takes keys of %u bytes only", client.key_max);
    if (error == 0 && launch->rank == 0)
        error = put_root(launch, talk, key);
    if (error == 0)
        error = slu_pmi_ask(talk, "barrier_in", "barrier_out", "%s", "");
    if (error == 0 && launch->rank != 0)
        error = get_root(launch, talk, key);
    if (error < 0 && mine)
        client.broken = true;
    return error;
}

/* So that a rank of another job, which got our port by chance, is told so. */
static void take_name(struct slu_launch *launch)
{
    size_t length = strlen(client.name);
    size_t count = length < sizeof launch->job ? length : sizeof launch->job - 1;

    /* Of a long name the end, where the numbers are. */
    if (launch->job[0] == '\0')
        memcpy(launch->job, client.name + (length - count), count);
}

/* Few threads open exchanges at the same time, and none of them is in a hurry. */
static int take_lock(int64_t until)
{
    slu_fork_join(&lock);
    while (pthread_mutex_trylock(&lock.lock) != 0) {
        if (slu_is_late(until))
            return slu_fail(ETIMEDOUT, "PMI: another thread opens an exchange, and did not end "
                                       "before the deadline");
        poll(NULL, 0, PAUSE);
    }
    return 0;
}

int slu_pmi_find_root(struct slu_launch *launch, int64_t until)
{
    struct pmi_talk talk = {.until = until};
    int error = take_lock(until);

    if (error < 0)
        return error;
    error = meet(launch, &talk);
    if (error == 0)
        take_name(launch);
    pthread_mutex_unlock(&lock.lock);
    explicit_bzero(talk.line, sizeof talk.line);
    if (error < 0 && launch->listener >= 0) {
        slu_fd_close(launch->listener);
        launch->listener = -1;
    }
    return error;
}
