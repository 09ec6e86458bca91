/* SPDX-License-Identifier: MIT */
/*
 * The network between two hosts fails while one writes to the other: the errors of each side and
 * their time; a short failure does no harm, and the connection can be reset. The program runs on
 * both, host 0 writes; it needs to be root on a network of its own, such as that of
 * tests/softroce/run --hosts 2.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/pair.h"
#include "../support/process.h"

#define NETDEV "sluice0"
/* Port of the connection by which the hosts coordinate a test; each test has its own. */
#define PORT 18600

/*
 * A small size, for the virtual network does not drop packets that the other host does not take: it
 * stops this one when a few hundred packets wait, and its retries too.
 */
#define BLOCK ((size_t)2000)
#define BLOCKS 4
/* Rounds of traffic before the failure. */
#define WARM_UP 3

/*
 * Makes a peer given up after 7.5 s: one of the processors of a guest may stall for half of that,
 * which is no failure.
 */
#define RETRY_COUNT 6
#define ACK_TIMEOUT 18
#define BUDGET ((RETRY_COUNT + 1) * (INT64_C(4096) << ACK_TIMEOUT))
/* Delays of a host that shares two processors with another one. */
#define SLACK SLUICE_S(5)

enum failure_kind { LINK_DOWN, ADDRESS_REMOVED, BLACK_HOLE, SHORT_BLACK_HOLE, IDLE_BLACK_HOLE };

/* Longer than the retransmission of a lost packet takes. */
#define KEEPALIVE SLUICE_S(2)

static const struct failure {
    const char *begin;
    const char *end;
    int64_t lasts;
    enum sluice_error_class writer; /* the class on host 0 */
    enum sluice_error_class failed; /* the class on host 1, whose network fails */
    int64_t keepalive;
} failures[] = {
    [LINK_DOWN] = {"ip link set " NETDEV " down", "ip link set " NETDEV " up", BUDGET + SLACK,
                   SLUICE_CLASS_PEER_LOST, SLUICE_CLASS_DEVICE, 0},
    [ADDRESS_REMOVED] = {"ip address del $ADDRESS/24 dev " NETDEV,
                         "ip address add $ADDRESS/24 dev " NETDEV, BUDGET + SLACK,
                         SLUICE_CLASS_PEER_LOST, SLUICE_CLASS_DEVICE, 0},
    [BLACK_HOLE] = {"tc qdisc replace dev " NETDEV " root netem loss 100%",
                    "tc qdisc del dev " NETDEV " root", BUDGET + SLACK, SLUICE_CLASS_PEER_LOST,
                    SLUICE_CLASS_NONE, 0},
    [SHORT_BLACK_HOLE] = {"tc qdisc replace dev " NETDEV " root netem loss 100%",
                          "tc qdisc del dev " NETDEV " root", BUDGET / 10, SLUICE_CLASS_NONE,
                          SLUICE_CLASS_NONE, 0},
    [IDLE_BLACK_HOLE] = {"tc qdisc replace dev " NETDEV " root netem loss 100%",
                         "tc qdisc del dev " NETDEV " root", 2 * KEEPALIVE + SLACK,
                         SLUICE_CLASS_PEER_LOST, SLUICE_CLASS_PEER_LOST, KEEPALIVE},
};

/* One end of the running test. */
struct end {
    const struct failure *failure;
    int talk;
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct memory memory;
    struct sluice_channel *channel;
    struct sluice_remote_mr remote; /* of host 0: the other's memory */
};

static int this_host;
static struct in_addr addresses[2];

static void send_bytes(struct end *end, const void *bytes, size_t length)
{
    require(send(end->talk, bytes, length, MSG_NOSIGNAL) == (ssize_t)length, "%s", strerror(errno));
}

static void receive_bytes(struct end *end, const char *what, void *bytes, size_t length)
{
    ssize_t got = recv(end->talk, bytes, length, MSG_WAITALL);
    require(got == (ssize_t)length, "%s: %s", what,
            got < 0 ? strerror(errno) : "the other host has given up");
}

