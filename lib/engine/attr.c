/* SPDX-License-Identifier: MIT */
/* Attributes of a channel: defaults, ranges, and what the device can do. */
#include "config.h"

#include <string.h>

#include "engine/engine.h"
#include "engine/life.h"
#include "engine/request/message.h"
#include "memory/mr_cache.h"

#define STRIPE_USUAL (UINT32_C(256) << 10)
#define SPIN_USUAL SLUICE_US(20)
#define SPIN_MOST SLUICE_S(1)
#define ARRIVAL_TAGS_MOST (1u << 20)
#define STAGING_MOST (UINT64_C(1) << 32)
#define POOL_MOST 65536
#define KEEPALIVE_LEAST SLUICE_MS(1)
#define KEEPALIVE_MOST SLUICE_S(3600)
#define REMOTE_ACCESS \
    (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC)
#define FLAGS                                                                 \
    (SLUICE_CHANNEL_GLOBAL | SLUICE_CHANNEL_PSN | SLUICE_CHANNEL_HISTOGRAMS | \
     SLUICE_CHANNEL_DROP_LONG)

/*
 * A number with a range. 0 selects the default; if the default is 0, then 0 is also the least
 * value. In some fields SLUICE_ZERO stands for the number 0.
 */
struct field {
    const char *name;
    size_t from; /* in sluice_channel_attr */
    size_t to;   /* in slu_qp_attr */
    uint32_t usual;
    uint32_t max;
    size_t limit;     /* in slu_tcontext: the device's limit; 0: none */
    bool can_be_zero; /* with SLUICE_ZERO */
};

#define NAMED(name) \
#name, offsetof(struct sluice_channel_attr, name), offsetof(struct slu_qp_attr, name)
#define LIMIT(name) offsetof(struct slu_tcontext, name)

static const struct field fields[] = {
    {NAMED(send_depth), 128, 16384, LIMIT(max_send_depth), false},
    {NAMED(receive_depth), 128, 16384, LIMIT(max_receive_depth), false},
    {NAMED(max_sge), 4, SLU_MAX_SGE, LIMIT(max_sge), false},
    {NAMED(max_inline), 64, 1024, LIMIT(max_inline), true},
    {NAMED(read_depth), 16, 128, LIMIT(max_read_depth), false},
    {NAMED(service_level), 0, 15, 0, false},
    {NAMED(traffic_class), 0, 255, 0, false},
    {NAMED(flow_label), 0, 0xfffff, 0, false},
    {NAMED(hop_limit), 64, 255, 0, false},
    {NAMED(path_bits), 0, 127, 0, false},
    {NAMED(psn), 0, 0xffffff, 0, false},
    {NAMED(ack_timeout), 18, 31, 0, true},
    {NAMED(rnr_timer), 12, 31, 0, true},
    {NAMED(rnr_retry), 7, 7, 0, true},
    {NAMED(queue_pairs), 1, SLU_QUEUE_PAIRS, 0, false},
    {NAMED(stripe_least), STRIPE_USUAL, INT32_MAX, 0, false},
};

/* Applies a value. 0 selects the default, or the device's limit if that is lower. */
static int apply(uint32_t *value, const struct field *field, uint32_t given, uint32_t device)
{
    if (given == 0) {
        *value = field->usual < device ? field->usual : device;
        return 0;
    }
    if (given == SLUICE_ZERO && field->can_be_zero) {
        *value = 0;
        return 0;
    }
    if (given > field->max && field->usual == 0)
        return slu_misuse(EINVAL, "sluice_channel_attr.%s is %u, must be in 0..%u", field->name,
                          given, field->max);
    if (given > field->max)
        return slu_misuse(EINVAL, "sluice_channel_attr.%s is %u, must be in 1..%u (0: %u%s)",
                          field->name, given, field->max, field->usual,
                          field->can_be_zero ? ", SLUICE_ZERO: 0" : "");
    if (given > device)
        return slu_fail(EINVAL, "sluice_channel_attr.%s is %u, this device allows 1..%u",
                        field->name, given, device);
    *value = given;
    return 0;
}

