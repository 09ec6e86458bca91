/* SPDX-License-Identifier: MIT */
/*
 * Memory is safe: a request with a wrong address, here or at the peer, ends with an error of its
 * class, and no byte outside of its rights is accessed.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../support/pair.h"
#include "../support/process.h"

#define LENGTH 4096

/* Peer 1 of the hub gets requests that it must refuse; peer 0 is a bystander. */
struct fixture {
    struct star star;
    struct memory near;
    struct memory far;
};

static void fixture_open(struct fixture *fixture, uint32_t far_access)
{
    star_open(&fixture->star, 2, NULL);
    memory_open(&fixture->near, fixture->star.sides.pds[0], LENGTH);
    memory_open_at(&fixture->far, fixture->star.sides.pds[1], LENGTH, far_access, 0);
    pattern_fill(fixture->near.bytes, LENGTH, 1);
    pattern_fill(fixture->far.bytes, LENGTH, 2);
}

static void fixture_close(struct fixture *fixture)
{
    star_works(&fixture->star, 0);
    memory_close(&fixture->near);
    memory_close(&fixture->far);
    star_close(&fixture->star);
}

/* Makes a request to peer 1: it fails, and with it the peer, with this cause. */
static void refused(struct fixture *fixture, uint32_t opcode, uint32_t flags,
                    const struct sluice_sge *sge, const struct sluice_remote_mr *remote,
                    enum sluice_error_class error_class)
{
    struct sluice_completion completion = {0};
    struct sluice_request request = request_of(opcode, 1, sge);
    request.flags = flags;
    request.immediate = flags & SLUICE_IMMEDIATE ? 5 : 0;
    if (remote) {
        request.remote = *remote;
    }
    int result = sluice_multichannel_submit(fixture->star.hub, &request, 1, DEADLINE, &completion);
    require_class(&completion, error_class);
    require(result == completion.error, "%d, not %d", result, completion.error);
    require(completion.peer == 1 && completion.user_data == request.user_data, "peer %u",
            completion.peer);
    require_result(sluice_multichannel_peer_state(fixture->star.hub, 1), SLUICE_STATE_FAILED);
    struct sluice_error error = peer_error(fixture->star.hub, 1);
    require(error.error_class == error_class && error.status == completion.status &&
                error.opcode == opcode && error.error == result,
            "status %u, class %u, opcode %u: %s", error.status, error.error_class, error.opcode,
            error.text);
    require(strstr(error.text, "1"), "the peer is not in '%s'", error.text);
    pattern_check(fixture->near.bytes, LENGTH, 1);
    pattern_check(fixture->far.bytes, LENGTH, 2);
    memory_check_guards(&fixture->near);
    memory_check_guards(&fixture->far);
}

/* Resets peer 1 between two faults. */
static void mend(struct fixture *fixture)
{
    struct sluice_endpoint ours;
    struct sluice_endpoint theirs;
    sluice_channel_close(fixture->star.spokes[1]);
    struct sluice_prepared_channel *prepared =
        prepare_channel(fixture->star.sides.pds[1], NULL, &theirs);
    require_ok(sluice_multichannel_peer_reset(fixture->star.hub, 1, &ours));
    require_ok(sluice_multichannel_peer_handshake(fixture->star.hub, 1, &theirs));
    fixture->star.spokes[1] = made(sluice_prepared_channel_handshake(prepared, &ours));
    star_works(&fixture->star, 1);
}

static void refuse_all_kinds(struct fixture *fixture, const struct sluice_sge *sge,
                             const struct sluice_remote_mr *remote)
{
    refused(fixture, SLUICE_OP_WRITE, 0, sge, remote, SLUICE_CLASS_ACCESS);
    mend(fixture);
    refused(fixture, SLUICE_OP_READ, 0, sge, remote, SLUICE_CLASS_ACCESS);
    mend(fixture);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, NULL);
    post(fixture->star.spokes[1], &receive);
    refused(fixture, SLUICE_OP_WRITE, SLUICE_IMMEDIATE, sge, remote, SLUICE_CLASS_ACCESS);
    mend(fixture);
}

