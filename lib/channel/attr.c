/* SPDX-License-Identifier: MIT */
/* Attributes of a channel: defaults, ranges, and what the device can do. */
#include "config.h"

#include "engine.h"

/* Of the struct in version 0.1: up to and with max_message. */
#define FIRST_SIZE 56
#define REMOTE_ACCESS (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)

/* 0 takes the default, or the device's limit if that is lower. */
static int apply(uint32_t *value, const char *name, uint32_t given, uint32_t usual, uint32_t max,
                 uint32_t device)
{
    if (given == 0) {
        *value = usual < device ? usual : device;
        return 0;
    }
    if (given > max)
        return slu_fail(EINVAL, "sluice_channel_attr.%s is %u, must be in 1..%u (0: %u)", name,
                        given, max, usual);
    if (given > device)
        return slu_fail(EINVAL, "sluice_channel_attr.%s is %u, this device allows 1..%u", name,
                        given, device);
    *value = given;
    return 0;
}

static int apply_access(struct slu_qp_attr *out, uint32_t access)
{
    if (access == SLUICE_ACCESS_NONE) {
        out->access = 0;
        return 0;
    }
    if ((access & ~REMOTE_ACCESS) != 0)
        return slu_fail(EINVAL,
                        "sluice_channel_attr.access is %#x, must be of REMOTE_READ and "
                        "REMOTE_WRITE (%#x), or NONE alone",
                        access, REMOTE_ACCESS);
    out->access = access != 0 ? access : REMOTE_ACCESS;
    return 0;
}

static int apply_message(struct slu_qp_attr *out, uint64_t given, uint64_t device)
{
    if (given != 0 && (given < 4096 || given > device))
        return slu_fail(
            EINVAL, "sluice_channel_attr.max_message is %llu, must be in 4096..%llu (0: %llu)",
            (unsigned long long)given, (unsigned long long)device, (unsigned long long)device);
    out->max_message = given != 0 ? given : device;
    return 0;
}

static int apply_wait(struct slu_engine *engine, const struct sluice_channel_attr *attr)
{
    uint32_t spin_time = 0;
    int error;

    if (attr->wait_mode > SLUICE_WAIT_EVENT)
        return slu_fail(EINVAL, "sluice_channel_attr.wait_mode is %u, must be in 0..%u",
                        attr->wait_mode, SLUICE_WAIT_EVENT);
    error = apply(&spin_time, "spin_time", attr->spin_time, 20000, 1000000000, UINT32_MAX);
    engine->wait_mode = (enum sluice_wait_mode)attr->wait_mode;
    engine->spin_time = spin_time;
    return error;
}

int slu_channel_attr_apply(struct slu_engine *engine, const struct slu_tcontext *device,
                           const struct sluice_channel_attr *given)
{
    struct slu_qp_attr *out = &engine->attr;
    struct sluice_channel_attr attr;
    int error = slu_attr_copy(&attr, sizeof attr, FIRST_SIZE, given, "sluice_channel_attr");

    if (error == 0 && attr.flags != 0)
        error = slu_fail(EINVAL, "sluice_channel_attr.flags is %#x, no flag is known: must be 0",
                         attr.flags);
    if (error == 0)
        error = apply(&out->send_depth, "send_depth", attr.send_depth, 128, 16384,
                      device->max_send_depth);
    if (error == 0)
        error = apply(&out->receive_depth, "receive_depth", attr.receive_depth, 128, 16384,
                      device->max_receive_depth);
    if (error == 0)
        error = apply(&out->max_sge, "max_sge", attr.max_sge, 4, SLU_MAX_SGE, device->max_sge);
    if (error == 0)
        error =
            apply(&out->max_inline, "max_inline", attr.max_inline, 64, 1024, device->max_inline);
    if (error == 0)
        error =
            apply(&out->read_depth, "read_depth", attr.read_depth, 16, 128, device->max_read_depth);
    if (error == 0)
        error = apply(&out->ack_timeout, "ack_timeout", attr.ack_timeout, 18, 31, UINT32_MAX);
    if (error == 0)
        error = apply(&out->retry_count, "retry_count", attr.retry_count, 6, 6, UINT32_MAX);
    if (error == 0)
        error = apply_access(out, attr.access);
    if (error == 0)
        error = apply_message(out, attr.max_message, device->max_message);
    if (error == 0)
        error = apply_wait(engine, &attr);
    return error;
}
