/* SPDX-License-Identifier: MIT */
/*
 * An iWARP device, siw0 of the guest: what it lacks ends with an error that names the device and
 * what to do, and what it has works over connections by rdma_cm. Other devices skip all of this.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/client.h"
#include "../support/iwarp.h"
#include "../support/process.h"

static struct sluice_listener *listen_here(char address[64])
{
    struct sluice_listener *listener = listen_with("rdmacm:" IWARP_HOST ":0", "");
    snprintf(address, 64, "rdmacm:" IWARP_HOST ":%d", sluice_listener_address(listener, NULL, 0));
    return listener;
}

/* Endpoints connect nothing: each call that would make one says so, and what to call instead. */
TEST(endpoints_connect_nothing)
{
    static const char words[] = "siw0 is iWARP rdma_cm rdmacm:host:port soft";
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    struct sluice_endpoint endpoint;
    struct pair pair;
    pair_open(&pair, NULL);
    struct sluice_pd *pd = pair.sides.pds[0];
    require_null(sluice_channel_prepare(pd, NULL), EOPNOTSUPP, words);
    require_null(sluice_multichannel_prepare(pd, 2, NULL), EOPNOTSUPP, words);
    struct sluice_multichannel *many = made(
        sluice_prepared_multichannel_handshake(sluice_multichannel_prepare(pd, 0, NULL), NULL, 0));
    require_error(sluice_multichannel_peer_add(many, &endpoint), -EOPNOTSUPP, words);
    require_equal(sluice_multichannel_peers(many), 0);
    sluice_multichannel_close(many);
    /* Not even the port is dialed. */
    require_null(sluice_connect("127.0.0.1:1", pd, NULL, &options, DEADLINE), EOPNOTSUPP, words);
    require_null(sluice_channel_reset(pair.channels[0]), EOPNOTSUPP, words);
    sluice_channel_close(pair.channels[1]);
    sides_close(&pair.sides);
}

TEST(device_is_described)
{
    struct sluice_device_list *list = made(sluice_device_list_get());
    struct sluice_context *context = open_context();
    struct sluice_context_info info = context_info(context);
    uint32_t index = 0;
    require_equal(info.link_layer, SLUICE_LINK_IWARP, info.atomics, SLUICE_ATOMICS_NONE,
                  info.gid_index, -1, info.max_sge, 1, info.max_read_sge, 1);
    while (strcmp(device_info(list, index).name, test_device()) != 0) {
        index++;
    }
    require_words(device_info(list, index).description, "active, iWARP, connects over rdma_cm");
    require_equal(device_info(list, index).active, 0, port_info(list, index, 1).state,
                  SLUICE_PORT_ACTIVE, port_info(list, index, 1).link_layer, SLUICE_LINK_IWARP);
    sluice_device_list_free(list);
    sluice_context_close(context);
}

/* Programs that name no device get one that all of them can use. */
TEST(iwarp_is_taken_only_by_name)
{
    require(unsetenv("SLUICE_DEVICE") == 0, "%s", strerror(errno));
    struct sluice_context *context = made(sluice_context_open(NULL, NULL));
    require(strcmp(context_info(context).device, "soft") == 0, "%s", context_info(context).device);
    sluice_context_close(context);
}

/* Returns a prepared list of one request, which must fail, and ends it if it does not. */
static const void *prepare(struct sluice_channel *channel, const struct sluice_request *request)
{
    struct sluice_list *list = sluice_channel_list_prepare(channel, request, 1);
    if (list != NULL) {
        sluice_list_free(list);
    }
    return list;
}

TEST_WITH(pair, no_immediates, (NULL), .times = 2)
{
    static const char words[] = "device siw0 iWARP no immediate";
    struct memory near = side_memory(&pair->sides, 0, 8), far = side_memory(&pair->sides, 1, 8);
    struct sluice_sge sge = memory_sge(&near, 0, 8);
    struct sluice_remote_mr remote = memory_remote(&far, 0, 8);
    struct sluice_channel *channel = pair->channels[_i];
    struct sluice_request request = request_of(_i == 0 ? SLUICE_OP_SEND : SLUICE_OP_WRITE, 0, &sge);
    struct sluice_handle handle;
    request.flags = SLUICE_IMMEDIATE;
    request.remote = remote;
    if (_i == 0) {
        memset(&request.remote, 0, sizeof(request.remote));
    }
    require_error(sluice_channel_send_immediate(channel, &sge, 1, 7, DEADLINE), -EOPNOTSUPP, words);
    require_error(sluice_channel_write_immediate(channel, &sge, 1, &remote, 7, DEADLINE),
                  -EOPNOTSUPP, words);
    require_error(sluice_channel_post(channel, &request, 1, DEADLINE, &handle), -EOPNOTSUPP, words);
    require_null(prepare(channel, &request), EOPNOTSUPP, words);
    /* Nothing was posted, and the channel works. */
    require_result(sluice_channel_state(channel), SLUICE_STATE_READY);
    pair_works(pair);
}

