/* SPDX-License-Identifier: MIT */
/*
 * Finds rank 0 by the launcher's PMI-1 server, as the mpiexec of MPICH has one. Rank 0 listens, and
 * puts its addresses, its port and a secret under a key, which the other ranks get. The rest is the
 * exchange over TCP.
 *
 * Requests go through the socket that PMI_FD names, one line for one line, so that nothing is left
 * in it that a later MPI_Init() would read. If MPI is initialised already, its server is not used.
 * "finalize" is sent when the process exits: after it the server accepts no MPI_Init(), and without
 * it the exit would count as a crash. After a failure the process is out of step with the server
 * and does not use it any more.
 */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
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
 * The client of this process. It is valid only for the socket that it began with: MPI_Finalize()
 * closes the descriptor, which may then belong to any file of the program.
 */
static struct {
    pid_t process; /* that has begun; 0: none */
    int fd;
    dev_t device;
    ino_t inode;
    bool broken;
    uint32_t exchanges; /* opened so far, equal in all ranks */
    uint32_t name_max, key_max, value_max;
    char name[NAME_BYTES]; /* of the key space of this job */
} client;
static struct slu_fork_lock lock = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Finds any MPI in this process. It stays initialized after MPI_Finalize(). */
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

/* Skips an earlier answer, which may still arrive after its request has timed out. */
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
    while (count < sizeof talk.line - 1 && slu_pmi_wait(&talk, POLLIN) == 0) {
        ssize_t got = recv(talk.fd, talk.line + count, sizeof talk.line - 1 - count, MSG_DONTWAIT);

        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return;
        count += got > 0 ? (size_t)got : 0;
        talk.line[count] = '\0';
        if (strstr(talk.line, "cmd=finalize_ack") != NULL && talk.line[count - 1] == '\n')
            return;
    }
}

/* Checks the socket that PMI_FD names. */
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
    int error =
        slu_pmi_request(talk, "init", "response_to_init", " pmi_version=1 pmi_subversion=1");

    if (error == 0)
        error = slu_pmi_word(talk, "pmi_version", version, sizeof version);
    if (error == 0 && strcmp(version, "1") != 0)
        error = slu_fail(EPROTO, "PMI: the server speaks version %s, this library 1", version);
    if (error == 0)
        error = slu_pmi_success(talk);
    if (error == 0)
        error = slu_pmi_request(talk, "get_maxes", "maxes", "%s", "");
    if (error == 0)
        error = slu_pmi_number(talk, "kvsname_max", &client.name_max);
    if (error == 0)
        error = slu_pmi_number(talk, "keylen_max", &client.key_max);
    if (error == 0)
        error = slu_pmi_number(talk, "vallen_max", &client.value_max);
    if (error == 0)
        error = slu_pmi_request(talk, "get_my_kvsname", "my_kvsname", "%s", "");
    if (error == 0)
        error = slu_pmi_word(talk, "kvsname", client.name, sizeof client.name);
    return error;
}

/* Begins the client, once in a process. */
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

/* Tells whether all ranks are on this host, by a variable of mpiexec. */
static bool all_are_here(uint32_t ranks)
{
    const char *text = slu_getenv("MPI_LOCALNRANKS");
    uint32_t here;

    return text != NULL && slu_parse_number(text, 1, SLUICE_MAX_RANKS, &here) == 0 && here == ranks;
}

static int listen_somewhere(struct slu_launch *launch, bool here, uint32_t *port)
{
    struct slu_host_port place = {.port = "0"};

    /* A name means all addresses. */
    snprintf(place.host, sizeof place.host, here ? "127.0.0.1" : "this-host");
    launch->listener = slu_tcp_listen(&place, NULL);
    if (launch->listener < 0)
        return launch->listener;
    *port = slu_stream_port(launch->listener);
    return 0;
}

/* The value begins with the version from which on it can be read. */
#define READABLE "1"
#define VERSION 1

/*
 * Writes "1/PORT/SECRET/ADDRESS,...", with as many addresses as the server accepts, and "-" for no
 * secret. A later version may append "/" and more.
 */
