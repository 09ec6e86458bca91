/* SPDX-License-Identifier: MIT */
/*
 * Endpoints and handshakes: for any 384 bytes the handshake reports what is wrong, consumes its
 * argument, and harms no other channel.
 */
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"

/* Computes the checksum, to make endpoints that are wrong in only one field. */
static void seal(struct sluice_endpoint *endpoint)
{
    uint32_t hash = UINT32_C(2166136261);
    for (int i = 0; i < SLUICE_ENDPOINT_BYTES - 4; i++) {
        hash = (hash ^ endpoint->bytes[i]) * UINT32_C(16777619);
    }
    for (int i = 0; i < 4; i++) {
        endpoint->bytes[SLUICE_ENDPOINT_BYTES - 4 + i] = (uint8_t)(hash >> (24 - 8 * i));
    }
}

/* Requires that a handshake with this endpoint fails with this errno. */
static void refuse(struct sluice_pd *pd, const struct sluice_endpoint *remote, int error,
                   const char *words)
{
    struct sluice_endpoint ours;
    struct sluice_prepared_channel *prepared = prepare_channel(pd, NULL, &ours);
    require_null(sluice_prepared_channel_handshake(prepared, remote), error, words);
}

TEST_WITH(sides, damaged_endpoints, ())
{
    struct sluice_endpoint good, bad;
    struct sluice_prepared_channel *peer = prepare_channel(sides->pds[1], NULL, &good);
    memset(&bad, 0, sizeof(bad));
    refuse(sides->pds[0], &bad, EPROTO, "endpoint");
    int fds = count_fds(); /* with all that is made when it is first needed */
    memset(&bad, 0xff, sizeof(bad));
    refuse(sides->pds[0], &bad, EPROTO, "endpoint");
    for (int i = 0; i < SLUICE_ENDPOINT_BYTES; i++) {
        bad = good;
        bad.bytes[i] ^= (uint8_t)(1 << (i % 8));
        refuse(sides->pds[0], &bad, EPROTO, "endpoint");
    }
    unsigned seed = 12345;
    for (int i = 0; i < 200; i++) {
        for (int j = 0; j < SLUICE_ENDPOINT_BYTES; j++) {
            bad.bytes[j] = (uint8_t)(rand_r(&seed) >> 7);
        }
        refuse(sides->pds[0], &bad, EPROTO, "endpoint");
    }
    refuse(sides->pds[0], NULL, EINVAL, "");
    require_null(sluice_prepared_channel_handshake(NULL, &good), EINVAL, "");
    require(settle_fds(fds) == fds, "%d fds, were %d", count_fds(), fds);
    sluice_prepared_channel_free(peer);
}

