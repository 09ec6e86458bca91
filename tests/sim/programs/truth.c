/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "traffic.h"

/* The time to drain, and what a call may take beside. */
#define DRAIN SLUICE_MS(1500)

static const char *const names[] = {"nothing", "send",         "receive",  "write",
                                    "read",    "compare-swap", "fetch-add"};

void spoil(uint32_t peer, enum spoil how)
{
    traffic.truth->spoiled[traffic.rank][peer] |= how;
}

/* Returns why requests to a peer may fail. */
static uint32_t spoiled(uint32_t peer)
{
    return traffic.truth->spoiled[traffic.rank][peer] | traffic.truth->spoiled[peer][traffic.rank];
}

static bool may_fail(uint32_t peer)
{
    uint32_t faults = SIM_KILLED | SIM_CUT | SIM_REFUSED | SIM_DEVICE |
                      (traffic.keepalive ? SIM_STOPPED | SIM_PARTED : 0);
    return spoiled(peer) != 0 || (sim_befell(traffic.rank, peer) & faults) != 0;
}

/* Whether the class is one that what happened to the connection can have. */
static bool fits(const struct work *work, uint32_t class)
{
    uint32_t peer = work->request.peer, why = spoiled(peer);
    if ((sim_befell(traffic.rank, peer) & SIM_DEVICE) != 0) {
        return true;
    }
    switch (class) {
    case SLUICE_CLASS_PEER_LOST:
    case SLUICE_CLASS_CANCELLED:
        return true;
    case SLUICE_CLASS_TIMEOUT:
        /* No device tells who receives that the connection has ended at the other end. */
        return (traffic.truth->spoiled[traffic.rank][peer] & HASTY) != 0 ||
               (strcmp(traffic.limits.transport, "soft") != 0 &&
                work->request.opcode == SLUICE_OP_RECEIVE);
    case SLUICE_CLASS_ACCESS:
        return (why & (BAD_KEY | WITHDRAW)) != 0;
    case SLUICE_CLASS_TRUNCATED:
        return (why & SHORT) != 0;
    default:
        return (sim_befell(traffic.rank, peer) & (SIM_REFUSED | SIM_DEVICE)) != 0;
    }
}

static void check_failure(const struct work *work, const struct sluice_completion *completion)
{
    struct sluice_error error = {.size = sizeof error};
    uint32_t peer = work->request.peer;
    /* A request that came too late to be posted harms nobody. */
    must((sluice_multichannel_peer_error(traffic.all, peer, &error) == 1 &&
          sluice_multichannel_peer_state(traffic.all, peer) == SLUICE_STATE_FAILED) ||
             completion->error_class == SLUICE_CLASS_TIMEOUT ||
             completion->error_class == SLUICE_CLASS_CANCELLED,
         "round %u: %s %u with rank %u failed, and the connection has no error", traffic.round,
         names[work->request.opcode], work->number, peer);
    must(may_fail(peer), "round %u: %s %u with rank %u failed for no reason: %s; first: %s",
         traffic.round, names[work->request.opcode], work->number, peer,
         sluice_status_name(completion->status), error.text);
    must(fits(work, completion->error_class),
         "round %u: %s %u with rank %u failed as %s (%s), which has no cause; first: %s",
         traffic.round, names[work->request.opcode], work->number, peer,
         sluice_error_class_name(completion->error_class), sluice_status_name(completion->status),
         error.text);
}

static void check_receive(const struct work *work, const struct sluice_completion *completion)
{
    uint32_t from = work->request.peer;
    struct message sent = message(from, traffic.rank, work->number);
    const uint8_t *place = traffic.window + place_of(from, work->number);
    traffic.truth->taken[from][traffic.rank][work->number] = traffic.round;
    must(is_filled(sent.writes ? place : work->memory, sent.bytes, sent.key),
         "round %u: message %u of rank %u has wrong bytes", traffic.round, work->number, from);
    must(!sent.second || is_filled(place, sent.bytes, sent.key + 1),
         "round %u: message %u of rank %u came before an earlier write", traffic.round,
         work->number, from);
    if (completion != NULL) {
        uint32_t most = sent.writes && traffic.most_send != 0 ? traffic.most_send : UINT32_MAX;
        uint32_t bytes = sent.bytes == 0 ? 0 : (sent.bytes - 1) % most + 1; /* of the last part */
        uint32_t flags = (sent.flags & SLUICE_IMMEDIATE) | (sent.writes ? SLUICE_WRITTEN : 0);
        must(completion->bytes == bytes && completion->flags == flags &&
                 (flags == 0 || completion->immediate == sent.immediate),
             "round %u: message %u of rank %u has %lu bytes, flags %u and immediate %u",
             traffic.round, work->number, from, (unsigned long)completion->bytes, completion->flags,
             completion->immediate);
    }
}

