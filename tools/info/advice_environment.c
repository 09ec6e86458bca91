/* SPDX-License-Identifier: MIT */
/* Advice on variables with valid values, with which a program cannot start or is unsafe. */
#include "config.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "info.h"

/* The socket of the daemon of MUNGE, which proves that ranks are of one user. */
#define MUNGE_SOCKET "/run/munge/munge.socket.2"

/* Returns the value of a variable that is set and valid, or NULL. */
static const char *value_of(const struct facts *facts, const char *name)
{
    for (uint32_t i = 0; i < facts->variable_count; i++) {
        const struct sluice_variable_info *info = &facts->variables[i];

        if (strcmp(info->name, name) == 0)
            return info->state == SLUICE_VARIABLE_SET && info->value[0] != '\0' ? info->value
                                                                                : NULL;
    }
    return NULL;
}

/* Returns whether no interface has the address. */
static bool is_foreign(const char *address)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    bool foreign = false;
    int fd;

    if (getaddrinfo(address, "0", &hints, &found) != 0)
        return false;
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        foreign = bind(fd, found->ai_addr, found->ai_addrlen) != 0 && errno == EADDRNOTAVAIL;
        close(fd);
    }
    freeaddrinfo(found);
    return foreign;
}

/* Lists the addresses of this host, as many as there is room for. */
static void list_addresses(char *text, size_t size)
{
    char address[NI_MAXHOST];
    struct ifaddrs *list;
    size_t used = 0;

    text[0] = '\0';
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        int family = at->ifa_addr != NULL ? at->ifa_addr->sa_family : AF_UNSPEC;
        socklen_t bytes =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

        if ((family != AF_INET && family != AF_INET6) ||
            getnameinfo(at->ifa_addr, bytes, address, sizeof address, NULL, 0, NI_NUMERICHOST) !=
                0 ||
            used + strlen(address) + 3 > size)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", address);
    }
    freeifaddrs(list);
}

static void advise_address(struct facts *facts)
{
    const char *value = value_of(facts, "SLUICE_TCP_ADDRESS");
    char own[200];

    if (value == NULL || !is_foreign(value))
        return;
    list_addresses(own, sizeof own);
    advice_add(facts, "variable-wrong", "SLUICE_TCP_ADDRESS",
               "SLUICE_TCP_ADDRESS is %.64s, no address of this host; it has %s", value,
               own[0] != '\0' ? own : "none");
}

/* Returns whether the library can use MUNGE in place of a secret. */
static bool has_munge(const struct facts *facts)
{
    const char *value = value_of(facts, "SLUICE_MUNGE");

    if (value != NULL)
        return strcmp(value, "no") != 0;
    return access(MUNGE_SOCKET, F_OK) == 0;
}

/* Ranks that were set by hand have no secret of a launcher. */
static void advise_secret(struct facts *facts)
{
    const struct sluice_launch_info *launch = &facts->launch;

    if (facts->launch_result != 0 || launch->launcher[0] != '\0' || launch->ranks < 2 ||
        launch->kind == SLUICE_EXCHANGE_PMIX)
        return;
    for (uint32_t i = 0; i < facts->variable_count; i++)
        if (strcmp(facts->variables[i].name, "SLUICE_SECRET_FILE") == 0 &&
            facts->variables[i].state != SLUICE_VARIABLE_UNSET)
            return;
    if (!has_munge(facts))
        advice_add(facts, "secret", "SLUICE_SECRET_FILE",
                   "nothing proves that processes which connect to rank 0 belong to this job: give "
                   "all ranks the same file with a secret by SLUICE_SECRET_FILE, of 16 to 4096 "
                   "bytes and mode 0600");
}

void advise_environment(struct facts *facts)
{
    advise_address(facts);
    advise_secret(facts);
}
