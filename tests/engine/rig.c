/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "rig.h"

#include "invariants.h"
#include "multichannel/multichannel.h"

void rig_attach(struct rig *rig, struct sluice_multichannel *channel)
{
    rig->channel = channel;
    rig->engine = channel->base.engine;
}

void rig_open(struct rig *rig, uint32_t peers, uint32_t depth)
{
    rig_open_counting(rig, peers, depth, 0);
}

void rig_open_counting(struct rig *rig, uint32_t peers, uint32_t depth, uint32_t tags)
{
    struct sluice_channel_attr attr =
        *ATTR(.flags = SLUICE_CHANNEL_HISTOGRAMS, .send_depth = depth, .receive_depth = depth,
              .arrival_tags = tags, .max_message = RIG_MESSAGE);
    struct sluice_endpoint endpoints[RIG_PEERS];
    rig->context = made(sluice_context_open("soft", NULL));
    rig->pd = made(sluice_pd_alloc(rig->context));
    struct sluice_prepared_multichannel *prepared =
        made(sluice_multichannel_prepare(rig->pd, peers, &attr));
    require_ok(sluice_prepared_multichannel_endpoints(prepared, endpoints, peers));
    struct sluice_multichannel *channel =
        made(sluice_prepared_multichannel_handshake(prepared, endpoints, peers));
    rig_attach(rig, channel);
}

void rig_close(struct rig *rig)
{
    check_engine(rig->engine);
    sluice_multichannel_close(rig->channel);
    sluice_pd_free(rig->pd);
    sluice_context_close(rig->context);
    fake_require(fake.objects == 0, "%u objects of the device are left", fake.objects);
}

struct sluice_request rig_request(uint32_t opcode, uint32_t peer, uint32_t bytes, uint32_t key)
{
    /* Elements are read only during the call; but a list of requests needs one for each. */
    static struct sluice_sge sges[64];
    static uint32_t used;
    struct sluice_sge *sge = &sges[used++ % COUNT(sges)];
    *sge = (struct sluice_sge){.addr = 4096, .length = bytes, .lkey = key};
    return REQUEST(.opcode = opcode, .peer = peer, .user_data = key, .sges = sge, .sge_count = 1,
                   .remote = {.addr = 4096, .length = bytes});
}

struct sluice_request write_of(uint32_t peer, uint32_t key)
{
    return rig_request(SLUICE_OP_WRITE, peer, 10, key);
}

struct sluice_request split_write(uint32_t peer, uint32_t key)
{
    return rig_request(SLUICE_OP_WRITE, peer, (RIG_PARTS - 1) * RIG_MESSAGE + 10, key);
}

struct sluice_request receive_of(uint32_t peer, uint32_t key)
{
    return rig_request(SLUICE_OP_RECEIVE, peer, 10, key);
}

int rig_submit(struct rig *rig, const struct sluice_request *requests, uint32_t count,
               int64_t deadline, struct sluice_completion *completions)
{
    memset(completions, 0xcc, count * sizeof(*completions));
    int result = sluice_multichannel_submit(rig->channel, requests, count, deadline, completions);
    check_engine(rig->engine);
    return result;
}

void check_status(const char *file, int line, const struct sluice_completion *completion,
                  uint32_t key, uint32_t status, uint32_t cause)
{
    if (completion->user_data != key || completion->status != status ||
        completion->cause != cause || (completion->error == 0) != (status == 0)) {
        fail_at(file, line,
                "completion of %llu, not %u: error %d, status %u (not %u), cause %u (not %u)",
                (unsigned long long)completion->user_data, key, completion->error,
                completion->status, status, completion->cause, cause);
    }
}

struct sluice_handle rig_post(struct rig *rig, struct sluice_request request, int64_t deadline)
{
    struct sluice_handle handle = {0};
    require_result(sluice_multichannel_post(rig->channel, &request, 1, deadline, &handle), 1);
    return handle;
}

struct slu_qp *rig_qp(const struct rig *rig, uint32_t peer)
{
    return rig->engine->peers[peer].qp;
}

void rig_poll_all(struct rig *rig, struct sluice_completion *completions, uint32_t count)
{
    const uint32_t *pending = rig->engine->pending;
    uint32_t got = 0;
    int result;
    do {
        struct sluice_completion extra;
        struct sluice_completion *next = got < count ? &completions[got] : &extra;
        result = sluice_multichannel_poll(rig->channel, next, 1);
        require(result >= 0, "%s", sluice_last_error());
        got += (uint32_t)result;
    } while (result > 0 || pending[SLU_SEND_QUEUE] + pending[SLU_RECEIVE_QUEUE] > 0);
    require(got == count, "%u completions, not %u", got, count);
}

void rig_works(struct rig *rig, uint32_t peer)
{
    struct sluice_request request = rig_request(SLUICE_OP_WRITE, peer, 8, FAKE_KEYS - 2);
    struct sluice_completion completion;
    bool by_hand = fake.by_hand;
    fake.by_hand = false;
    require_ok(sluice_multichannel_submit(rig->channel, &request, 1, SLUICE_S(1), &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    fake.by_hand = by_hand;
}