/* The length was forged, or the address: one byte outside is enough. */
TEST(remote_range_overrun)
{
    static const struct {
        int64_t shift;
        uint32_t length;
    } ranges[] = {
        {1, LENGTH}, {-1, LENGTH},    {-1, 1},         {LENGTH, 1},       {LENGTH - 7, 8},
        {-8, 8},     {LENGTH + 9, 8}, {INT64_MAX, 64}, {-LENGTH, LENGTH}, {LENGTH, LENGTH},
    };
    struct fixture fixture;
    fixture_open(&fixture, ACCESS_ALL);
    for (size_t i = 0; i < COUNT(ranges); i += short_run() ? 3 : 1) {
        struct sluice_remote_mr remote = memory_remote(&fixture.far, 0, LENGTH);
        struct sluice_sge sge = memory_sge(&fixture.near, 0, ranges[i].length);
        remote.addr += (uint64_t)ranges[i].shift;
        refuse_all_kinds(&fixture, &sge, &remote);
    }
    fixture_close(&fixture);
}

/* The end of the range wraps: found before it is posted, or by the peer. */
TEST(remote_range_wraps)
{
    struct fixture fixture;
    fixture_open(&fixture, ACCESS_ALL);
    struct sluice_remote_mr remote = memory_remote(&fixture.far, 0, LENGTH);
    struct sluice_sge sge = memory_sge(&fixture.near, 0, 64);
    for (uint64_t back = 1; back <= 64; back += 21) {
        remote.addr = UINT64_MAX - back + 1;
        int result = sluice_multichannel_write(fixture.star.hub, 1, &sge, 1, &remote, DEADLINE);
        require(result == -ERANGE || result == -EINVAL || result == -EACCES, "%d", result);
        if (result == -EACCES) {
            mend(&fixture);
        }
    }
    pattern_check(fixture.far.bytes, LENGTH, 2);
    fixture_close(&fixture);
}

TEST(wrong_remote_keys)
{
    static const uint32_t changes[] = {1, 0x80, 0x100, 0x10000, 0x80000000, 0xffffffff};
    struct fixture fixture;
    fixture_open(&fixture, ACCESS_ALL);
    struct sluice_sge sge = memory_sge(&fixture.near, 0, 64);
    for (size_t i = 0; i < COUNT(changes); i += short_run() ? 2 : 1) {
        struct sluice_remote_mr remote = memory_remote(&fixture.far, 0, LENGTH);
        remote.rkey ^= changes[i];
        refuse_all_kinds(&fixture, &sge, &remote);
    }
    fixture_close(&fixture);
}

/* The key of a region that has ended, though its memory exists. */
TEST(stale_remote_key)
{
    struct fixture fixture;
    fixture_open(&fixture, ACCESS_ALL);
    struct sluice_sge sge = memory_sge(&fixture.near, 0, 64);
    struct sluice_mr *mr =
        sluice_mr_register(fixture.star.sides.pds[1], fixture.far.bytes, LENGTH, ACCESS_ALL);
    struct sluice_remote_mr remote;
    require_ok(sluice_mr_remote(mr, &remote));
    require_ok(sluice_multichannel_read(fixture.star.hub, 1, &sge, 1, &remote, DEADLINE));
    pattern_fill(fixture.near.bytes, LENGTH, 1);
    require_ok(sluice_mr_deregister(mr));
    refuse_all_kinds(&fixture, &sge, &remote);
    fixture_close(&fixture);
}

/* A region of another protection domain is not valid on this connection. */
TEST(key_of_another_domain)
{
    struct fixture fixture;
    fixture_open(&fixture, ACCESS_ALL);
    struct sluice_pd *pd = sluice_pd_alloc(fixture.star.sides.contexts[1]);
    struct sluice_sge sge = memory_sge(&fixture.near, 0, 64);
    struct sluice_mr *mr = sluice_mr_register(pd, fixture.far.bytes, LENGTH, ACCESS_ALL);
    struct sluice_remote_mr remote;
    require_ok(sluice_mr_remote(mr, &remote));
    refuse_all_kinds(&fixture, &sge, &remote);
    require_ok(sluice_mr_deregister(mr));
    sluice_pd_free(pd);
    fixture_close(&fixture);
}