TEST_WITH(sides, endpoint_of_another_version, ())
{
    struct sluice_endpoint bad;
    struct sluice_prepared_channel *peer = prepare_channel(sides->pds[1], NULL, &bad);
    uint8_t version = bad.bytes[0];
    /* The oldest version that can read ours is the oldest that we can read. */
    int older = bad.bytes[1] - 1 - version;
    const struct {
        int written, readable; /* after ours */
        const char *words;
    } wrong[] = {
        {0, 1, "version version"},
        {1, 1, "written by version from version this library knows version too old"},
        {100, 50, "written by version from version this library knows version too old"},
        {older, older, "written by version this library knows version too old"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        bad.bytes[0] = (uint8_t)(version + wrong[i].written);
        bad.bytes[1] = (uint8_t)(version + wrong[i].readable);
        seal(&bad);
        refuse(sides->pds[0], &bad, EPROTO, wrong[i].words);
    }
    bad.bytes[0] = bad.bytes[1] = 0;
    seal(&bad);
    refuse(sides->pds[0], &bad, EPROTO, "version 0");
    sluice_prepared_channel_free(peer);
}

/* The byte in which an endpoint of soft has the number of messages that it spills. */
#define EARLY_AT 230
/* The byte of supported features, one bit each: the reason of an end. */
#define KNOWS_AT 231
/* Both sides of a connection share memory, or neither. */
#define KNOWS_FAREWELL 1
#define KNOWS_SHARING 4
/* The byte in which an endpoint of verbs has the number of GIDs. */
#define GIDS_AT 140

/* An endpoint of a later version that this one can read: its additions are ignored. */
TEST_WITH(sides, endpoint_from_the_future, ())
{
    struct sluice_endpoint theirs[2];
    struct sluice_prepared_channel *prepared[2];
    struct sluice_channel *channels[2];
    struct sluice_handle early[20];
    for (int i = 0; i < 2; i++) {
        prepared[i] = prepare_channel(sides->pds[i], NULL, &theirs[1 - i]);
    }
    theirs[0].bytes[0] += 7;
    /* Unknown rights, and unused bits of a byte. */
    theirs[0].bytes[248] |= 0x80;
    memset(theirs[0].bytes + 252, 0x77, SLUICE_ENDPOINT_BYTES - 4 - 252);
    theirs[0].bytes[KNOWS_AT] = 0xf0 | KNOWS_SHARING;
    /* More than this library spills. */
    theirs[0].bytes[EARLY_AT] = device_is_soft() ? 255 : 0;
    seal(&theirs[0]);
    for (int i = 0; i < 2; i++) {
        channels[i] = made(sluice_prepared_channel_handshake(prepared[i], &theirs[i]));
    }
    for (uint32_t i = 0; i < COUNT(early); i++) {
        early[i] = post_of(channels[0], SLUICE_OP_SEND, NULL);
    }
    for (uint32_t i = 0; i < COUNT(early); i++) {
        require_ok(sluice_channel_receive(channels[1], NULL, 0, DEADLINE, NULL));
        await(channels[0], early[i], SLUICE_CLASS_NONE);
    }
    pair_works(&(struct pair){.sides = *sides, .channels = {channels[0], channels[1]}});
    sluice_channel_close(channels[0]);
    sluice_channel_close(channels[1]);
}

/* Returns the offset of the number of further queue pairs, which are behind it. */
static size_t further_at(void)
{
    return device_is_soft() ? 208 : 72;
}

TEST(further_queue_pairs_are_checked)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .queue_pairs = 8};
    struct sides sides;
    struct sluice_endpoint good, bad;
    size_t at = further_at();
    size_t each = device_is_soft() ? 3 : 6;
    int knows = KNOWS_FAREWELL | (current_wire() == WIRE_TCP ? 0 : KNOWS_SHARING);
    sides_open(&sides);
    struct sluice_prepared_channel *peer = prepare_channel(sides.pds[1], &attr, &good);
    require(good.bytes[at] == 7, "%u further ones", good.bytes[at]);
    for (size_t i = at + 1 + 7 * each; i < 232; i++) {
        /*
         * A device has the address for hints there, the word for a farewell, and the GIDs that it
         * offers.
         */
        if (!device_is_soft() && i >= 120 && i < 210)
            continue;
        int expected = !device_is_soft() ? 0 : i == EARLY_AT ? 16 : i == KNOWS_AT ? knows : 0;
        require(good.bytes[i] == expected, "byte %zu is %u", i, good.bytes[i]);
    }
    value_check(good.bytes + 252, SLUICE_ENDPOINT_BYTES - 4 - 252, 0);
    bad = good;
    bad.bytes[EARLY_AT] = 17;
    seal(&bad);
    if (device_is_soft())
        refuse(sides.pds[0], &bad, EPROTO, "spills 17 messages at most 16");
    bad = good;
    bad.bytes[at] = 8;
    seal(&bad);
    refuse(sides.pds[0], &bad, EPROTO, "9 queue pairs at most 8");
    bad = good;
    memset(&bad.bytes[at + 1 + each], 0, 3);
    seal(&bad);
    refuse(sides.pds[0], &bad, EPROTO, "no number of its queue pair 3 of 8");
    bad = good;
    memcpy(&bad.bytes[at + 1 + 3 * each], &bad.bytes[at + 1], 3);
    seal(&bad);
    refuse(sides.pds[0], &bad, EPROTO, "two queue pairs of number");
    bad = good;
    memcpy(&bad.bytes[at + 1], &bad.bytes[5], 3);
    seal(&bad);
    refuse(sides.pds[0], &bad, EPROTO, "two queue pairs of number");
    bad = good;
    bad.bytes[GIDS_AT] = 6;
    seal(&bad);
    if (!device_is_soft())
        refuse(sides.pds[0], &bad, EPROTO, "6 addresses at most 5");
    sluice_prepared_channel_free(peer);
    sides_close(&sides);
}

