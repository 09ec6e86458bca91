/* SPDX-License-Identifier: MIT */
#include "desk.h"

#include "../../support/process.h"

void desk_open(struct desk *desk)
{
    struct sluice_channel_attr attr = {
        .size = sizeof(attr), .send_depth = DEPTH, .receive_depth = DEPTH};
    memset(desk, 0, sizeof(*desk));
    star_open(&desk->star, PEERS, &attr);
    memory_open(&desk->near, desk->star.sides.pds[0], SLOTS * SLOT);
    memory_open(&desk->far, desk->star.sides.pds[1], SLOTS * SLOT);
    pattern_fill(desk->near.bytes, desk->near.length, 1);
    for (uint32_t i = 0; i < SLOTS; i++) {
        desk->sges[i] = memory_sge(&desk->near, (size_t)i * SLOT, SLOT);
        desk->writes[i] = request_of(SLUICE_OP_WRITE, i % PEERS, &desk->sges[i]);
        desk->writes[i].remote = memory_remote(&desk->far, (size_t)i * SLOT, SLOT);
        desk->writes[i].user_data = 100 + i;
    }
    desk->report.size = sizeof(desk->report);
    desk->report.failures = desk->completions;
    desk->report.capacity = SLOTS;
}

void desk_close(struct desk *desk)
{
    memory_close(&desk->near);
    memory_close(&desk->far);
    star_close(&desk->star);
}

struct sluice_scope *desk_begin(struct desk *desk)
{
    struct sluice_scope *scope = sluice_multichannel_scope_begin(desk->star.hub, DEADLINE);
    require(scope, "%s", sluice_last_error());
    return scope;
}

void check_slot(const struct desk *desk, uint32_t slot, bool written)
{
    const uint8_t *bytes = desk->far.bytes + slot * SLOT;
    if (written) {
        require(memcmp(bytes, desk->near.bytes + slot * SLOT, SLOT) == 0, "slot %u", slot);
    } else {
        value_check(bytes, SLOT, 0);
    }
}

void poll_hub(struct desk *desk, uint32_t count)
{
    uint32_t got = 0;
    for (int64_t limit = clock_now() + DEADLINE; got < count && clock_now() < limit;) {
        int result = sluice_multichannel_poll(desk->star.hub, desk->completions + got, count - got);
        require(result >= 0, "%s", sluice_last_error());
        got += (uint32_t)result;
    }
    require(got == count, "%u of %u completions", got, count);
}