TEST(rights_of_remote_region)
{
    static const struct {
        uint32_t access;
        bool may_write;
        bool may_read;
    } rights[] = {
        {0, false, false},
        {SLUICE_ACCESS_LOCAL_WRITE, false, false},
        {SLUICE_ACCESS_REMOTE_READ, false, true},
        {SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE, true, false},
    };
    struct fixture fixture;
    for (size_t i = 0; i < COUNT(rights); i++) {
        fixture_open(&fixture, rights[i].access);
        struct sluice_remote_mr remote = memory_remote(&fixture.far, 0, LENGTH);
        struct sluice_sge sge = memory_sge(&fixture.near, 0, LENGTH);
        if (!rights[i].may_write) {
            refused(&fixture, SLUICE_OP_WRITE, 0, &sge, &remote, SLUICE_CLASS_ACCESS);
            mend(&fixture);
        }
        if (!rights[i].may_read) {
            refused(&fixture, SLUICE_OP_READ, 0, &sge, &remote, SLUICE_CLASS_ACCESS);
            mend(&fixture);
        }
        if (rights[i].may_read) {
            require_ok(sluice_multichannel_read(fixture.star.hub, 1, &sge, 1, &remote, DEADLINE));
            pattern_check(fixture.near.bytes, LENGTH, 2);
        }
        if (rights[i].may_write) {
            require_ok(sluice_multichannel_write(fixture.star.hub, 1, &sge, 1, &remote, DEADLINE));
            pattern_check(fixture.far.bytes, LENGTH, 1);
        }
        fixture_close(&fixture);
    }
}

/* The channel itself gives its peer no rights, whatever those of the region are. */
TEST(rights_of_channel)
{
    static const uint32_t rights[] = {SLUICE_ACCESS_NONE, SLUICE_ACCESS_REMOTE_READ,
                                      SLUICE_ACCESS_REMOTE_WRITE};
    for (size_t i = 0; i < COUNT(rights) * 2; i++) {
        struct sluice_channel_attr attr = {.size = sizeof(attr), .access = rights[i / 2]};
        struct pair pair;
        struct memory near;
        struct memory far;
        pair_open(&pair, &attr);
        memory_open(&near, pair.sides.pds[0], LENGTH);
        memory_open(&far, pair.sides.pds[1], LENGTH);
        struct sluice_sge sge = memory_sge(&near, 0, LENGTH);
        struct sluice_remote_mr remote = memory_remote(&far, 0, LENGTH);
        pattern_fill(near.bytes, LENGTH, 1);
        if (i % 2 == 0) {
            int wanted = attr.access == SLUICE_ACCESS_REMOTE_WRITE ? 0 : -EACCES;
            require_result(sluice_channel_write(pair.channels[0], &sge, 1, &remote, DEADLINE),
                           wanted);
            value_check(far.bytes, wanted ? LENGTH : 0, 0);
        } else {
            int wanted = attr.access == SLUICE_ACCESS_REMOTE_READ ? 0 : -EACCES;
            require_result(sluice_channel_read(pair.channels[0], &sge, 1, &remote, DEADLINE),
                           wanted);
            pattern_check(near.bytes, wanted ? LENGTH : 0, 1);
        }
        memory_close(&near);
        memory_close(&far);
        pair_close(&pair);
    }
}

/* No bytes need no key: a write of none serves as a probe. */
/* Counts lines with the reason of a refusal, which the peer is not told. */
static void count_reason(uint32_t level, const char *line, void *user)
{
    (void)level;
    atomic_fetch_add((atomic_int *)user, strstr(line, "no memory region has its key") ||
                                             strstr(line, "registered without this right"));
}