TEST_WITH(pair, no_atomic_operations, (NULL))
{
    struct memory near = side_memory(&pair->sides, 0, 8), far = side_memory(&pair->sides, 1, 8);
    struct sluice_sge sge = memory_sge(&near, 0, 8);
    struct sluice_remote_mr remote = memory_remote(&far, 0, 8);
    require_error(sluice_channel_fetch_add(pair->channels[0], &sge, &remote, 1, DEADLINE),
                  -EOPNOTSUPP, "device siw0 cannot do a fetch");
    require_error(sluice_channel_compare_swap(pair->channels[0], &sge, &remote, 0, 1, DEADLINE),
                  -EOPNOTSUPP, "device siw0 cannot do a compare");
    require_null(sluice_mr_register(pair->sides.pds[0], near.bytes, 8,
                                    ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC),
                 EOPNOTSUPP, "siw0 has no atomic operations");
    pair_works(pair);
}

/* Attributes that need what the device lacks are refused before anything is dialed. */
TEST(attributes_that_it_lacks)
{
    static const struct {
        struct sluice_channel_attr attr;
        int error;
        const char *words;
    } wrong[] = {
        {{.arrival_tags = 4}, EOPNOTSUPP, "arrival_tags siw0"},
        {{.access = SLUICE_ACCESS_REMOTE_ATOMIC}, EOPNOTSUPP, "siw0 has no atomic operations"},
        {{.flags = SLUICE_CHANNEL_DROP_LONG}, EOPNOTSUPP, "DROP_LONG siw0"},
        {{.flags = SLUICE_CHANNEL_GLOBAL}, EADDRNOTAVAIL, "siw0 has no GID"},
        {{.flags = SLUICE_CHANNEL_PSN}, EINVAL, "packet sequence numbers"},
        {{.pkey = 0xffff}, EINVAL, "pkey siw0"},
    };
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    struct sluice_context_attr context_attr = {
        .size = sizeof(context_attr), .flags = SLUICE_CONTEXT_GID_INDEX, .gid_index = 0};
    struct sides sides;
    char address[64];
    sides_open(&sides);
    sluice_listener_close(listen_here(address));
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct sluice_channel_attr attr = wrong[i].attr;
        attr.size = sizeof(attr);
        require_null(sluice_connect(address, sides.pds[0], &attr, &options, DEADLINE),
                     wrong[i].error, wrong[i].words);
    }
    require_null(sluice_context_open(test_device(), &context_attr), EINVAL, "siw0 no GIDs");
    sides_close(&sides);
}

/* TCP chooses the size of packets. The dialing side notices this when it is connected. */
TEST(path_mtu_is_refused)
{
    struct sides sides;
    struct client client;
    char address[64];
    sides_open(&sides);
    struct sluice_listener *listener = listen_here(address);
    client_init(&client, NULL, sides.pds[1], "");
    snprintf(client.address, sizeof(client.address), "%s", address);
    client.attr = ATTR(.path_mtu = 512);
    client_start(&client);
    struct sluice_channel *channel = sluice_accept(listener, sides.pds[0], NULL, DEADLINE);
    client_join(&client, -EINVAL);
    require_words(client.text, "path_mtu is 512 iWARP siw0 TCP");
    if (channel != NULL) {
        sluice_channel_close(channel);
    }
    sluice_listener_close(listener);
    sides_close(&sides);
}

