/* SPDX-License-Identifier: MIT */
#include "liar.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/process.h"

void put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
    }
}

void make_hello(uint8_t hello[HELLO], uint8_t role, uint32_t ranks, uint32_t rank)
{
    memset(hello, 0, HELLO);
    memcpy(hello, "sluice\n\xe5", 8);
    put(hello + VERSION, 1, 2);
    hello[ROLE] = role;
    put(hello + RANKS, ranks, 4);
    put(hello + RANK, rank, 4);
    memset(hello + NONCE, 0x5a, 32);
}

void make_frame(uint8_t frame[FRAME], uint8_t type, uint64_t sequence, uint64_t bytes)
{
    memset(frame, 0, FRAME);
    frame[0] = type;
    put(frame + 8, sequence, 8);
    put(frame + 16, bytes, 8);
}

static struct sockaddr_in loopback(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

void dial_with(int fd, uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    require(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "%m");
}

int dial(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    struct timeval time = {.tv_sec = 20};
    int64_t end = clock_now() + LONG;
    while (clock_now() < end) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        require(fd >= 0, "%m");
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
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
    send(fd, bytes, count, MSG_NOSIGNAL);
}

size_t hear(int fd, void *bytes, size_t count)
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

void require_dropped(int fd, const char *what)
{
    uint8_t bytes[HELLO];
    size_t got = hear(fd, bytes, sizeof(bytes));
    require(got < sizeof(bytes), "%s: rank 0 answers", what);
    close(fd);
}

void require_refused(int fd, uint8_t refusal, const char *what)
{
    uint8_t bytes[HELLO];
    require(hear(fd, bytes, sizeof(bytes)) == HELLO, "%s: no hello", what);
    require(bytes[REFUSAL] == refusal, "%s: refusal %u", what, bytes[REFUSAL]);
    require(hear(fd, bytes, 1) == 0, "%s: not dropped", what);
    close(fd);
}

int listen_at(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    require(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "%m");
    require(listen(fd, 8) == 0, "%m");
    return fd;
}

int join(const struct parties *parties, uint32_t ranks, uint32_t rank)
{
    uint8_t hello[HELLO];
    int fd = dial(parties->port);
    make_hello(hello, 1, ranks, rank);
    say(fd, hello, HELLO);
    require(hear(fd, hello, HELLO) == HELLO, "rank 0 says nothing");
    require(hello[ROLE] == 2 && hello[REFUSAL] == 0, "refusal %u", hello[REFUSAL]);
    return fd;
}

void require_verdict(int fd, const char *words)
{
    uint8_t frame[FRAME];
    char text[400] = "";
    require(hear(fd, frame, FRAME) == FRAME && frame[0] == VERDICT, "no verdict, but %u", frame[0]);
    require(frame[22] * 256U + frame[23] < sizeof(text), "a verdict of %u", frame[22]);
    hear(fd, text, frame[22] * 256U + frame[23]);
    require(strstr(text + 12, words), "no '%s' in '%s'", words, text + 12);
    close(fd);
}