TEST(log_names_the_reason_of_a_refusal)
{
    struct fixture fixture;
    atomic_int count = 0;
    fixture_open(&fixture, SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE);
    struct sluice_sge sge = memory_sge(&fixture.near, 0, 64);
    struct sluice_remote_mr remote = memory_remote(&fixture.far, 0, LENGTH);
    require_ok(sluice_log_set(SLUICE_LOG_INFO, count_reason, &count));
    refused(&fixture, SLUICE_OP_READ, 0, &sge, &remote, SLUICE_CLASS_ACCESS);
    mend(&fixture);
    remote.rkey ^= 1;
    refused(&fixture, SLUICE_OP_WRITE, 0, &sge, &remote, SLUICE_CLASS_ACCESS);
    require_ok(sluice_log_set(SLUICE_LOG_INFO, NULL, NULL));
    require_result(atomic_load(&count), device_is_soft() ? 2 : 0);
    fixture_close(&fixture);
}

TEST(writes_of_no_bytes_need_no_key)
{
    struct fixture fixture;
    struct sluice_remote_mr nowhere = {.addr = 0x1000, .length = 0, .rkey = 0xdeadbeef};
    fixture_open(&fixture, 0);
    struct sluice_request request = request_of(SLUICE_OP_WRITE, 1, NULL);
    request.remote = nowhere;
    require_ok(sluice_multichannel_submit(fixture.star.hub, &request, 1, DEADLINE, NULL));
    pattern_check(fixture.far.bytes, LENGTH, 2);
    star_works(&fixture.star, 1);
    fixture_close(&fixture);
}

/* Wrong elements that were made by hand. */
TEST(local_elements_outside_their_region)
{
    struct fixture fixture;
    fixture_open(&fixture, ACCESS_ALL);
    struct sluice_remote_mr remote = memory_remote(&fixture.far, 0, LENGTH);
    struct sluice_sge good = memory_sge(&fixture.near, 0, LENGTH);
    struct sluice_sge bad[] = {good, good, good, good, good};
    bad[0].addr += 1;
    bad[1].addr -= 1;
    bad[2].addr += LENGTH;
    bad[3].addr = UINT64_MAX - 10;
    bad[4].lkey ^= 0x01010101;
    /* A device may have sent the packets before the one byte that is outside. */
    for (size_t i = device_is_soft() ? 0 : 1; i < COUNT(bad); i++) {
        refused(&fixture, SLUICE_OP_WRITE, 0, &bad[i], &remote, class_of_own_mistakes());
        mend(&fixture);
        refused(&fixture, SLUICE_OP_READ, 0, &bad[i], &remote, SLUICE_CLASS_LOCAL);
        mend(&fixture);
        refused(&fixture, SLUICE_OP_SEND, 0, &bad[i], NULL, class_of_own_mistakes());
        mend(&fixture);
    }
    fixture_close(&fixture);
}

/* Without the right to write, memory takes neither reads nor receives. */
TEST(local_region_without_write)
{
    struct fixture fixture;
    struct memory constant;
    fixture_open(&fixture, ACCESS_ALL);
    memory_open_at(&constant, fixture.star.sides.pds[0], LENGTH, 0, 0);
    struct sluice_remote_mr remote = memory_remote(&fixture.far, 0, LENGTH);
    struct sluice_sge sge = memory_sge(&constant, 0, LENGTH);
    refused(&fixture, SLUICE_OP_READ, 0, &sge, &remote, SLUICE_CLASS_LOCAL);
    mend(&fixture);

    struct sluice_sge far_sge = memory_sge(&fixture.far, 0, 64);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &far_sge);
    struct sluice_handle handle = post(fixture.star.spokes[1], &send);
    /* rxe has one status, LOC_QP_OP_ERR, for this and for a receive that is too small. */
    refused(&fixture, SLUICE_OP_RECEIVE, 0, &sge, NULL,
            device_is_soft() ? SLUICE_CLASS_LOCAL : SLUICE_CLASS_TRUNCATED);
    struct sluice_completion completion = {0};
    require_ok(sluice_channel_wait(fixture.star.spokes[1], &handle, DEADLINE, &completion));
    require(completion.error != 0, "the send succeeded%s", "");
    value_check(constant.bytes, LENGTH, 0);
    memory_close(&constant);
    fixture_close(&fixture);
}