/* A later version may have more queue pairs: those known here are used. */
TEST(more_queue_pairs_from_the_future)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .queue_pairs = 8, .stripe_least = 64};
    struct pair pair;
    struct sluice_endpoint theirs[2];
    struct sluice_prepared_channel *prepared[2];
    sides_open(&pair.sides);
    for (int i = 0; i < 2; i++) {
        prepared[i] = prepare_channel(pair.sides.pds[i], &attr, &theirs[1 - i]);
    }
    theirs[0].bytes[0] += 7;
    theirs[0].bytes[further_at()] = 200;
    if (!device_is_soft() && theirs[0].bytes[GIDS_AT] > 0)
        theirs[0].bytes[GIDS_AT] = 200;
    seal(&theirs[0]);
    for (int i = 0; i < 2; i++) {
        pair.channels[i] = made(sluice_prepared_channel_handshake(prepared[i], &theirs[i]));
        struct sluice_channel_info info = channel_info(pair.channels[i]);
        require(info.queue_pairs == 8, "%u queue pairs", info.queue_pairs);
    }
    pair_works(&pair);
    pair_close(&pair);
}

TEST_WITH(sides, endpoint_of_another_transport, ())
{
    struct sluice_endpoint bad;
    struct sluice_prepared_channel *peer = prepare_channel(sides->pds[1], NULL, &bad);
    bad.bytes[3] = device_is_soft() ? 1 : 2;
    seal(&bad);
    refuse(sides->pds[0], &bad, EPROTOTYPE, "verbs");
    bad.bytes[3] = 3;
    seal(&bad);
    refuse(sides->pds[0], &bad, EPROTO, "3");
    sluice_prepared_channel_free(peer);
}

/* Random addresses with a right checksum cause no crash, and no hang later. */
TEST(forged_endpoints)
{
    struct sides sides;
    struct sluice_endpoint good, ours;
    unsigned seed = 4711;
    sides_open(&sides);
    if (!device_is_soft()) {
        sides_close(&sides);
        return; /* a device takes some time for each */
    }
    struct sluice_prepared_channel *peer = prepare_channel(sides.pds[1], NULL, &good);
    for (int i = 0; i < (short_run() ? 20 : 100); i++) {
        struct sluice_endpoint bad = good;
        for (int j = 0; j < 1 + i % 4; j++) {
            bad.bytes[4 + rand_r(&seed) % 88] = (uint8_t)(rand_r(&seed) >> 7);
        }
        seal(&bad);
        struct sluice_prepared_channel *prepared = prepare_channel(sides.pds[0], NULL, &ours);
        struct sluice_channel *channel = sluice_prepared_channel_handshake(prepared, &bad);
        if (channel) {
            int64_t start = fair_now();
            int result = sluice_channel_send(channel, NULL, 0, SLUICE_MS(20));
            require(result < 0, "forged endpoint %d", i);
            require(fair_now() - start < SLUICE_S(2), "took %lld ms",
                    (long long)(fair_now() - start) / 1000000);
            sluice_channel_close(channel);
        }
    }
    sluice_prepared_channel_free(peer);
    sides_close(&sides);
}

/*
 * The peer has gone before it ever shook hands, which the first operation notices. Which side
 * connects is random, hence several channels, which wait at the same time.
 */