static int apply_fields(struct slu_qp_attr *out, const struct slu_tcontext *device,
                        const struct sluice_channel_attr *attr)
{
    int error = 0;

    for (size_t i = 0; i < sizeof fields / sizeof fields[0] && error == 0; i++) {
        const struct field *field = &fields[i];
        uint32_t given, value = 0, limit = UINT32_MAX;

        memcpy(&given, (const char *)attr + field->from, sizeof given);
        if (field->limit != 0)
            memcpy(&limit, (const char *)device + field->limit, sizeof limit);
        error = apply(&value, field, given, limit);
        memcpy((char *)out + field->to, &value, sizeof value);
    }
    return error;
}

static int apply_flags(struct slu_qp_attr *out, const struct slu_tcontext *device,
                       const struct sluice_channel_attr *attr)
{
    bool drops = (attr->flags & SLUICE_CHANNEL_DROP_LONG) != 0;

    if ((attr->flags & ~FLAGS) != 0)
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.flags is %#x, must be of GLOBAL, PSN, "
                          "HISTOGRAMS and DROP_LONG (%#x)",
                          attr->flags, FLAGS);
    if (attr->psn != 0 && (attr->flags & SLUICE_CHANNEL_PSN) == 0)
        return slu_misuse(
            EINVAL, "sluice_channel_attr.psn is %u, but SLUICE_CHANNEL_PSN is not set", attr->psn);
    if (drops && !device->transport->drops_long)
        return slu_fail(EOPNOTSUPP,
                        "sluice_channel_attr.flags has DROP_LONG, but on device %s a message that "
                        "is longer than its receive ends the connection",
                        device->device);
    if (drops && attr->arrival_tags != 0)
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.flags has DROP_LONG, but with arrival_tags "
                          "(%u) all receives are the library's",
                          attr->arrival_tags);
    out->flags = attr->flags;
    return 0;
}

static int apply_mtu(struct slu_qp_attr *out, uint32_t mtu)
{
    if (mtu != 0 && (mtu < 256 || mtu > 4096 || (mtu & (mtu - 1)) != 0))
        return slu_misuse(
            EINVAL,
            "sluice_channel_attr.path_mtu is %u, must be 256, 512, 1024, 2048 or 4096 "
            "(0: that of the port)",
            mtu);
    out->path_mtu = mtu;
    return 0;
}

/* Applies a partition key. The highest bit of a key stands for full membership. */
static int apply_pkey(struct slu_qp_attr *out, uint32_t pkey)
{
    if (pkey > 0xffff || pkey == 0x8000)
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.pkey is %#x, must be in 0x1..0xffff and not 0x8000 "
                          "(0: the first of the port's table)",
                          pkey);
    out->pkey = pkey;
    return 0;
}

static int apply_retries(struct slu_qp_attr *out, uint32_t count)
{
    if (count == 7)
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.retry_count is 7: some devices then retry for "
                          "ever, and a lost peer is never noticed; must be in 1..6 (0: 6, "
                          "SLUICE_ZERO: 0)");
    if (count > 7 && count != SLUICE_ZERO)
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.retry_count is %u, must be in 1..6 (0: 6, "
                          "SLUICE_ZERO: 0)",
                          count);
    out->retry_count = count == SLUICE_ZERO ? 0 : count != 0 ? count : 6;
    return 0;
}

static int apply_access(struct slu_qp_attr *out, const struct slu_tcontext *device, uint32_t access)
{
    bool atomics = device->atomics != SLUICE_ATOMICS_NONE;

    if (access == SLUICE_ACCESS_NONE) {
        out->access = 0;
        return 0;
    }
    if ((access & ~REMOTE_ACCESS) != 0)
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.access is %#x, must be of REMOTE_READ, "
                          "REMOTE_WRITE and REMOTE_ATOMIC (%#x), or NONE alone",
                          access, REMOTE_ACCESS);
    if ((access & SLUICE_ACCESS_REMOTE_ATOMIC) != 0 && !atomics)
        return slu_fail(EOPNOTSUPP,
                        "sluice_channel_attr.access has REMOTE_ATOMIC, but device %s has no atomic "
                        "operations",
                        device->device);
    out->access = access != 0 ? access
                  : atomics   ? REMOTE_ACCESS
                              : REMOTE_ACCESS & ~SLUICE_ACCESS_REMOTE_ATOMIC;
    return 0;
}

