/* SPDX-License-Identifier: MIT */
/* Writes, reads and atomic operations on the memory of the next rank. */
#include <string.h>

#include "forms.h"

/* Takes the result of one request that was posted without waiting. */
int form_finish(const struct end *end, int posted, const struct sluice_handle *handle)
{
    struct sluice_completion completion;
    int result = posted;
    if (posted == 0 && below(2)) {
        must(OF(end, flush, PATIENCE + SLUICE_S(3)) == 0, "flush: %s", sluice_last_error());
    }
    if (posted == 0) {
        result = OF(end, wait, handle, PATIENCE + SLUICE_S(3), &completion);
        must(result == 0, "wait: %d: %s", result, sluice_last_error());
        result = completion.error;
    }
    return result;
}

static int move(const struct end *end, bool writes, const struct sluice_sge *sge,
                struct sluice_remote_mr *remote)
{
    struct sluice_handle handle;
    struct sluice_scope *scope;
    int result;
    switch (below(3)) {
    case 0:
        return writes ? AT(end, write, sge, 1, remote, PATIENCE)
                      : AT(end, read, sge, 1, remote, PATIENCE);
    case 1:
        result = writes ? AT(end, post_write, sge, 1, remote, PATIENCE, &handle)
                        : AT(end, post_read, sge, 1, remote, PATIENCE, &handle);
        return form_finish(end, result, &handle);
    default:
        scope = OF(end, scope_begin, PATIENCE);
        must(scope != NULL, "scope: %s", sluice_last_error());
        result =
            writes
                ? sluice_scope_post_write(scope, end->channel ? 0 : end->peer, sge, 1, remote, NULL)
                : sluice_scope_post_read(scope, end->channel ? 0 : end->peer, sge, 1, remote, NULL);
        must(result == 0, "scope: %s", sluice_last_error());
        return sluice_scope_end(scope, NULL);
    }
}

/* An atomic operation on the word of the next rank, which no other rank changes. */
static int change(const struct end *end, bool adds, uint64_t operand)
{
    struct sluice_sge sge = form_sge(OUT, 8);
    struct sluice_remote_mr word;
    struct sluice_handle handle;
    struct sluice_scope *scope;
    uint32_t peer = end->channel != NULL ? 0 : end->peer;
    int result;
    must(sluice_remote_mr_slice(&forms.remotes[end->peer], WORD, 8, &word) == 0, "slice");
    switch (below(3)) {
    case 0:
        return adds ? AT(end, fetch_add, &sge, &word, operand, PATIENCE)
                    : AT(end, compare_swap, &sge, &word, forms.added, operand, PATIENCE);
    case 1:
        result =
            adds ? AT(end, post_fetch_add, &sge, &word, operand, PATIENCE, &handle)
                 : AT(end, post_compare_swap, &sge, &word, forms.added, operand, PATIENCE, &handle);
        return form_finish(end, result, &handle);
    default:
        scope = OF(end, scope_begin, PATIENCE);
        must(scope != NULL, "scope: %s", sluice_last_error());
        result = adds ? sluice_scope_post_fetch_add(scope, peer, &sge, &word, operand, NULL)
                      : sluice_scope_post_compare_swap(scope, peer, &sge, &word, forms.added,
                                                       operand, NULL);
        must(result == 0, "scope: %s", sluice_last_error());
        return sluice_scope_end(scope, NULL);
    }
}

static bool do_atomics(const struct end *end)
{
    for (uint64_t i = below(4); i > 0 && forms.limits.atomics != SLUICE_ATOMICS_NONE; i--) {
        bool adds = below(2) != 0;
        uint64_t operand = below(1000), old;
        if (!well_with(change(end, adds, operand) == 0, end->peer, "atomic operation")) {
            return false;
        }
        form_count(end, adds ? SLUICE_OP_FETCH_ADD : SLUICE_OP_COMPARE_SWAP, true);
        memcpy(&old, forms.memory + OUT, sizeof old);
        must(old == forms.added, "step %u: a word is %lu instead of %lu", forms.step,
             (unsigned long)old, (unsigned long)forms.added);
        forms.added = adds ? old + operand : operand;
    }
    return true;
}

/* Writes to the window of the next rank, and reads it back. */
bool form_touch(void)
{
    struct end ends[2];
    uint32_t next = next_rank(), bytes = 1 + (uint32_t)below(FORM_BYTES);
    struct sluice_sge sge;
    struct sluice_remote_mr remote = form_remote(next, bytes);
    form_ends(ends);
    form_fill(OUT, bytes, sim_rank(), next);
    sge = form_sge(OUT, bytes);
    if (!well_with(move(&ends[SENT], true, &sge, &remote) == 0, next, "write")) {
        return false;
    }
    form_count(&ends[SENT], SLUICE_OP_WRITE, true);
    sge = form_sge(IN, bytes);
    if (!well_with(move(&ends[SENT], false, &sge, &remote) == 0, next, "read")) {
        return false;
    }
    form_count(&ends[SENT], SLUICE_OP_READ, true);
    must(form_holds(IN, bytes, sim_rank(), next), "step %u: bytes of rank %u are wrong", forms.step,
         next);
    return do_atomics(&ends[SENT]);
}

/* Sends two messages, some time apart, and reads memory of a rank that has left the library. */
static bool send_and_read(const struct end *end)
{
    struct sluice_sge out = form_sge(OUT, 1), read = form_sge(IN + 64, 8);
    struct sluice_remote_mr remote = form_remote(end->peer, 8);
    sim_pause(SLUICE_MS(1));
    for (uint32_t i = 0; i < 2; i++) {
        if (!well_with(AT(end, send, &out, 1, PATIENCE) == 0, end->peer, "send")) {
            return false;
        }
        sim_pause((int64_t)below(4000000));
    }
    return well_with(AT(end, read, &read, 1, &remote, PATIENCE) == 0, end->peer,
                     "a read of a rank that is elsewhere");
}

/* Waits for two messages, first for the second one. */
static bool await_both(const struct end *end)
{
    struct sluice_sge in = form_sge(IN, 1);
    struct sluice_completion completion;
    struct sluice_handle handles[2];
    bool well = true;
    for (uint32_t i = 0; i < 2; i++) {
        int result = AT(end, post_receive, &in, 1, PATIENCE, &handles[i]);
        if (!well_with(result == 0, end->peer, "a receive")) {
            return false;
        }
    }
    for (uint32_t i = 2; i-- > 0;) {
        must(OF(end, wait, &handles[i], PATIENCE + SLUICE_S(3), &completion) == 0, "wait: %s",
             sluice_last_error());
        well = well_with(completion.error == 0, end->peer, "a message") && well;
    }
    return well;
}

bool form_elsewhere(void)
{
    bool well = true;
    for (uint32_t i = 1 + (uint32_t)agreed(8); well && i > 0; i--) {
        struct end ends[2] = {{forms.channels[0], next_rank()}, {forms.channels[1], rank_before()}};
        /* Every second rank sends: the others wait, and then stay outside until all are through. */
        well = sim_rank() % 2 != i % 2 || send_and_read(&ends[SENT]);
        well = (rank_before() % 2 != i % 2 || await_both(&ends[RECEIVED])) && well;
        well = all_well(well);
    }
    return well;
}