/* A read needs no right of the program's beside that to write to its memory itself. */
TEST_WITH(pair, reads_into_memory_that_is_not_shared, (NULL))
{
    struct memory far = side_memory(&pair->sides, 1, 70000);
    struct memory near = side_memory_at(&pair->sides, 0, 70000, SLUICE_ACCESS_LOCAL_WRITE, 0);
    struct sluice_sge sge = memory_sge(&near, 0, near.length);
    struct sluice_remote_mr remote = memory_remote(&far, 0, far.length);
    pattern_fill(far.bytes, far.length, 3);
    require_ok(sluice_channel_read(pair->channels[0], &sge, 1, &remote, DEADLINE));
    pattern_check(near.bytes, near.length, 3);
}

/* Reads, writes and messages of no bytes, amid others, in both directions. */
TEST_WITH(pair, requests_of_no_bytes, (NULL))
{
    struct memory memories[2];
    for (int i = 0; i < 2; i++) {
        memories[i] = side_memory(&pair->sides, i, 4096);
    }
    for (int round = 0; round < 20; round++) {
        int from = round % 2;
        struct sluice_channel *channel = pair->channels[from];
        struct sluice_sge sge = memory_sge(&memories[from], 0, 4096);
        struct sluice_remote_mr whole = memory_remote(&memories[!from], 0, 4096), none = {0};
        pattern_fill(memories[!from].bytes, 4096, (uint64_t)round);
        require_ok(sluice_channel_read(channel, &sge, 1, &whole, DEADLINE));
        memset(memories[from].bytes, 0, 4096);
        require_ok(sluice_channel_read(channel, NULL, 0, &none, DEADLINE));
        value_check(memories[from].bytes, 4096, 0);
        require_ok(sluice_channel_write(channel, NULL, 0, &none, DEADLINE));
        struct sluice_handle handle = post_of(pair->channels[!from], SLUICE_OP_RECEIVE, NULL);
        require_ok(sluice_channel_send(channel, NULL, 0, DEADLINE));
        require_equal(await(pair->channels[!from], handle, SLUICE_CLASS_NONE).bytes, 0);
    }
}

/* Waits until the channel has failed; returns why. */
static struct sluice_error failure_of(const struct sluice_channel *channel)
{
    struct span span = span_begin();
    while (sluice_channel_state((struct sluice_channel *)(uintptr_t)channel) ==
           SLUICE_STATE_READY) {
        require(span_since(span).fair < DEADLINE, "it does not fail");
        let_pass(SLUICE_MS(1));
    }
    return channel_error(channel);
}

/*
 * A message without a receive, of which there is no second attempt, and a request with a wrong key:
 * the device of the peer ends the connection without a reason, and with it all posted work.
 */
TEST_WITH(pair, refused_requests_end_the_connection, (NULL), .times = 3)
{
    static const uint32_t opcodes[] = {SLUICE_OP_SEND, SLUICE_OP_WRITE, SLUICE_OP_READ};
    struct memory near = side_memory(&pair->sides, 0, 64), far = side_memory(&pair->sides, 1, 64);
    struct sluice_sge sge = memory_sge(&near, 0, 64);
    struct sluice_handle receive = post_of(pair->channels[0], SLUICE_OP_RECEIVE, NULL);
    struct sluice_request request = request_of(opcodes[_i], 0, &sge);
    struct sluice_completion completion;
    if (_i > 0) {
        request.remote = memory_remote(&far, 0, 64);
        request.remote.rkey ^= 0x5a5a5a00;
    }
    struct sluice_handle handle = post(pair->channels[0], &request);
    for (int i = 0; i < 2; i++) {
        struct sluice_error error = failure_of(pair->channels[i]);
        require(error.error_class == SLUICE_CLASS_PEER_LOST, "side %d: %s", i, error.text);
    }
    require_ok(sluice_channel_wait(pair->channels[0], &handle, DEADLINE, &completion));
    /* TCP had the message or the write by then, which is all that their completion says. */
    require(completion.error == 0 ? _i < 2 : completion.error == -ECONNRESET, "error %d",
            completion.error);
    require_ok(sluice_channel_wait(pair->channels[0], &receive, DEADLINE, &completion));
    require(completion.error != 0, "the receive succeeded");
    value_check(far.bytes, 64, 0);
}