/* Waits until both hosts have come to this place. */
static void meet(struct end *end, const char *place)
{
    char byte = 'm';
    send_bytes(end, &byte, 1);
    receive_bytes(end, place, &byte, 1);
}

/* Host 0 listens for a single connection, so the next test cannot take it for its own. */
static int accept_other(const struct sockaddr_in *address)
{
    struct timeval limit = {.tv_sec = 200};
    int yes = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    require_ok(bind(listener, (const struct sockaddr *)address, sizeof(*address)));
    require_ok(listen(listener, 1));
    int fd = accept(listener, NULL, NULL);
    require(fd >= 0, "the other host does not come: %s", strerror(errno));
    close(listener);
    return fd;
}

static int connect_other(const struct sockaddr_in *address)
{
    int64_t end = clock_now() + SLUICE_S(200);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    while (connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0) {
        require(clock_now() < end, "the other host does not come: %s", strerror(errno));
        close(fd);
        let_pass(SLUICE_MS(50));
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    return fd;
}

static void talk_open(struct end *end, int number)
{
    struct timeval limit = {.tv_sec = 200};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = addresses[0]};
    address.sin_port = htons((uint16_t)(PORT + number));
    end->talk = this_host == 0 ? accept_other(&address) : connect_other(&address);
    setsockopt(end->talk, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

/* Connects the prepared channel to that of the other host. */
static void join(struct end *end, struct sluice_prepared_channel *prepared)
{
    struct sluice_endpoint endpoint;
    require(prepared, "%s", sluice_last_error());
    require_ok(sluice_prepared_channel_endpoint(prepared, &endpoint));
    send_bytes(end, &endpoint, sizeof(endpoint));
    receive_bytes(end, "the endpoint", &endpoint, sizeof(endpoint));
    end->channel = made(sluice_prepared_channel_handshake(prepared, &endpoint));
    meet(end, "connected");
}

static void end_open(struct end *end, int number)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr)};
    /* Where keep-alive must act first, the device has twice the time. */
    attr.ack_timeout = number == IDLE_BLACK_HOLE ? ACK_TIMEOUT + 1 : ACK_TIMEOUT;
    attr.retry_count = RETRY_COUNT;
    attr.keepalive = failures[number].keepalive;
    end->failure = &failures[number];
    talk_open(end, number);
    end->context = open_context();
    end->pd = made(sluice_pd_alloc(end->context));
    memory_open(&end->memory, end->pd, BLOCKS * BLOCK);
    join(end, sluice_channel_prepare(end->pd, &attr));
    if (this_host == 0) {
        receive_bytes(end, "the memory", &end->remote, sizeof(end->remote));
    } else {
        struct sluice_remote_mr own = memory_remote(&end->memory, 0, BLOCKS * BLOCK);
        send_bytes(end, &own, sizeof(own));
    }
}

static void end_close(struct end *end)
{
    sluice_channel_close(end->channel);
    memory_close(&end->memory);
    sluice_pd_free(end->pd);
    sluice_context_close(end->context);
    close(end->talk);
}

/* Fills the other's memory with the pattern of the round. Returns the result of the writes. */
static int write_round(struct end *end, uint32_t round, struct sluice_completion *completions)
{
    struct sluice_sge sges[BLOCKS];
    struct sluice_request requests[BLOCKS];
    pattern_fill(end->memory.bytes, end->memory.length, round);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        sges[i] = memory_sge(&end->memory, i * BLOCK, BLOCK);
        requests[i] = request_of(SLUICE_OP_WRITE, 0, &sges[i]);
        require_ok(sluice_remote_mr_slice(&end->remote, i * BLOCK, BLOCK, &requests[i].remote));
    }
    return sluice_channel_submit(end->channel, requests, BLOCKS, DEADLINE, completions);
}

/* The first write that failed lost its peer, and those behind it were cancelled. */
static void check_lost(const struct end *end, const struct sluice_completion *completions)
{
    struct sluice_error error = channel_error(end->channel);
    uint32_t first = 0;
    while (first < BLOCKS && completions[first].error == 0) {
        first++;
    }
    require(first < BLOCKS, "all writes succeeded");
    require_class(&completions[first], SLUICE_CLASS_PEER_LOST);
    for (uint32_t i = first + 1; i < BLOCKS; i++) {
        require_class(&completions[i], SLUICE_CLASS_CANCELLED);
    }
    require(error.error_class == SLUICE_CLASS_PEER_LOST, "%s", error.text);
}

