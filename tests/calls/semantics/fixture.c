/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "../../support/process.h"

void fixture_open(struct fixture *fixture)
{
    struct sluice_channel_attr attr = {
        .size = sizeof(attr), .send_depth = DEPTH, .receive_depth = DEPTH};
    memset(fixture, 0, sizeof(*fixture));
    star_open(&fixture->star, PEERS, &attr);
    memory_open(&fixture->near, fixture->star.sides.pds[0], SLOTS * SLOT);
    memory_open(&fixture->far, fixture->star.sides.pds[1], SLOTS * SLOT);
    pattern_fill(fixture->near.bytes, fixture->near.length, 1);
    for (uint32_t i = 0; i < SLOTS; i++) {
        fixture->sges[i] = memory_sge(&fixture->near, (size_t)i * SLOT, SLOT);
        fixture->writes[i] = request_of(SLUICE_OP_WRITE, i % PEERS, &fixture->sges[i]);
        fixture->writes[i].remote = memory_remote(&fixture->far, (size_t)i * SLOT, SLOT);
        fixture->writes[i].user_data = 100 + i;
    }
    fixture->report.size = sizeof(fixture->report);
    fixture->report.failures = fixture->completions;
    fixture->report.capacity = SLOTS;
}

void fixture_close(struct fixture *fixture)
{
    memory_close(&fixture->near);
    memory_close(&fixture->far);
    star_close(&fixture->star);
}

struct sluice_scope *fixture_begin(struct fixture *fixture)
{
    struct sluice_scope *scope = sluice_multichannel_scope_begin(fixture->star.hub, DEADLINE);
    require(scope, "%s", sluice_last_error());
    return scope;
}

void check_slot(const struct fixture *fixture, uint32_t slot, bool written)
{
    const uint8_t *bytes = fixture->far.bytes + slot * SLOT;
    if (written) {
        require(memcmp(bytes, fixture->near.bytes + slot * SLOT, SLOT) == 0, "slot %u", slot);
    } else {
        value_check(bytes, SLOT, 0);
    }
}

void poll_hub(struct fixture *fixture, uint32_t count)
{
    uint32_t got = 0;
    for (int64_t limit = clock_now() + DEADLINE; got < count && clock_now() < limit;) {
        int result =
            sluice_multichannel_poll(fixture->star.hub, fixture->completions + got, count - got);
        require(result >= 0, "%s", sluice_last_error());
        got += (uint32_t)result;
    }
    require(got == count, "%u of %u completions", got, count);
}
