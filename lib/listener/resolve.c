/* SPDX-License-Identifier: MIT */
/* Addresses, secrets and private data, as listeners and connect calls get them. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "connect/stream.h"
#include "listener/listener.h"

/* Time limit of resolving the name of an address to listen at. */
#define NAME_TIME SLUICE_S(5)

int slu_listener_secret(const char *path, struct slu_secret *secret)
{
    const char *given = path;
    const char *source = "the attribute secret_file";

    if (path == NULL) {
        int error = slu_env_text(SLU_ENV_SECRET_FILE, &given);

        source = slu_env_name(SLU_ENV_SECRET_FILE);
        if (error < 0)
            return error;
        if (error == 0)
            given = "";
    }
    if (given[0] == '\0') {
        *secret = (struct slu_secret){0};
        return slu_proof_init();
    }
    return slu_name_source(slu_secret_read(given, secret), source);
}

int slu_private_data_check(const struct sluice_private_data *data)
{
    if (data == NULL || data->bytes <= SLUICE_PRIVATE_DATA_BYTES)
        return 0;
    return slu_misuse(EINVAL, "private data of %u bytes: there can be %d", data->bytes,
                      SLUICE_PRIVATE_DATA_BYTES);
}

int slu_listen_fail(int error, const char *address)
{
    return slu_fail(error, "cannot listen at %.128s: %s", address, strerrordesc_np(error));
}

int slu_listen_fail_watch(int error)
{
    return slu_fail(-error, "a listener cannot be watched: %s", strerrordesc_np(-error));
}

int slu_listen_find(const struct slu_host_port *where, struct slu_address *addresses)
{
    struct addrinfo *list;
    const char *why;
    uint32_t count;
    int error;

    if (strcmp(where->host, "localhost") == 0) {
        addresses[0] = (struct slu_address){.family = 4, .port = 0, .ip = {127, 0, 0, 1}};
        addresses[1] = (struct slu_address){.family = 6, .port = 0, .ip = {[15] = 1}};
        addresses[0].port = addresses[1].port = (uint16_t)atoi(where->port);
        return 2;
    }
    error = slu_host_port_resolve(where, slu_after(NAME_TIME), &list, &why);
    if (error < 0)
        return why != NULL ? slu_fail(-error, "cannot listen at %.128s: %s", where->host, why)
                           : error;
    count = slu_addresses_of(list, addresses, SLU_LISTENERS);
    freeaddrinfo(list);
    if (count == 0)
        return slu_fail(ENOENT, "%.128s has no address of IP", where->host);
    error = count == 1 ? slu_address_check_scope(&addresses[0], where->host) : 0;
    return error < 0 ? error : (int)count;
}

int slu_listen_parse(const char *address, const char *text, struct slu_host_port *where)
{
    int error = slu_host_port_parse(text, SLU_HOST_PORT_LISTEN, where);

    if (error == -ERANGE)
        return slu_fail(EINVAL, "address \"%.128s\" is not host:port: the port is not in 0..65535",
                        address);
    if (error < 0)
        return slu_fail(EINVAL, "address \"%.128s\" is not host:port, [1:2::3]:port or :port",
                        address);
    return 0;
}

int slu_connect_find(const char *name, const char *text, int64_t until,
                     struct slu_address addresses[SLU_DIAL_MOST])
{
    struct slu_host_port where;
    struct addrinfo *list;
    const char *why;
    uint32_t count;
    int error = slu_host_port_parse(text, 0, &where);

    if (error == -ERANGE)
        return slu_fail(EINVAL, "address \"%.128s\" is not host:port: the port is not in 1..65535",
                        name);
    if (error < 0)
        return slu_fail(EINVAL, "address \"%.128s\" is not host:port, or [1:2::3]:port for IPv6",
                        name);
    error = slu_host_port_resolve(&where, until, &list, &why);
    if (error < 0 && why != NULL)
        return slu_fail(-error, "cannot connect to %.128s: %s", name, why);
    if (error < 0)
        return error;
    count = slu_addresses_of(list, addresses, SLU_DIAL_MOST);
    freeaddrinfo(list);
    if (count == 0)
        return slu_fail(ENOENT, "%.128s has no address of IP", name);
    error = count == 1 ? slu_address_check_scope(&addresses[0], name) : 0;
    return error < 0 ? error : (int)count;
}