static int apply_message(struct slu_qp_attr *out, uint64_t given, uint64_t device)
{
    static const char text[] = "sluice_channel_attr.max_message is %llu, must be in 4096..%llu "
                               "(0: %llu)";
    unsigned long long value = given;
    unsigned long long most = device;

    if (given != 0 && given < 4096)
        return slu_misuse(EINVAL, text, value, most, most);
    if (given > device)
        return slu_fail(EINVAL, text, value, most, most);
    out->max_message = given != 0 ? given : device;
    return 0;
}

static int apply_wait(struct slu_engine *engine, const struct sluice_channel_attr *attr)
{
    if (attr->wait_mode > SLUICE_WAIT_EVENT)
        return slu_misuse(EINVAL, "sluice_channel_attr.wait_mode is %u, must be in 0..%u",
                          attr->wait_mode, SLUICE_WAIT_EVENT);
    if (attr->spin_time < 0 || attr->spin_time > SPIN_MOST)
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.spin_time is %lld ns, must be in 1..%lld (0: %lld)",
                          (long long)attr->spin_time, (long long)SPIN_MOST, (long long)SPIN_USUAL);
    engine->wait_mode = (enum sluice_wait_mode)attr->wait_mode;
    engine->spin_time = attr->spin_time != 0 ? attr->spin_time : SPIN_USUAL;
    return 0;
}

/*
 * Warns of a keep-alive that is shorter than the acknowledgement timeout. A lost packet is sent
 * again only after that timeout, so the peer would be taken for lost first.
 */
static void warn_of_retries(const struct slu_engine *engine, const struct slu_tcontext *device)
{
    int64_t timeout = INT64_C(4096) << engine->attr.ack_timeout;

    if (device->level != SLUICE_LEVEL_NIC)
        return;
    if (engine->attr.ack_timeout == 0)
        slu_log(SLUICE_LOG_INFO,
                "keepalive without an acknowledgement timeout: a peer is taken for "
                "lost when a packet is");
    else if (engine->keepalive < timeout)
        slu_log(SLUICE_LOG_INFO,
                "keepalive of %lld ms is shorter than the acknowledgement timeout of %lld ms: a "
                "peer is taken for lost when a packet is",
                (long long)(engine->keepalive / SLUICE_MS(1)), (long long)(timeout / SLUICE_MS(1)));
}

static int apply_keepalive(struct slu_engine *engine, int64_t keepalive)
{
    if (keepalive != 0 && (keepalive < KEEPALIVE_LEAST || keepalive > KEEPALIVE_MOST))
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.keepalive is %lld ns, must be in %lld..%lld (0: "
                          "none)",
                          (long long)keepalive, (long long)KEEPALIVE_LEAST,
                          (long long)KEEPALIVE_MOST);
    engine->keepalive = keepalive;
    return 0;
}

static int apply_arrivals(struct slu_engine *engine, const struct slu_tcontext *device,
                          const struct sluice_channel_attr *attr)
{
    if (attr->arrival_tags > ARRIVAL_TAGS_MOST)
        return slu_misuse(EINVAL, "sluice_channel_attr.arrival_tags is %u, must be in 0..%u",
                          attr->arrival_tags, ARRIVAL_TAGS_MOST);
    if (attr->arrival_tags != 0 && device->no_immediates)
        return slu_fail(EOPNOTSUPP,
                        "sluice_channel_attr.arrival_tags is %u, but arrivals are counted by "
                        "immediates, which device %s, as iWARP, does not have",
                        attr->arrival_tags, device->device);
    engine->arrival_tags = attr->arrival_tags;
    engine->lacking_flags = device->no_immediates ? SLUICE_IMMEDIATE : 0;
    return 0;
}

static int check_pool(const struct slu_tcontext *device, const struct sluice_channel_attr *attr)
{
    uint32_t pool = attr->receive_pool;

    if (pool > POOL_MOST)
        return slu_misuse(EINVAL, "sluice_channel_attr.receive_pool is %u, must be in 0..%u", pool,
                          POOL_MOST);
    if (attr->receive_pool_low > 0 && attr->receive_pool_low >= pool)
        return slu_misuse(EINVAL,
                          "sluice_channel_attr.receive_pool_low is %u, must be less than "
                          "receive_pool, which is %u",
                          attr->receive_pool_low, pool);
    if (pool == 0)
        return 0;
    if (device->max_pool_depth == 0)
        return slu_fail(EOPNOTSUPP,
                        "sluice_channel_attr.receive_pool is %u, but device %s has no receives "
                        "that peers share",
                        pool, device->device);
    if (pool > device->max_pool_depth)
        return slu_fail(EINVAL, "sluice_channel_attr.receive_pool is %u, this device allows 1..%u",
                        pool, device->max_pool_depth);
    if (attr->max_sge > device->max_pool_sge)
        return slu_fail(EINVAL,
                        "sluice_channel_attr.max_sge is %u, but with receive_pool this device "
                        "allows 1..%u",
                        attr->max_sge, device->max_pool_sge);
    return 0;
}