/* The key of a region that has ended. */
TEST(stale_local_key)
{
    struct fixture fixture;
    fixture_open(&fixture, ACCESS_ALL);
    struct sluice_remote_mr remote = memory_remote(&fixture.far, 0, LENGTH);
    struct sluice_mr *mr =
        sluice_mr_register(fixture.star.sides.pds[0], fixture.near.bytes, LENGTH, ACCESS_ALL);
    struct sluice_sge sge;
    require_ok(sluice_mr_sge(mr, 0, 64, &sge));
    require_ok(sluice_mr_deregister(mr));
    refused(&fixture, SLUICE_OP_WRITE, 0, &sge, &remote, class_of_own_mistakes());
    mend(&fixture);
    refused(&fixture, SLUICE_OP_READ, 0, &sge, &remote, SLUICE_CLASS_LOCAL);
    fixture_close(&fixture);
}

/*
 * Sends a message from and to memory of its own. Both sides only poll, so that a connection in
 * shared memory stays hot. Returns the error of the send.
 */
static int send_small(const struct star *star, const struct sluice_sge *from,
                      const struct sluice_sge *to)
{
    struct sluice_handle sent, received;
    struct sluice_completion completions[2];
    int64_t end = clock_now() + DEADLINE;
    int waits[2] = {-ETIMEDOUT, -ETIMEDOUT};
    require_ok(sluice_channel_post_receive(star->spokes[1], to, 1, DEADLINE, &received));
    require_ok(sluice_multichannel_post_send(star->hub, 1, from, 1, DEADLINE, &sent));
    while ((waits[0] == -ETIMEDOUT || waits[1] == -ETIMEDOUT) && clock_now() < end) {
        waits[0] = sluice_multichannel_wait(star->hub, &sent, 0, &completions[0]);
        waits[1] = sluice_channel_wait(star->spokes[1], &received, 0, &completions[1]);
    }
    require(waits[0] == 0 && waits[1] == 0, "%d, %d", waits[0], waits[1]);
    return completions[0].error;
}

/*
 * The keys of regions that small messages have used, and that end between two of them. A device
 * does not tell the receiver of a send that failed for its own key, so there only the receiver's
 * ends.
 */
TEST(local_keys_that_end_after_use)
{
    uint8_t *bytes = calloc(2, 8); /* memory of no file, which no access needs to be guarded for */
    require(bytes != NULL, "no memory%s", "");
    for (int ended = device_is_soft() ? 0 : 1; ended < 2; ended++) {
        struct star star;
        struct sluice_mr *mrs[2];
        struct sluice_sge sges[2];
        star_open(&star, 2, NULL);
        for (int i = 0; i < 2; i++) {
            mrs[i] = sluice_mr_register(star.sides.pds[i], bytes + 8 * i, 8, ACCESS_ALL);
            require_ok(sluice_mr_sge(mrs[i], 0, 8, &sges[i]));
        }
        for (int i = 0; i < 20; i++) {
            require_ok(send_small(&star, &sges[0], &sges[1]));
        }
        require_ok(sluice_mr_deregister(mrs[ended]));
        require(send_small(&star, &sges[0], &sges[1]) < 0, "region %d ended", ended);
        require_ok(sluice_mr_deregister(mrs[1 - ended]));
        star_works(&star, 0);
        star_close(&star);
    }
    free(bytes);
}

