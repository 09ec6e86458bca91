/* SPDX-License-Identifier: MIT */
#include "hostile.h"

#include <netinet/in.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include "process.h"

void encode_frame(const struct frame *frame, uint8_t bytes[40])
{
    uint8_t *to = bytes;
    *to++ = frame->type;
    *to++ = frame->flags;
    *to++ = frame->status;
    *to++ = frame->reserved;
    to = put(to, frame->immediate, 4);
    to = put(to, frame->seq, 4);
    to = put(to, frame->ack, 4);
    to = put(to, frame->credit, 4);
    to = put(to, frame->rkey, 4);
    to = put(to, frame->addr, 8);
    put(to, frame->length, 8);
}

void seal(struct sluice_endpoint *endpoint)
{
    uint32_t hash = UINT32_C(2166136261);
    for (int i = 0; i < SLUICE_ENDPOINT_BYTES - 4; i++) {
        hash = (hash ^ endpoint->bytes[i]) * UINT32_C(16777619);
    }
    put(endpoint->bytes + SLUICE_ENDPOINT_BYTES - 4, hash, 4);
}

int dial(const struct sluice_endpoint *endpoint)
{
    return dial_port((uint16_t)(endpoint->bytes[94] << 8 | endpoint->bytes[95]));
}

void say_frame(int fd, const struct frame *frame, size_t payload)
{
    uint8_t bytes[40 + 8192];
    require(payload <= sizeof(bytes) - 40, "%zu", payload);
    encode_frame(frame, bytes);
    memset(bytes + 40, 0xee, payload);
    say(fd, bytes, 40 + payload);
}

/* Greetings. */

static const uint8_t *nonce_of(const struct sluice_endpoint *endpoint)
{
    return endpoint->bytes + 76;
}

void make_hello(struct greeting *greeting)
{
    uint8_t *hello = greeting->said;
    memset(hello, 0, HELLO_BYTES);
    memcpy(hello, "sluice\0\2", 8);
    memcpy(hello + 8, greeting->acceptor->bytes + 4, 4);
    memcpy(hello + 12, greeting->dialer->bytes + 4, 4);
    randombytes_buf(hello + 16, 32);
    sign(nonce_of(greeting->acceptor), 16, "sluice hello", hello, 64, hello + 64);
}

void make_challenge(struct greeting *greeting)
{
    uint8_t *challenge = greeting->said + HELLO_BYTES;
    memset(challenge, 0, CHALLENGE_BYTES);
    memcpy(challenge, "SLUICE\0\2", 8);
    randombytes_buf(challenge + 16, 32);
    sign(nonce_of(greeting->acceptor), 16, "sluice answer", greeting->said, HELLO_BYTES + 48,
         challenge + 48);
}

/* Host, network, context, generation, start, process, user, number. */
static uint8_t *put_name(uint8_t *to, const struct sluice_endpoint *endpoint)
{
    memset(to, 0, 64);
    memcpy(to, endpoint->bytes + 32, 40);
    memcpy(to + 40, endpoint->bytes + 188, 8);
    memcpy(to + 48, endpoint->bytes + 72, 4);
    memcpy(to + 52, endpoint->bytes + 196, 4);
    memcpy(to + 56, endpoint->bytes + 4, 4);
    return to + 64;
}

void make_proof(const struct greeting *greeting, enum proof part, uint8_t proof[PROOF_BYTES])
{
    static const char *const labels[] = {"sluice dialer", "sluice acceptor", "sluice choice"};
    uint8_t bytes[sizeof(greeting->said) + 128], key[32];
    memcpy(bytes, greeting->said, sizeof(greeting->said));
    put_name(put_name(bytes + sizeof(greeting->said), greeting->dialer), greeting->acceptor);
    memcpy(key, nonce_of(greeting->dialer), 16);
    memcpy(key + 16, nonce_of(greeting->acceptor), 16);
    sign(key, sizeof(key), labels[part], bytes, sizeof(bytes), proof);
}

bool greet(struct greeting *greeting, int fd)
{
    uint8_t proof[PROOF_BYTES];
    uint8_t *challenge = greeting->said + HELLO_BYTES;
    make_hello(greeting);
    say(fd, greeting->said, HELLO_BYTES);
    if (!hear(fd, challenge, DENIAL_BYTES) || challenge[11] != 0 ||
        !hear(fd, challenge + DENIAL_BYTES, CHALLENGE_BYTES - DENIAL_BYTES)) {
        return false;
    }
    make_proof(greeting, OF_DIALER, proof);
    say(fd, proof, sizeof(proof));
    return true;
}

/* The victim. */

/*
 * Makes an endpoint without a context, whose listener is ours. All bytes of its nonce have this
 * value.
 */
static void forge(struct victim *victim, uint8_t nonce)
{
    uint16_t port = 0;
    struct sluice_endpoint *forged = &victim->forged;
    victim->listener = listen_at(&port);
    put(forged->bytes + 4, 77, 4);
    memset(forged->bytes + 76, nonce, 16);
    memset(forged->bytes + 92, 0, (size_t)20 * 4);
    put(forged->bytes + 92, 4, 2);
    put(forged->bytes + 94, port, 2);
    put(forged->bytes + 96, INADDR_LOOPBACK, 4);
    forged->bytes[187] ^= 1; /* claims unknown processes, so that it is met over TCP */
    put(forged->bytes + 200, 0, 4);
    seal(forged);
}

void victim_open(struct victim *victim, uint8_t nonce)
{
    victim_open_with(victim, nonce, NULL);
}