TEST_WITH(sides, stale_endpoint, ())
{
    struct sluice_channel *channels[8];
    struct sluice_handle handles[COUNT(channels)];
    const uint32_t count = device_is_soft() ? COUNT(channels) : 1;
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_endpoint stale, ours;
        sluice_prepared_channel_free(prepare_channel(sides->pds[1], NULL, &stale));
        struct sluice_prepared_channel *prepared = prepare_channel(sides->pds[0], NULL, &ours);
        channels[i] = made(sluice_prepared_channel_handshake(prepared, &stale));
        if (i > 0) {
            handles[i] = post_of(channels[i], SLUICE_OP_SEND, NULL);
        }
    }
    require_error(sluice_channel_send(channels[0], NULL, 0, DEADLINE / 2), -ECONNRESET, "");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) {
            await(channels[i], handles[i], SLUICE_CLASS_PEER_LOST);
        }
        require_result(sluice_channel_state(channels[i]), SLUICE_STATE_FAILED);
        require_equal(channel_error(channels[i]).error_class, SLUICE_CLASS_PEER_LOST);
        sluice_channel_close(channels[i]);
    }
}

/* Two of 4 peers have unusable endpoints: those start as failed. */
TEST(unusable_peers_of_a_multichannel)
{
    struct sides sides;
    struct sluice_endpoint ours[4], theirs[4];
    struct sluice_prepared_channel *prepared[4];
    struct star star = {.peers = 4};
    sides_open(&star.sides);
    sides = star.sides;
    struct sluice_prepared_multichannel *hub =
        made(sluice_multichannel_prepare(sides.pds[0], 4, NULL));
    require_ok(sluice_prepared_multichannel_endpoints(hub, ours, 4));
    for (uint32_t i = 0; i < 4; i++) {
        prepared[i] = prepare_channel(sides.pds[1], NULL, &theirs[i]);
    }
    memset(&theirs[1], 0x5a, sizeof(theirs[1]));
    theirs[2].bytes[3] = device_is_soft() ? 1 : 2;
    seal(&theirs[2]);
    star.hub = made(sluice_prepared_multichannel_handshake(hub, theirs, 4));
    for (uint32_t i = 0; i < 4; i++) {
        star.spokes[i] = made(sluice_prepared_channel_handshake(prepared[i], &ours[i]));
        require_result(sluice_multichannel_peer_state(star.hub, i),
                       i == 1 || i == 2 ? SLUICE_STATE_FAILED : SLUICE_STATE_READY);
    }
    require(strstr(peer_error(star.hub, 1).text, "endpoint"), "%s", peer_error(star.hub, 1).text);
    require(peer_error(star.hub, 2).text[0], "peer %d", 2);
    struct sluice_error error = {.size = sizeof(error)};
    require_ok(sluice_multichannel_peer_error(star.hub, 0, &error));
    require_result(sluice_multichannel_send(star.hub, 1, NULL, 0, DEADLINE), -ENOTCONN);
    star_works(&star, 0);
    star_works(&star, 3);

    /* The peer can be reset. */
    struct sluice_endpoint endpoint;
    require_ok(sluice_multichannel_peer_reset(star.hub, 1, &endpoint));
    sluice_channel_close(star.spokes[1]);
    prepared[1] = prepare_channel(sides.pds[1], NULL, &theirs[1]);
    require_ok(sluice_multichannel_peer_handshake(star.hub, 1, &theirs[1]));
    star.spokes[1] = made(sluice_prepared_channel_handshake(prepared[1], &endpoint));
    star_works(&star, 1);
    require_ok(sluice_multichannel_peer_error(star.hub, 1, &error));
    star_close(&star);
}