/* With a pool, the depth of the receive queue is the share of a peer. */
static int apply_pool(struct slu_engine *engine, const struct slu_tcontext *device,
                      const struct sluice_channel_attr *attr)
{
    uint32_t low = attr->receive_pool_low != 0 ? attr->receive_pool_low : attr->receive_pool / 2;
    int error = check_pool(device, attr);

    if (error < 0 || attr->receive_pool == 0)
        return error;
    engine->pool_limits = (struct slu_pool_limits){
        .depth = attr->receive_pool, .low = low, .share = engine->attr.receive_depth};
    if (engine->attr.max_sge > device->max_pool_sge)
        engine->attr.max_sge = device->max_pool_sge;
    if (engine->attr.max_read_sge > engine->attr.max_sge)
        engine->attr.max_read_sge = engine->attr.max_sge;
    engine->attr.pool_share = engine->attr.receive_depth;
    engine->attr.receive_depth = 0;
    return 0;
}

static int apply_staging(struct slu_engine *engine, uint64_t staging)
{
    if (staging > STAGING_MOST)
        return slu_misuse(EINVAL, "sluice_channel_attr.staging is %llu, must be in 0..%llu",
                          (unsigned long long)staging, (unsigned long long)STAGING_MOST);
    engine->staging = slu_staging_round(staging);
    return 0;
}

static int apply_cache(struct slu_engine *engine, const struct sluice_pd *pd,
                       struct sluice_mr_cache *cache)
{
    int error = cache != NULL ? slu_mr_cache_check(cache, pd) : 0;

    if (error == 0)
        engine->cache = cache;
    return error;
}

static int apply_all(struct slu_engine *engine, const struct sluice_pd *pd,
                     const struct sluice_channel_attr *given)
{
    const struct slu_tcontext *device = pd->context->transport;
    struct slu_qp_attr *out = &engine->attr;
    struct sluice_channel_attr attr;
    int error = SLU_ATTR_COPY(sluice_channel_attr, &attr, given);

    if (error == 0)
        error = apply_flags(out, device, &attr);
    if (error == 0)
        error = apply_fields(out, device, &attr);
    out->max_read_sge = out->max_sge < device->max_read_sge ? out->max_sge : device->max_read_sge;
    if (error == 0)
        error = apply_access(out, device, attr.access);
    if (error == 0)
        error = apply_message(out, attr.max_message, device->max_message);
    if (error == 0)
        error = apply_mtu(out, attr.path_mtu);
    if (error == 0)
        error = apply_pkey(out, attr.pkey);
    if (error == 0)
        error = apply_retries(out, attr.retry_count);
    if (error == 0)
        error = apply_wait(engine, &attr);
    if (error == 0)
        error = apply_keepalive(engine, attr.keepalive);
    if (error == 0)
        error = apply_arrivals(engine, device, &attr);
    if (error == 0)
        error = apply_pool(engine, device, &attr);
    if (error == 0)
        error = apply_staging(engine, attr.staging);
    if (error == 0)
        error = apply_cache(engine, pd, attr.mr_cache);
    return error;
}

int slu_channel_attr_apply(struct slu_engine *engine, const struct sluice_channel_attr *given)
{
    int error = apply_all(engine, engine->pd, given);

    if (error < 0)
        return error;
    if (engine->keepalive != 0)
        warn_of_retries(engine, engine->pd->context->transport);
    if (engine->cache != NULL)
        slu_mr_cache_hold(engine->cache);
    return 0;
}

int slu_channel_check(const struct sluice_pd *pd, const struct sluice_channel_attr *given)
{
    struct slu_engine unused = {0};

    if (pd == NULL || pd->magic != SLU_MAGIC_PD)
        return slu_misuse(EINVAL, "a channel needs a protection domain%s", slu_none_hint(pd));
    return apply_all(&unused, pd, given);
}