/* A word of our own in the window of a peer, and a word of rank 0 that all ranks add to. */
static void check_atomic(const struct work *work)
{
    uint32_t peer = work->request.peer;
    uint64_t old;
    memcpy(&old, work->memory, sizeof old);
    if (work->expected == TICKETS) {
        must(old < TICKETS && !traffic.truth->ticket[old], "ticket %lu was drawn twice",
             (unsigned long)old);
        traffic.truth->ticket[old] = true;
        return;
    }
    must(!traffic.known[peer] || old == traffic.word[peer],
         "round %u: %s of rank %u found %lx instead of %lx", traffic.round,
         names[work->request.opcode], peer, (unsigned long)old, (unsigned long)traffic.word[peer]);
    traffic.known[peer] = true;
    traffic.word[peer] = old;
    if (work->request.opcode == SLUICE_OP_FETCH_ADD) {
        traffic.word[peer] += work->request.operand[0];
    } else if (old == work->request.operand[0]) {
        traffic.word[peer] = work->request.operand[1];
    }
}

static void check_success(struct work *work, const struct sluice_completion *completion)
{
    uint32_t peer = work->request.peer;
    switch (work->request.opcode) {
    case SLUICE_OP_RECEIVE:
        check_receive(work, completion);
        return;
    case SLUICE_OP_READ:
        must(is_filled(work->memory, work->bytes, CONSTANT_KEY),
             "round %u: wrong bytes were read from rank %u", traffic.round, peer);
        return;
    case SLUICE_OP_WRITE:
        must(work->number == UNTOLD || sim_is_dead(peer) ||
                 is_filled(traffic.truth->window[peer] + place_of(traffic.rank, work->number),
                           work->bytes, work->key),
             "round %u: write %u is not in the memory of rank %u", traffic.round, work->number,
             peer);
        break;
    case SLUICE_OP_COMPARE_SWAP:
    case SLUICE_OP_FETCH_ADD:
        check_atomic(work);
        return;
    }
    must(work->number == UNTOLD ||
             (work->request.opcode == SLUICE_OP_WRITE &&
              (work->request.flags & SLUICE_IMMEDIATE) == 0) ||
             traffic.truth->receives[traffic.rank][peer] > work->number,
         "round %u: message %u to rank %u succeeded before its receive was posted", traffic.round,
         work->number, peer);
}

static void end(struct work *work)
{
    must(work->accepted && !work->done, "round %u: a %s with rank %u completed %s", traffic.round,
         names[work->request.opcode], work->request.peer,
         work->done ? "twice" : "that was not accepted");
    work->done = true;
}

void complete(struct work *work, const struct sluice_completion *completion)
{
    int64_t late = sim_own_time() - (work->due > traffic.entered ? work->due : traffic.entered);
    sim_note("%s %u with rank %u: %s", names[work->request.opcode], work->number,
             work->request.peer,
             completion != NULL ? sluice_status_name(completion->status) : "success");
    end(work);
    must(late < DRAIN || (sim_befell(traffic.rank, traffic.rank) & SIM_STOPPED) != 0,
         "round %u: a %s with rank %u completed %ld ms after its deadline", traffic.round,
         names[work->request.opcode], work->request.peer, (long)(late / 1000000));
    if (completion != NULL && completion->error != 0) {
        check_failure(work, completion);
        traffic.stopped[work->request.peer] = true;
        traffic.known[work->request.peer] = false;
    } else {
        must(completion == NULL || (completion->peer == work->request.peer &&
                                    completion->opcode == work->request.opcode),
             "a completion is of another request");
        must(!work->bad, "round %u: a %s succeeded that is wrong", traffic.round,
             names[work->request.opcode]);
        work->succeeded = true;
        check_success(work, completion);
    }
    if (work->request.opcode == SLUICE_OP_SEND || work->request.opcode == SLUICE_OP_WRITE) {
        /* A late look at the bytes, which are not needed any more, then shows. */
        memset(work->memory, 0xee, work->bytes);
    }
}

void refuse(struct work *work, int error)
{
    uint32_t peer = work->request.peer;
    must(!work->accepted && !work->done, "a request was refused that was accepted");
    must(may_fail(peer) || (sim_befell(traffic.rank, traffic.rank) & SIM_REFUSED) != 0,
         "round %u: %s with rank %u was refused: error %d: %s", traffic.round,
         names[work->request.opcode], peer, -error, sluice_last_error());
    work->done = true;
    traffic.stopped[peer] = true;
    traffic.known[peer] = false;
}

void leave_untold(struct work *work)
{
    end(work);
    traffic.known[work->request.peer] = false;
    if (work->request.opcode == SLUICE_OP_RECEIVE) {
        traffic.truth->taken[work->request.peer][traffic.rank][work->number] = UNTOLD;
    } else if (work->expected == TICKETS) {
        memcpy(&work->key, work->memory, sizeof work->key);
    }
}

void take(const struct sluice_completion *completion)
{
    if (completion->user_data >> 32 == traffic.round) {
        complete(&traffic.work[(uint32_t)completion->user_data], completion);
    }
}

void check_list(int result, const struct sluice_completion *completions, uint32_t count)
{
    int first = 0, real = 0;
    for (uint32_t i = 0; i < count; i++) {
        int error = completions[i].error;
        first = first == 0 ? error : first;
        real = real == 0 && error != -ECANCELED && error != -ENOTCONN ? error : real;
    }
    must(result == (real != 0 ? real : first), "a list returned %d, and its first failure is %d",
         result, real != 0 ? real : first);
}