static int write_value(const struct slu_launch *launch, uint32_t port, bool here, char *value)
{
    struct slu_address addresses[SLU_ROOTS] = {{.family = 4, .port = 0, .ip = {127, 0, 0, 1}}};
    uint32_t count = here ? 1 : slu_stream_addresses(addresses, SLU_ROOTS, true, 0);
    size_t most = client.value_max < VALUE_BYTES ? client.value_max : VALUE_BYTES;
    size_t length = (size_t)snprintf(value, VALUE_BYTES, READABLE "/%u/%s", port,
                                     launch->secret_count > 0 ? "" : "-");

    sodium_bin2hex(value + length, VALUE_BYTES - length, launch->secret, launch->secret_count);
    length += strlen(value + length);
    for (uint32_t i = 0; i < count; i++) {
        char host[SLU_ADDRESS_IP];
        size_t more = 1 + strlen(slu_address_ip(&addresses[i], host));

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

static int read_secret(struct slu_launch *launch, const char *text)
{
    size_t count = 0;

    if (strcmp(text, "-") == 0)
        return 0;
    if (sodium_hex2bin(launch->secret, sizeof launch->secret, text, strlen(text), NULL, &count,
                       NULL) != 0 ||
        count != sizeof launch->secret)
        return -EPROTO;
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

static int fail_value(const char *key)
{
    return slu_fail(EPROTO, "PMI: the value of %s, which rank 0 has put, is not an address", key);
}

/* Reads what write_value() wrote. No error text quotes it, since it has the secret. */
static int read_value(struct slu_launch *launch, const char *key, char *value)
{
    char *rest = value, *version = strsep(&rest, "/"), *number = strsep(&rest, "/");
    char *secret = strsep(&rest, "/"), *addresses = strsep(&rest, "/");
    uint32_t readable, port;

    if (slu_parse_number(version, 1, INT32_MAX, &readable) < 0)
        return fail_value(key);
    if (readable > VERSION)
        return slu_fail(EPROTO,
                        "PMI: the value of %s, which rank 0 has put, can be read from version %u "
                        "on; this library knows version %d",
                        key, readable, VERSION);
    if (addresses == NULL || slu_parse_number(number, 1, 65535, &port) < 0 ||
        read_secret(launch, secret) < 0 || read_addresses(launch, addresses, port) < 0)
        return fail_value(key);
    return 0;
}

/* Ranks that have a secret file need no other secret. */
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
        error = slu_pmi_request(talk, "put", "put_result", " kvsname=%s key=%s value=%s",
                                client.name, key, value);
    if (error == 0)
        error = slu_pmi_success(talk);
    /* The texts of rank 0 then name the same addresses as those of the others. */
    if (error == 0)
        error = read_value(launch, key, value);
    explicit_bzero(value, sizeof value);
    return error;
}

static int get_root(struct slu_launch *launch, struct pmi_talk *talk, const char *key)
{
    char value[VALUE_BYTES];
    int error = slu_pmi_request(talk, "get", "get_result", " kvsname=%s key=%s", client.name, key);

    if (error == 0)
        error = slu_pmi_success(talk);
    if (error == 0)
        error = slu_pmi_word(talk, "value", value, sizeof value);
    if (error == 0)
        error = read_value(launch, key, value);
    explicit_bzero(value, sizeof value);
    return error;
}

/* Rank 0 puts its value, all ranks meet in a barrier, the others get the value. */
static int meet(struct slu_launch *launch, struct pmi_talk *talk)
{
    char key[32];
    int error = begin_client(talk);
    bool mine = client.process == getpid();

    if (error == 0 && client.name_max < strlen(client.name))
        error = slu_fail(EPROTO, "PMI: the server's kvsname has more than %u bytes, its own limit",
                         client.name_max);
    /* Only ranks that can take part count the exchange: another one may still try to begin it. */
    snprintf(key, sizeof key, "sluice-%u", client.exchanges);
    client.exchanges += error == 0;
    if (error == 0 && strlen(key) >= client.key_max)
        error = slu_fail(EPROTO, "PMI: the server takes keys of %u bytes only", client.key_max);
    if (error == 0 && launch->rank == 0)
        error = put_root(launch, talk, key);
    if (error == 0)
        error = slu_pmi_request(talk, "barrier_in", "barrier_out", "%s", "");
    if (error == 0 && launch->rank != 0)
        error = get_root(launch, talk, key);
    if (error < 0 && mine)
        client.broken = true;
    return error;
}

/* Sets a job, so that a rank of another job that got this port by chance is refused. */
static void take_name(struct slu_launch *launch)
{
    size_t length = strlen(client.name);
    size_t count = length < sizeof launch->job ? length : sizeof launch->job - 1;

    /* Keep the end of a long name, which has the numbers. */
    if (launch->job[0] == '\0')
        memcpy(launch->job, client.name + (length - count), count);
}

/* Polls, since few threads open exchanges at the same time. */
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