/* A server without clients yet passes endpoints of zeros, and the peers come later. */
TEST(absent_peers_come_later)
{
    struct sluice_endpoint ours[2];
    struct sluice_endpoint theirs[2] = {{{0}}};
    struct star star = {.peers = 2};
    sides_open(&star.sides);
    struct sluice_prepared_multichannel *hub =
        made(sluice_multichannel_prepare(star.sides.pds[0], 2, NULL));
    require_ok(sluice_prepared_multichannel_endpoints(hub, ours, 2));
    star.hub = made(sluice_prepared_multichannel_handshake(hub, theirs, 2));
    for (uint32_t i = 0; i < 2; i++) {
        struct sluice_error error = {.size = sizeof(error)};
        require_result(sluice_multichannel_peer_state(star.hub, i), SLUICE_STATE_PREPARED);
        require_ok(sluice_multichannel_peer_error(star.hub, i, &error));
        require_error(sluice_multichannel_send(star.hub, i, NULL, 0, DEADLINE), -ENOTCONN,
                      "connected");
    }
    for (uint32_t i = 2; i-- > 0;) {
        struct sluice_prepared_channel *prepared =
            prepare_channel(star.sides.pds[1], NULL, &theirs[i]);
        require_ok(sluice_multichannel_peer_handshake(star.hub, i, &theirs[i]));
        star.spokes[i] = made(sluice_prepared_channel_handshake(prepared, &ours[i]));
        star_works(&star, i);
    }
    star_close(&star);
}

TEST_WITH(sides, wrong_number_of_endpoints, ())
{
    struct sluice_endpoint endpoints[4];
    static const uint32_t counts[] = {0, 2, 4, UINT32_MAX};
    sluice_prepared_multichannel_free(sluice_multichannel_prepare(sides->pds[0], 3, NULL));
    int fds = count_fds(); /* with all that is made when it is first needed */
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct sluice_prepared_multichannel *prepared =
            made(sluice_multichannel_prepare(sides->pds[0], 3, NULL));
        memset(endpoints, 0xcc, sizeof(endpoints));
        require_error(sluice_prepared_multichannel_endpoints(prepared, endpoints, counts[i]),
                      -EINVAL, "3");
        value_check(endpoints, sizeof(endpoints), 0xcc);
        require_ok(sluice_prepared_multichannel_endpoints(prepared, endpoints, 3));
        require_error(sluice_prepared_multichannel_endpoints(prepared, NULL, 3), -EINVAL, "");
        require_null(sluice_prepared_multichannel_handshake(prepared, endpoints, counts[i]), EINVAL,
                     "3");
    }
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(sides->pds[0], 3, NULL);
    require_null(sluice_prepared_multichannel_handshake(prepared, NULL, 3), EINVAL, "");
    require_null(sluice_prepared_multichannel_handshake(NULL, endpoints, 3), EINVAL, "");
    require_result(sluice_prepared_channel_endpoint(NULL, endpoints), -EINVAL);
    require(settle_fds(fds) == fds, "%d fds, were %d", count_fds(), fds);
}

/* A peer accepts one handshake per reset. */
TEST_WITH(star, handshakes_of_a_peer, (3, NULL))
{
    struct sluice_endpoint ours, theirs;
    struct sluice_endpoint bad = {{0}};
    struct sluice_prepared_channel *peer = prepare_channel(star->sides.pds[1], NULL, &theirs);
    require_error(sluice_multichannel_peer_handshake(star->hub, 1, &theirs), -EINVAL, "1");
    star_works(star, 1);
    memset(&ours, 0xcc, sizeof(ours));
    require_error(sluice_multichannel_peer_reset(star->hub, 3, &ours), -EINVAL, "3");
    value_check(&ours, sizeof(ours), 0xcc);
    require_ok(sluice_multichannel_peer_reset(star->hub, 1, &ours));
    require_result(sluice_multichannel_peer_state(star->hub, 1), SLUICE_STATE_PREPARED);
    require_result(sluice_multichannel_send(star->hub, 1, NULL, 0, DEADLINE), -ENOTCONN);
    require_error(sluice_multichannel_peer_handshake(star->hub, 1, NULL), -EINVAL, "");
    require_error(sluice_multichannel_peer_handshake(star->hub, 3, &theirs), -EINVAL, "3");
    require_error(sluice_multichannel_peer_handshake(star->hub, 1, &bad), -EPROTO, "endpoint");
    require_result(sluice_multichannel_peer_state(star->hub, 1), SLUICE_STATE_FAILED);
    require_error(sluice_multichannel_peer_handshake(star->hub, 1, &theirs), -EINVAL, "");
    require_ok(sluice_multichannel_peer_reset(star->hub, 1, &ours));
    require_ok(sluice_multichannel_peer_handshake(star->hub, 1, &theirs));
    require_error(sluice_multichannel_peer_handshake(star->hub, 1, &theirs), -EINVAL, "");
    sluice_channel_close(star->spokes[1]);
    star->spokes[1] = made(sluice_prepared_channel_handshake(peer, &ours));
    for (uint32_t i = 0; i < 3; i++) {
        star_works(star, i);
    }
}