/* Posted requests hold their memory: it cannot be deregistered until they are complete. */
TEST(posted_memory_is_busy)
{
    struct pair pair;
    struct memory near;
    struct memory far;
    pair_open(&pair, NULL);
    memory_open(&near, pair.sides.pds[0], LENGTH);
    memory_open(&far, pair.sides.pds[1], LENGTH);
    struct sluice_sge near_sge = memory_sge(&near, 0, LENGTH);
    struct sluice_sge far_sge = memory_sge(&far, 0, LENGTH);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &far_sge);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &near_sge);
    pattern_fill(near.bytes, LENGTH, 4);
    struct sluice_handle sent = post(pair.channels[0], &send);
    require_error(sluice_mr_deregister(near.mr), -EBUSY, "");
    require_ok(sluice_mr_deregister(sluice_mr_register(pair.sides.pds[0], near.bytes, 10, 0)));
    struct sluice_handle received = post(pair.channels[1], &receive);
    await(pair.channels[0], sent, SLUICE_CLASS_NONE);
    await(pair.channels[1], received, SLUICE_CLASS_NONE);
    pattern_check(far.bytes, LENGTH, 4);
    received = post(pair.channels[1], &receive);
    require_error(sluice_mr_deregister(far.mr), -EBUSY, "");
    require_ok(sluice_channel_send(pair.channels[0], &near_sge, 1, DEADLINE));
    await(pair.channels[1], received, SLUICE_CLASS_NONE);
    memory_close(&near);
    memory_close(&far);
    pair_close(&pair);
}

/* Peers of one domain are not protected from each other, as the manual says. */
TEST(handle_of_another_peer_of_the_domain)
{
    struct memory from, to;
    struct star star;
    star_open(&star, 2, NULL);
    memory_open(&from, star.sides.pds[1], 64);
    memory_open(&to, star.sides.pds[0], 64);
    pattern_fill(from.bytes, 64, 5);
    struct sluice_sge sge = memory_sge(&from, 0, 64);
    struct sluice_remote_mr meant_for_peer_0 = memory_remote(&to, 0, 64);
    require_ok(sluice_channel_write(star.spokes[1], &sge, 1, &meant_for_peer_0, DEADLINE));
    pattern_check(to.bytes, 64, 5);
    memory_close(&from);
    memory_close(&to);
    star_close(&star);
}

/* Registered memory that the program unmaps all the same. */
#define GONE_BYTES ((size_t)4 << 20)

struct gone {
    struct pair pair;
    struct memory memory; /* the other end of it */
    uint8_t *bytes;
    struct sluice_mr *mr;
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
};