/* A deadline that passes ends the request, and the connection with it, on both sides. */
TEST_WITH(pair, deadlines_are_kept, (NULL))
{
    struct sluice_completion completion;
    struct span span = span_begin();
    require_result(sluice_channel_receive(pair->channels[0], NULL, 0, SLUICE_MS(200), &completion),
                   -ETIMEDOUT);
    require(span_since(span).fair < SLUICE_S(3), "it took longer");
    require_words(failure_of(pair->channels[1]).text, "disconnected");
}

/* Either side that closes is noticed by the other one, which has a receive posted or nothing. */
TEST_WITH(pair, close_is_noticed, (NULL), .times = 4)
{
    int closes = _i % 2;
    struct sluice_channel *left = pair->channels[!closes];
    struct sluice_handle receive;
    struct sluice_completion completion;
    if (_i >= 2) {
        receive = post_of(left, SLUICE_OP_RECEIVE, NULL);
    }
    sluice_channel_close(pair->channels[closes]);
    pair->channels[closes] = NULL;
    if (_i >= 2) {
        require_ok(sluice_channel_wait(left, &receive, DEADLINE, &completion));
        require_equal(completion.error, -ECONNRESET);
    }
    struct sluice_error error = failure_of(left);
    require(error.error_class == SLUICE_CLASS_PEER_LOST, "%s", error.text);
}

static void serve_and_die(int gate, int port)
{
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    struct sluice_pd *pd = sluice_pd_alloc(open_context());
    char address[64];
    snprintf(address, sizeof(address), "rdmacm:" IWARP_HOST ":%d", port);
    if (sluice_connect(address, pd, NULL, &options, DEADLINE) == NULL) {
        fprintf(stderr, "%s\n", sluice_last_error());
        _exit(EXIT_FAILURE);
    }
    (void)!read(gate, &(char){0}, 1);
    kill(getpid(), SIGKILL);
}

/* A process that is killed is noticed by a side that only receives, and soon. */
TEST(killed_process_is_noticed)
{
    int pipes[2], status;
    char address[64];
    require(pipe(pipes) == 0, "%s", strerror(errno));
    struct sluice_listener *listener;
    pid_t pid;
    struct sides sides;
    int ready[2];
    require(pipe(ready) == 0, "%s", strerror(errno));
    pid = fork();
    require(pid >= 0, "%s", strerror(errno));
    if (pid == 0) {
        int port = 0;
        if (read(ready[0], &port, sizeof(port)) == sizeof(port)) {
            serve_and_die(pipes[0], port);
        }
        _exit(EXIT_FAILURE);
    }
    sides_open(&sides);
    listener = listen_here(address);
    int port = sluice_listener_address(listener, NULL, 0);
    require(write(ready[1], &port, sizeof(port)) == sizeof(port), "%s", strerror(errno));
    struct sluice_channel *channel = made(sluice_accept(listener, sides.pds[0], NULL, DEADLINE));
    struct sluice_handle receive = post_of(channel, SLUICE_OP_RECEIVE, NULL);
    struct sluice_completion completion;
    require(write(pipes[1], "", 1) == 1, "%s", strerror(errno));
    struct span span = span_begin();
    require_ok(sluice_channel_wait(channel, &receive, DEADLINE, &completion));
    require_equal(completion.error, -ECONNRESET);
    require(span_since(span).fair < SLUICE_S(3), "it took longer");
    require(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "status %d", status);
    sluice_channel_close(channel);
    sluice_listener_close(listener);
    sides_close(&sides);
}

/* A peer that answers is not lost, however quiet it is: the probe is a read. */
TEST(quiet_peers_are_probed)
{
    struct pair pair;
    struct sluice_completion completion;
    pair_open(&pair, ATTR(.keepalive = SLUICE_MS(100)));
    struct span span = span_begin();
    while (span_since(span).fair < SLUICE_S(1)) {
        require_result(sluice_channel_poll(pair.channels[0], &completion, 1), 0);
        require_result(sluice_channel_poll(pair.channels[1], &completion, 1), 0);
        let_pass(SLUICE_MS(5));
    }
    require_result(sluice_channel_state(pair.channels[0]), SLUICE_STATE_READY);
    require_result(sluice_channel_state(pair.channels[1]), SLUICE_STATE_READY);
    require_ok(sluice_channel_wait_connected(pair.channels[0], DEADLINE));
    pair_works(&pair);
    pair_close(&pair);
}