/*
 * Host 0 sends nothing before host 1 does, which is after the failure: TCP waits longer after each
 * lost packet, and so has nothing to retransmit.
 */
static void await_network(struct end *end)
{
    char byte;
    receive_bytes(end, "the end of the failure", &byte, 1);
    send_bytes(end, &byte, 1);
}

/* Whether the other host has reported that its network works again. */
static bool is_over(const struct end *end)
{
    char byte;
    return recv(end->talk, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
}

/* Runs on host 0. Returns the number of the last round that arrived. */
static uint32_t write_until_failure(struct end *end)
{
    struct sluice_completion completions[BLOCKS];
    bool survives = end->failure->writer == SLUICE_CLASS_NONE;
    int64_t start = fair_now();
    int64_t last = start;
    int64_t longest = 0;
    uint32_t round = 1;
    while (write_round(end, round, completions) == 0) {
        int64_t now = fair_now();
        longest = now - last > longest ? now - last : longest;
        last = now;
        require(now - start < DEADLINE, "no failure, the longest pause was %lld ms",
                (long long)longest / 1000000);
        if (survives && is_over(end)) {
            require(longest > end->failure->lasts / 2, "the longest pause was %lld ms",
                    (long long)longest / 1000000);
            return round;
        }
        round++;
    }
    int64_t took = fair_now() - last;
    require(!survives, "round %u failed after %lld ms: %s", round, (long long)took / 1000000,
            sluice_last_error());
    check_lost(end, completions);
    printf("# noticed after %lld ms\n", (long long)took / 1000000);
    require(took < BUDGET + BUDGET / 5 + SLACK, "noticed after %lld ms, not within %lld",
            (long long)took / 1000000, (long long)BUDGET / 1000000);
    return round - 1;
}

static void run_command(const char *command)
{
    require(system(command) == 0, "%s", command);
}

/* Waits until the first byte of the memory has changed this often. */
static void await_traffic(const struct end *end)
{
    const volatile uint8_t *bytes = end->memory.bytes;
    int64_t limit = clock_now() + DEADLINE;
    for (int changes = 0; changes < WARM_UP;) {
        uint8_t before = bytes[0];
        while (bytes[0] == before) {
            require(clock_now() < limit, "%d rounds have come", changes);
            let_pass(SLUICE_MS(1));
        }
        changes++;
    }
}

/* On host 1, the channel fails with the class, or stays ready, until the failure is over. */
static void check_failed(struct end *end, struct sluice_handle receive, int64_t over)
{
    struct sluice_completion completion;
    int64_t left = over - clock_now();
    int result = sluice_channel_wait(end->channel, &receive, left > 0 ? left : 0, &completion);
    if (end->failure->failed == SLUICE_CLASS_NONE) {
        require_result(result, -ETIMEDOUT);
        require_result(sluice_channel_state(end->channel), SLUICE_STATE_READY);
        return;
    }
    require_ok(result);
    require(completion.error != 0, "a receive without a send");
    struct sluice_error error = channel_error(end->channel);
    require(error.error_class == end->failure->failed, "%s", error.text);
}

/* Results are exchanged when the network works again, so that the other host gets them. */
static void fail_network(struct end *end)
{
    struct sluice_sge sge = memory_sge(&end->memory, 0, BLOCK);
    struct sluice_request request = request_of(SLUICE_OP_RECEIVE, 0, &sge);
    struct sluice_handle receive = post(end->channel, &request);
    await_traffic(end);
    run_command(end->failure->begin);
    int64_t over = clock_now() + end->failure->lasts;
    check_failed(end, receive, over);
    if (over > clock_now()) {
        let_pass(over - clock_now());
    }
    run_command(end->failure->end);
    meet(end, "the failure is over");
}

/* Both channels are reset, and the memory of host 1 is what host 0 wrote. */
static void check_works_again(struct end *end)
{
    struct sluice_completion completions[BLOCKS];
    join(end, sluice_channel_reset(end->channel));
    if (this_host == 0) {
        require_ok(write_round(end, 1000, completions));
    }
    meet(end, "written again");
    pattern_check(end->memory.bytes, end->memory.length, 1000);
}

static void fail_and_recover(enum failure_kind kind)
{
    struct end end;
    uint32_t round;
    memset(&end, 0, sizeof(end));
    end_open(&end, (int)kind);
    if (this_host == 0) {
        round = write_until_failure(&end);
        await_network(&end);
        send_bytes(&end, &round, sizeof(round));
    } else {
        fail_network(&end);
        receive_bytes(&end, "the last round", &round, sizeof(round));
    }
    if (end.failure->writer == SLUICE_CLASS_NONE) {
        pattern_check(end.memory.bytes, end.memory.length, round);
    }
    meet(&end, "checked");
    check_works_again(&end);
    end_close(&end);
}

/*
 * Host 1's network fails while neither side sends anything. Only keep-alive can notice that, and
 * does so before the device has given up.
 */
static void idle_until_failure(struct end *end)
{
    struct sluice_request request = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    struct sluice_completion completion;
    require_ok(sluice_channel_wait_connected(end->channel, DEADLINE));
    struct sluice_handle receive = post(end->channel, &request);
    meet(end, "idle");
    if (this_host == 1) {
        run_command(end->failure->begin);
    }
    int64_t start = clock_now();
    require_ok(sluice_channel_wait(end->channel, &receive, DEADLINE, &completion));
    int64_t took = clock_now() - start;
    require_class(&completion, SLUICE_CLASS_PEER_LOST);
    struct sluice_error error = channel_error(end->channel);
    require(strstr(error.text, "keep-alive"), "%s", error.text);
    printf("# noticed after %lld ms\n", (long long)took / 1000000);
    require(took < end->failure->lasts, "noticed after %lld ms", (long long)took / 1000000);
    if (this_host == 1) {
        if (took < end->failure->lasts) {
            let_pass(end->failure->lasts - took);
        }
        run_command(end->failure->end);
        meet(end, "the failure is over");
    }
}

TEST(idle_survivors_are_notified, .group = "losses")
{
    struct end end;
    memset(&end, 0, sizeof(end));
    end_open(&end, IDLE_BLACK_HOLE);
    idle_until_failure(&end);
    if (this_host == 0) {
        await_network(&end);
    }
    meet(&end, "checked");
    check_works_again(&end);
    end_close(&end);
}

TEST(link_goes_down, .group = "interfaces")
{
    fail_and_recover(LINK_DOWN);
}

TEST(address_is_removed, .group = "interfaces")
{
    fail_and_recover(ADDRESS_REMOVED);
}

TEST(answers_are_lost, .group = "losses")
{
    fail_and_recover(BLACK_HOLE);
}

TEST(answers_are_lost_for_a_while, .group = "losses")
{
    fail_and_recover(SHORT_BLACK_HOLE);
}

/* Sets the number of this host and the addresses of both. Returns false if there are none. */
static bool find_hosts(void)
{
    const char *host = getenv("SOFTROCE_HOST");
    const char *list = getenv("SOFTROCE_HOSTS");
    char texts[2][40];
    if (!host || !list || sscanf(list, "%39s %39s", texts[0], texts[1]) != 2) {
        return false;
    }
    this_host = strcmp(host, "0") != 0;
    setenv("ADDRESS", texts[this_host], 1);
    return inet_aton(texts[0], &addresses[0]) && inet_aton(texts[1], &addresses[1]);
}

int main(void)
{
    const struct tests cases[] = {{"interfaces", WIRE_TCP, 90}, {"losses", WIRE_TCP, 90}};
    if (device_is_soft() || !find_hosts()) {
        printf("1..0 # SKIP only on two hosts with a verbs device each: "
               "tests/softroce/run --hosts 2\n");
        return EXIT_SUCCESS;
    }
    return run_groups("hosts", cases, COUNT(cases));
}