/* An endpoint from before the peer's reset is refused without effect. */
TEST(endpoint_of_before_a_reset)
{
    struct sluice_endpoint ours, theirs[3];
    struct star star = {.peers = 2};
    struct sluice_endpoint hub_endpoints[2];
    struct sluice_endpoint both[2] = {{{0}}};
    sides_open(&star.sides);
    struct sluice_prepared_multichannel *hub =
        made(sluice_multichannel_prepare(star.sides.pds[0], 2, NULL));
    require_ok(sluice_prepared_multichannel_endpoints(hub, hub_endpoints, 2));
    struct sluice_prepared_channel *peer = prepare_channel(star.sides.pds[1], NULL, &theirs[0]);
    both[0] = theirs[0];
    star.hub = made(sluice_prepared_multichannel_handshake(hub, both, 2));
    star.spokes[0] = made(sluice_prepared_channel_handshake(peer, &hub_endpoints[0]));
    star_works(&star, 0);
    for (int i = 1; i < 3; i++) {
        peer = made(sluice_channel_reset(star.spokes[0]));
        require_ok(sluice_prepared_channel_endpoint(peer, &theirs[i]));
        require_ok(sluice_multichannel_peer_reset(star.hub, 0, &ours));
        for (int old = 0; old < i; old++) {
            require_error(sluice_multichannel_peer_handshake(star.hub, 0, &theirs[old]), -ESTALE,
                          old == 0 && i == 2 ? "stale generation 1 generation 2" : "stale");
            require_result(sluice_multichannel_peer_state(star.hub, 0), SLUICE_STATE_PREPARED);
        }
        require_ok(sluice_multichannel_peer_handshake(star.hub, 0, &theirs[i]));
        star.spokes[0] = made(sluice_prepared_channel_handshake(peer, &ours));
        star_works(&star, 0);
    }
    /* A new channel in its place is another peer, whatever its generation is. */
    sluice_channel_close(star.spokes[0]);
    peer = prepare_channel(star.sides.pds[1], NULL, &theirs[0]);
    require_ok(sluice_multichannel_peer_reset(star.hub, 0, &ours));
    require_ok(sluice_multichannel_peer_handshake(star.hub, 0, &theirs[0]));
    star.spokes[0] = made(sluice_prepared_channel_handshake(peer, &ours));
    star_works(&star, 0);
    star_close(&star);
}

/* Opens a pair, and returns the endpoints that connect it. */
static void open_with_endpoints(struct pair *pair, struct sluice_endpoint endpoints[2])
{
    struct sluice_prepared_channel *prepared[2];
    sides_open(&pair->sides);
    for (int i = 0; i < 2; i++) {
        prepared[i] = prepare_channel(pair->sides.pds[i], NULL, &endpoints[i]);
    }
    for (int i = 0; i < 2; i++) {
        pair->channels[i] = made(sluice_prepared_channel_handshake(prepared[i], &endpoints[!i]));
    }
}

/* Resets our end, which makes the peer's endpoint stale. */
static void reset_and_find_stale(struct pair *pair, const struct sluice_endpoint *theirs,
                                 const char *words)
{
    struct sluice_endpoint again;
    struct sluice_prepared_channel *prepared = made(sluice_channel_reset(pair->channels[0]));
    require_ok(sluice_prepared_channel_endpoint(prepared, &again));
    require_null(sluice_prepared_channel_handshake(prepared, theirs), ESTALE, words);
    pair->channels[0] = NULL;
}