void victim_open_with(struct victim *victim, uint8_t nonce, const struct sluice_channel_attr *attr)
{
    struct sluice_endpoint endpoint;
    memset(victim, 0, sizeof(*victim));
    star_open(&victim->star, 2, attr);
    struct sluice_pd *pd = victim->star.sides.pds[0];
    memory_open_at(&victim->region, pd, REGION, ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC, 0);
    memory_open_at(&victim->read_only, pd, REGION,
                   SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ, 0);
    memory_open(&victim->landing, pd, LANDING);
    memset(victim->region.bytes, FILL, REGION);
    memset(victim->read_only.bytes, FILL, REGION);
    victim->remote = memory_remote(&victim->region, 0, REGION);
    victim->remote_read_only = memory_remote(&victim->read_only, 0, REGION);
    victim->fd = -1;
    sluice_prepared_channel_free(prepare_channel(victim->star.sides.pds[1], NULL, &victim->forged));
    forge(victim, nonce);
    /* Makes everything that is made on first use. */
    require_ok(sluice_multichannel_peer_reset(victim->star.hub, 0, &endpoint));
    sluice_channel_close(victim->star.spokes[0]);
    victim->star.spokes[0] = NULL;
    star_works(&victim->star, 1);
    do {
        victim->fds = count_fds();
        let_pass(SLUICE_MS(30));
    } while (count_fds() < victim->fds);
}

void victim_close(struct victim *victim)
{
    int now = settle_fds(victim->fds);
    require(now <= victim->fds, "%d fds, were %d", now, victim->fds);
    close(victim->listener);
    memory_close(&victim->region);
    memory_close(&victim->read_only);
    memory_close(&victim->landing);
    star_close(&victim->star);
}

void reset_hostile(struct victim *victim)
{
    put(victim->forged.bytes + 240, ++victim->generation, 8);
    seal(&victim->forged);
}

/* Posts a request of the victim, which the hostile peer receives. */
static void ask(struct victim *victim, enum asked asked)
{
    bool atomic = asked == AN_ATOMIC;
    uint8_t bytes[40], operands[16];
    uint32_t length = atomic ? 8 : LANDING;
    struct sluice_sge sge = memory_sge(&victim->landing, 0, length);
    struct sluice_request request =
        request_of(atomic ? SLUICE_OP_FETCH_ADD : SLUICE_OP_READ, 0, &sge);
    request.remote = (struct sluice_remote_mr){.addr = 4096, .length = length, .rkey = 1};
    require_result(sluice_multichannel_post(victim->star.hub, &request, 1, DEADLINE,
                                            &victim->handles[victim->posted++]),
                   1);
    do {
        require(hear(victim->fd, bytes, sizeof(bytes)), "no request: %s", strerror(errno));
    } while (bytes[0] != (atomic ? FETCH_ADD : READ_REQUEST));
    require(!atomic || hear(victim->fd, operands, sizeof(operands)), "no operands: %s",
            strerror(errno));
}

void connect_hostile(struct victim *victim, enum asked asked)
{
    struct greeting greeting = {&victim->forged, &victim->endpoint, {0}};
    uint8_t given[PROOF_BYTES], proof[PROOF_BYTES];
    struct sluice_sge sge = memory_sge(&victim->landing, 0, LANDING);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &sge);
    require_ok(sluice_multichannel_peer_reset(victim->star.hub, 0, &victim->endpoint));
    reset_hostile(victim);
    require_ok(sluice_multichannel_peer_handshake(victim->star.hub, 0, &victim->forged));
    victim->posted = 0;
    require_result(sluice_multichannel_post(victim->star.hub, &receive, 1, DEADLINE,
                                            &victim->handles[victim->posted++]),
                   1);
    victim->fd = dial(&victim->endpoint);
    require(greet(&greeting, victim->fd) && hear(victim->fd, given, sizeof(given)), "no proof: %s",
            strerror(errno));
    make_proof(&greeting, OF_ACCEPTOR, proof);
    require(memcmp(given, proof, sizeof(proof)) == 0, "a wrong proof");
    if (memcmp(nonce_of(&victim->forged), nonce_of(&victim->endpoint), 16) > 0) {
        make_proof(&greeting, OF_CHOICE, proof);
        say(victim->fd, proof, sizeof(proof));
    }
    if (asked != NOTHING) {
        ask(victim, asked);
    }
}

void expect_failure(struct victim *victim, unsigned classes, const char *what)
{
    struct sluice_multichannel *hub = victim->star.hub;
    struct sluice_completion completion;
    int64_t start = fair_now();
    for (uint32_t i = 0; i < victim->posted; i++) {
        require(sluice_multichannel_wait(hub, &victim->handles[i], SLUICE_S(3), &completion) == 0,
                "%s: request %u is still pending", what, i);
    }
    while (sluice_multichannel_peer_state(hub, 0) != SLUICE_STATE_FAILED) {
        require(fair_now() - start < SLUICE_S(3), "%s: the channel does not fail", what);
        let_pass(SLUICE_MS(1));
    }
    struct sluice_error error = peer_error(hub, 0);
    require((classes >> error.error_class & 1) != 0, "%s: %s", what, error.text);
    if (victim->fd >= 0) {
        close(victim->fd);
    }
    victim->fd = -1;
    memory_check_guards(&victim->region);
    memory_check_guards(&victim->landing);
    memory_check_guards(&victim->read_only);
    value_check(victim->read_only.bytes, REGION, FILL);
}

void expect_untouched(struct victim *victim, unsigned classes, const char *what)
{
    expect_failure(victim, classes, what);
    value_check(victim->region.bytes, REGION, FILL);
    star_works(&victim->star, 1);
}
