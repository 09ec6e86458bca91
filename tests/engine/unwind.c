/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "unwind.h"

#include "../support/pair.h"
#include "fake.h"

/* The n-th allocation from now fails; the linker redirects the library's allocations to this. */
static uint32_t fail_calloc;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    if (fail_calloc > 0 && --fail_calloc == 0) {
        errno = ENOMEM;
        return NULL;
    }
    return __real_calloc(count, size);
}

static struct sluice_channel *make_channel(struct sluice_pd *pd)
{
    struct sluice_endpoint endpoint;
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    if (!prepared) {
        return NULL;
    }
    require_ok(sluice_prepared_channel_endpoint(prepared, &endpoint));
    return sluice_prepared_channel_handshake(prepared, &endpoint);
}

/* Adds a new peer, and one in place of another. */
static bool add_peers(struct sluice_multichannel *multichannel)
{
    struct sluice_endpoint endpoint;
    int index = sluice_multichannel_peer_add(multichannel, &endpoint);
    if (index >= 0) {
        require_ok(sluice_multichannel_peer_remove(multichannel, 0));
        index = sluice_multichannel_peer_add(multichannel, &endpoint);
    }
    errno = index < 0 ? -index : 0;
    return index >= 0;
}

/* Makes three peers, a fourth time one of them, and then others. */
static bool make_multichannel(struct sluice_pd *pd, struct sluice_multichannel **made)
{
    const struct sluice_channel_attr attr = *ATTR(.flags = SLUICE_CHANNEL_HISTOGRAMS);
    struct sluice_endpoint endpoints[3];
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, 3, &attr);
    *made = NULL;
    if (!prepared) {
        return false;
    }
    require_ok(sluice_prepared_multichannel_endpoints(prepared, endpoints, 3));
    *made = sluice_prepared_multichannel_handshake(prepared, endpoints, 3);
    if (!*made) {
        return false;
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (sluice_multichannel_peer_state(*made, i) != SLUICE_STATE_READY) {
            errno = -peer_error(*made, i).error;
            return false;
        }
    }
    errno = -sluice_multichannel_peer_reset(*made, 1, &endpoints[1]);
    return errno == 0 && add_peers(*made);
}

/* Runs a life of each kind of object. Returns false and sets errno if it ended early. */
static bool live(void)
{
    struct sluice_pd *pd = NULL;
    struct sluice_mr *mr = NULL;
    struct sluice_channel *channel = NULL;
    struct sluice_prepared_channel *again = NULL;
    struct sluice_multichannel *multichannel = NULL;
    struct sluice_context *context = sluice_context_open("soft", NULL);
    bool done =
        context && (pd = sluice_pd_alloc(context)) != NULL &&
        (mr = sluice_mr_alloc(pd, 100, 0)) != NULL && (channel = make_channel(pd)) != NULL &&
        (again = sluice_channel_reset(channel)) != NULL && make_multichannel(pd, &multichannel);
    int error = errno;
    sluice_multichannel_close(multichannel);
    sluice_prepared_channel_free(again);
    require_ok(sluice_mr_deregister(mr));
    sluice_pd_free(pd);
    sluice_context_close(context);
    errno = error;
    return done;
}

bool unwinds(uint32_t n, enum failing what)
{
    uint32_t *countdown = what == FAIL_CALL ? &fake.fail_call : &fail_calloc;
    *countdown = n;
    errno = 0;
    bool done = live();
    int error = errno;
    bool failed = *countdown == 0;
    *countdown = 0;
    require(done == !failed, "failure %u: %s", n, done ? "ignored" : sluice_last_error());
    require(done || error == ENOMEM, "failure %u: %s: %s", n, strerror(error), sluice_last_error());
    require(fake.objects == 0, "failure %u: %u objects of the device are left", n, fake.objects);
    return failed;
}
