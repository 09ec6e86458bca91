/* SPDX-License-Identifier: MIT */
#include "stranger.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "process.h"
#include "suite.h"

uint8_t *put(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
    }
    return to + bytes;
}

void sign(const uint8_t *key, size_t key_bytes, const char *label, const uint8_t *bytes,
          size_t count, uint8_t proof[PROOF_BYTES])
{
    crypto_auth_hmacsha256_state state;
    uint8_t name[16] = {0};
    memcpy(name, label, strlen(label));
    crypto_auth_hmacsha256_init(&state, key, key_bytes);
    crypto_auth_hmacsha256_update(&state, name, sizeof(name));
    crypto_auth_hmacsha256_update(&state, bytes, count);
    crypto_auth_hmacsha256_final(&state, proof);
}

static struct sockaddr_in loopback(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

int listen_at(uint16_t *port)
{
    struct sockaddr_in address = loopback(*port);
    socklen_t length = sizeof(address);
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    require(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
                listen(fd, 64) == 0 && getsockname(fd, (struct sockaddr *)&address, &length) == 0,
            "%s", strerror(errno));
    *port = ntohs(address.sin_port);
    return fd;
}

void dial_with(int fd, uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    require(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "%s", strerror(errno));
}

int dial_port(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    struct timeval patience = {.tv_sec = 20};
    int64_t end = clock_now() + SLUICE_S(30);
    int one = 1;
    while (clock_now() < end) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        require(fd >= 0, "%s", strerror(errno));
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
            return fd;
        }
        close(fd);
        let_pass(SLUICE_MS(5));
    }
    fail_at(__FILE__, __LINE__, "nobody listens at port %u", port);
}

void say(int fd, const void *bytes, size_t count)
{
    ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
    require(sent == (ssize_t)count || errno == EPIPE || errno == ECONNRESET, "%zd of %zu: %s", sent,
            count, strerror(errno));
}

size_t hear_some(int fd, void *bytes, size_t count)
{
    size_t got = 0;
    while (got < count) {
        ssize_t more = recv(fd, (char *)bytes + got, count - got, 0);
        if (more <= 0) {
            break;
        }
        got += (size_t)more;
    }
    return got;
}

bool hear(int fd, void *bytes, size_t count)
{
    return hear_some(fd, bytes, count) == count;
}