/* Registers memory on this side, and unmaps all of it except the first bytes. */
static void gone_open(struct gone *gone, int side, size_t length, size_t left)
{
    pair_open(&gone->pair, NULL);
    pair_works(&gone->pair);
    /* The kernel maps from the top, so nothing else is mapped into the hole down here. */
    gone->bytes = mmap((void *)(uintptr_t)0x40000000, GONE_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    require(gone->bytes != MAP_FAILED, "%s", strerror(errno));
    memset(gone->bytes, 7, GONE_BYTES);
    gone->mr = made(sluice_mr_register(gone->pair.sides.pds[side], gone->bytes, length,
                                       ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC));
    memory_open_at(&gone->memory, gone->pair.sides.pds[1 - side], length,
                   ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC, 0);
    require_ok(sluice_mr_sge(gone->mr, 0, length, &gone->sge));
    require_ok(sluice_mr_remote(gone->mr, &gone->remote));
    munmap(gone->bytes + left, GONE_BYTES - left);
}

/* Requires that both ends have failed and that a new connection works. */
static void gone_close(struct gone *gone, size_t left)
{
    pair_reset(&gone->pair);
    pair_works(&gone->pair);
    require_ok(sluice_mr_deregister(gone->mr));
    memory_close(&gone->memory);
    if (left > 0) {
        munmap(gone->bytes, left);
    }
    pair_close(&gone->pair);
}

static void require_refusal(const struct gone *gone, int result, uint32_t status)
{
    struct sluice_error error = channel_error(gone->pair.channels[0]);
    bool local = status == SLUICE_STATUS_LOC_PROT_ERR;
    require(result == (local ? -EFAULT : -EACCES), "%d: %s", result, error.text);
    require(error.error_class == (local ? SLUICE_CLASS_LOCAL : SLUICE_CLASS_ACCESS) &&
                error.status == status,
            "%s", error.text);
}

/* All of it is gone, or all except some pages; requests for a few bytes of it, or for many. */
static const struct {
    size_t length;
    size_t left;
} gaps[] = {{8, 0}, {4096, 0}, {100000, 0}, {GONE_BYTES, 0}, {GONE_BYTES, GONE_BYTES / 2}};

static bool may_unmap(void)
{
    /*
     * A device has pinned the pages. Within a context, the process that copies is the one that
     * unmapped them.
     */
    return device_is_soft() && current_wire() == WIRE_TCP;
}

TEST(remote_memory_that_was_unmapped, .times = COUNT(gaps))
{
    for (int kind = 0; kind < 3 && may_unmap(); kind++) {
        struct gone gone;
        size_t left = kind == 2 ? 0 : gaps[_i].left;
        int result;
        gone_open(&gone, 1, gaps[_i].length, left);
        struct sluice_sge sge = memory_sge(&gone.memory, 0, gone.memory.length);
        if (kind == 0) {
            result = sluice_channel_write(gone.pair.channels[0], &sge, 1, &gone.remote, DEADLINE);
        } else if (kind == 1) {
            result = sluice_channel_read(gone.pair.channels[0], &sge, 1, &gone.remote, DEADLINE);
        } else {
            sge.length = 8;
            require_ok(sluice_remote_mr_slice(&gone.remote, 0, 8, &gone.remote));
            result =
                sluice_channel_fetch_add(gone.pair.channels[0], &sge, &gone.remote, 1, DEADLINE);
        }
        require_refusal(&gone, result, SLUICE_STATUS_REM_ACCESS_ERR);
        gone_close(&gone, left);
    }
}

TEST(local_memory_that_was_unmapped, .times = COUNT(gaps))
{
    for (int kind = 0; kind < 4 && may_unmap(); kind++) {
        struct gone gone;
        size_t left = kind == 3 ? 0 : gaps[_i].left;
        int result;
        gone_open(&gone, 0, gaps[_i].length, left);
        struct sluice_remote_mr remote = memory_remote(&gone.memory, 0, gone.memory.length);
        struct sluice_sge sge = memory_sge(&gone.memory, 0, gone.memory.length);
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &sge);
        if (kind == 0) {
            result = sluice_channel_write(gone.pair.channels[0], &gone.sge, 1, &remote, DEADLINE);
        } else if (kind == 1) {
            post(gone.pair.channels[1], &receive);
            result = sluice_channel_send(gone.pair.channels[0], &gone.sge, 1, DEADLINE);
        } else if (kind == 2) {
            result = sluice_channel_read(gone.pair.channels[0], &gone.sge, 1, &remote, DEADLINE);
        } else {
            require_ok(sluice_remote_mr_slice(&remote, 0, 8, &remote));
            gone.sge.length = 8;
            result =
                sluice_channel_fetch_add(gone.pair.channels[0], &gone.sge, &remote, 1, DEADLINE);
        }
        require_refusal(&gone, result, SLUICE_STATUS_LOC_PROT_ERR);
        gone_close(&gone, left);
    }
}

/* A receive of more than a few bytes fails that way, and so does its send. */
TEST(receive_into_memory_that_was_unmapped, .times = COUNT(gaps))
{
    struct gone gone;
    if (!may_unmap() || gaps[_i].length < 4096) {
        return;
    }
    gone_open(&gone, 1, gaps[_i].length, gaps[_i].left);
    struct sluice_sge sge = memory_sge(&gone.memory, 0, gone.memory.length);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &gone.sge);
    struct sluice_handle handle = post(gone.pair.channels[1], &receive);
    int result = sluice_channel_send(gone.pair.channels[0], &sge, 1, DEADLINE);
    struct sluice_error error = channel_error(gone.pair.channels[0]);
    require(result < 0 && error.status == SLUICE_STATUS_REM_OP_ERR, "%d: %s", result, error.text);
    await(gone.pair.channels[1], handle, SLUICE_CLASS_LOCAL);
    gone_close(&gone, gaps[_i].left);
}

int main(void)
{
    return run_tests("access", 60);
}