/* The addresses of the TCP connection are those of the channel. */
TEST_WITH(pair, addresses_are_those_of_tcp, (NULL))
{
    struct sluice_channel_info infos[2];
    for (int i = 0; i < 2; i++) {
        infos[i] = channel_info(pair->channels[i]);
        require_words(infos[i].address, IWARP_HOST ":");
        require_equal(infos[i].remote_qpn, 0, infos[i].gid_index, -1);
    }
    require(strcmp(infos[0].address, infos[1].remote_address) == 0, "%s and %s", infos[0].address,
            infos[1].remote_address);
    require(strcmp(infos[1].address, infos[0].remote_address) == 0, "%s and %s", infos[1].address,
            infos[0].remote_address);
}

/*
 * Each attempt uses up a queue pair: after one that was refused as too early, and after one at a
 * port where no process listened, the same call makes another one and connects.
 */
TEST(attempts_are_repeated)
{
    const struct sluice_listen_attr one = {.size = sizeof(one), .backlog = 1, .secret_file = ""};
    enum { MANY = 4 };
    struct sides sides;
    struct client clients[MANY];
    struct pair pairs[MANY];
    char address[64];
    sides_open(&sides);
    sluice_listener_close(listen_here(address));
    for (int i = 0; i < MANY; i++) {
        client_init(&clients[i], NULL, sides.pds[1], "");
        snprintf(clients[i].address, sizeof(clients[i].address), "%s", address);
        clients[i].options.flags = SLUICE_CONNECT_WAIT;
        client_start(&clients[i]);
    }
    let_pass(SLUICE_MS(20));
    struct sluice_listener *listener = made(sluice_listen(address, &one));
    for (int i = 0; i < MANY; i++) {
        pairs[i].sides = sides;
        pairs[i].channels[0] = made(sluice_accept(listener, sides.pds[0], NULL, DEADLINE));
        require_equal(channel_counters(pairs[i].channels[0]).resets, 0);
    }
    for (int i = 0; i < MANY; i++) {
        client_join(&clients[i], 0);
        require_equal(channel_counters(clients[i].channel).resets, 0);
        require_ok(sluice_channel_wait_connected(clients[i].channel, DEADLINE));
    }
    for (int i = 0; i < MANY; i++) {
        sluice_channel_close(pairs[i].channels[0]);
        sluice_channel_close(clients[i].channel);
    }
    sluice_listener_close(listener);
    sides_close(&sides);
}

/* TCP would try for two minutes. The address belongs to the network, and to no host. */
TEST(silent_host_holds_up_no_longer_than_the_deadline)
{
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    struct sides sides;
    sides_open(&sides);
    struct span span = span_begin();
    require_null(
        sluice_connect("rdmacm:192.0.2.77:7471", sides.pds[0], NULL, &options, SLUICE_MS(500)),
        ETIMEDOUT, "192.0.2.77:7471 does not answer");
    require(span_since(span).fair < SLUICE_S(3), "it took longer");
    sides_close(&sides);
}

/* Peers of a multichannel: lists to all of them, and one that leaves. */
TEST(peers_of_a_multichannel)
{
    enum { PEERS = 4 };
    struct star star;
    struct sluice_error error = {.size = sizeof(error)};
    star_open(&star, PEERS, NULL);
    for (uint32_t i = 0; i < PEERS; i++) {
        star_works(&star, i);
    }
    sluice_channel_close(star.spokes[1]);
    star.spokes[1] = NULL;
    struct span span = span_begin();
    while (sluice_multichannel_peer_state(star.hub, 1) == SLUICE_STATE_READY) {
        require(span_since(span).fair < DEADLINE, "it does not notice that its peer has left");
        let_pass(SLUICE_MS(1));
    }
    require_words(peer_error(star.hub, 1).text, "disconnected");
    for (uint32_t i = 0; i < PEERS; i++) {
        if (i != 1) {
            star_works(&star, i);
        }
    }
    require_ok(sluice_multichannel_peer_remove(star.hub, 1));
    star_close(&star);
}

int main(void)
{
    if (!device_is_iwarp()) {
        puts("1..0 # SKIP the device is not iWARP: tests/softroce/run --device siw0");
        return EXIT_SUCCESS;
    }
    return RUN_GROUPS("iwarp", {"self", WIRE_SELF, 30}, {"tcp", WIRE_TCP, 30});
}