/* The handshake of a channel consumes its argument in this case, too. */
TEST(channel_refuses_a_stale_endpoint)
{
    struct sluice_endpoint endpoints[2];
    struct pair pair;
    open_with_endpoints(&pair, endpoints);
    pair_works(&pair);
    reset_and_find_stale(&pair, &endpoints[1], "stale generation 1 generation 1 reset");
    pair_close(&pair);
}

/* The peer answered, if only by a refusal, so its side of the connection is used up. */
TEST(endpoint_of_a_peer_that_refused)
{
    struct sluice_endpoint endpoints[2];
    struct pair pair;
    open_with_endpoints(&pair, endpoints);
    struct memory near = side_memory(&pair.sides, 0, 64);
    struct sluice_sge sge = memory_sge(&near, 0, 64);
    struct sluice_remote_mr remote = {.addr = 4096, .length = 64, .rkey = 12345};
    require_error(sluice_channel_write(pair.channels[0], &sge, 1, &remote, DEADLINE), -EACCES, "");
    reset_and_find_stale(&pair, &endpoints[1], "stale");
    pair_close(&pair);
}

/* A late peer connects with its old endpoint, after this side has given up its retries. */
TEST(endpoint_of_a_late_peer)
{
    struct sluice_endpoint endpoints[2];
    struct pair pair;
    sides_open(&pair.sides);
    struct sluice_prepared_channel *ours = prepare_channel(pair.sides.pds[0], NULL, &endpoints[0]);
    struct sluice_prepared_channel *late = prepare_channel(pair.sides.pds[1], NULL, &endpoints[1]);
    for (int i = 0; i < 2; i++) {
        pair.channels[0] = made(sluice_prepared_channel_handshake(ours, &endpoints[1]));
        require_error(sluice_channel_wait_connected(pair.channels[0], SLUICE_MS(20)), -ETIMEDOUT,
                      "not answered");
        ours = made(sluice_channel_reset(pair.channels[0]));
        pair.channels[0] = NULL;
    }
    require_ok(sluice_prepared_channel_endpoint(ours, &endpoints[0]));
    pair.channels[0] = made(sluice_prepared_channel_handshake(ours, &endpoints[1]));
    pair.channels[1] = made(sluice_prepared_channel_handshake(late, &endpoints[0]));
    pair_works(&pair);
    pair_close(&pair);
}

/* Each preparation makes a different endpoint. */
TEST_WITH(sides, endpoints_are_unique, ())
{
    struct sluice_endpoint endpoints[8];
    struct sluice_prepared_channel *prepared[8];
    for (int i = 0; i < 8; i++) {
        prepared[i] = prepare_channel(sides->pds[i % 2], NULL, &endpoints[i]);
        for (int j = 0; j < i; j++) {
            require(memcmp(&endpoints[i], &endpoints[j], sizeof(endpoints[0])) != 0, "%d and %d", i,
                    j);
        }
    }
    for (int i = 0; i < 8; i++) {
        sluice_prepared_channel_free(prepared[i]);
    }
}

/* A channel may be its own peer. */
TEST_WITH(sides, channel_to_itself, ())
{
    struct sluice_endpoint endpoint;
    struct memory memory;
    struct sluice_prepared_channel *prepared = prepare_channel(sides->pds[0], NULL, &endpoint);
    struct sluice_channel *channel = made(sluice_prepared_channel_handshake(prepared, &endpoint));
    memory_open(&memory, sides->pds[0], 2000);
    pattern_fill(memory.bytes, 1000, 3);
    struct sluice_sge sges[2] = {memory_sge(&memory, 0, 1000), memory_sge(&memory, 1000, 1000)};
    struct sluice_request requests[2] = {request_of(SLUICE_OP_SEND, 0, &sges[0]),
                                         request_of(SLUICE_OP_RECEIVE, 0, &sges[1])};
    require_ok(sluice_channel_submit(channel, requests, 2, DEADLINE, NULL));
    pattern_check(memory.bytes + 1000, 1000, 3);
    memory_close(&memory);
    sluice_channel_close(channel);
}

int main(void)
{
    return run_tests("endpoints", 60);
}
