/* SPDX-License-Identifier: MIT */
/* Lists of requests: the checks before anything is posted. */
#include "config.h"

#include "engine/request/check.h"

#include "engine/request/message.h"

/*
 * Programs have arrays of these structs, so their sizes are fixed: later fields replace reserved
 * ones.
 */
_Static_assert(sizeof(struct sluice_request) == 128, "the stride of lists of requests");
_Static_assert(sizeof(struct sluice_completion) == 64, "the stride of lists of completions");
_Static_assert(sizeof(struct sluice_handle) == 32, "the stride of lists of handles");
_Static_assert(sizeof(struct sluice_remote_mr) == 32, "part of a request");
_Static_assert(sizeof(struct sluice_peer_remote_mr) == 40, "the stride of lists of regions");
_Static_assert(sizeof(struct sluice_layout) == 48, "part of struct sluice_blocks, twice");

static int check_opcode(const struct slu_item *item, uint32_t i)
{
    uint32_t given = item->request->opcode;

    if (item->opcode == SLUICE_OP_NONE || item->opcode >= SLU_OPCODES)
        return slu_misuse(EINVAL, "request %u has opcode %u, which is no operation", i,
                          item->opcode);
    if (given != SLUICE_OP_NONE && given != item->opcode)
        return slu_misuse(EINVAL, "request %u has opcode %u (%s) in a list of %s", i, given,
                          slu_opcode_name(given), slu_opcode_name(item->opcode));
    return 0;
}

/* Returns whether reserved fields are 0. Later versions may use them. */
static inline bool is_clean(const struct sluice_request *request)
{
    return (request->reserved | request->reserved2[0] | request->reserved2[1]) == 0;
}

/* Checks that reserved fields are 0. A program that sets one expects a later version. */
static int check_reserved(const struct sluice_request *request, uint32_t i)
{
    if (is_clean(request))
        return 0;
    if (request->reserved != 0)
        return slu_misuse(EINVAL, "request %u: reserved is %u, must be 0", i, request->reserved);
    return slu_misuse(EINVAL, "request %u: reserved2 is {%llu, %llu}, must be 0", i,
                      (unsigned long long)request->reserved2[0],
                      (unsigned long long)request->reserved2[1]);
}

/* Returns whether the operands of a request suit its operation. */
static inline bool operands_fit(const struct sluice_request *request, uint32_t opcode)
{
    return (request->operand[0] | request->operand[1]) == 0 || opcode == SLUICE_OP_COMPARE_SWAP ||
           (opcode == SLUICE_OP_FETCH_ADD && request->operand[1] == 0);
}

static int check_flags(const struct slu_engine *engine, const struct slu_item *item, uint32_t i)
{
    const struct sluice_request *request = item->request;
    uint32_t wrong = request->flags & ~(slu_opcode_flags[item->opcode] | SLUICE_PLAIN_MEMORY);

    if (wrong != 0)
        return slu_misuse(EINVAL, "request %u has flags %#x that a %s cannot have", i, wrong,
                          slu_opcode_name(item->opcode));
    if ((request->flags & engine->lacking_flags) != 0)
        return slu_fail(EOPNOTSUPP,
                        "request %u: device %s, which is iWARP, sends no immediate with a %s: put "
                        "the value into the message",
                        i, engine->pd->context->transport->device, slu_opcode_name(item->opcode));
    if (!operands_fit(request, item->opcode))
        return slu_misuse(EINVAL, "request %u: operand is {%llu, %llu}, a %s has %s", i,
                          (unsigned long long)request->operand[0],
                          (unsigned long long)request->operand[1], slu_opcode_name(item->opcode),
                          item->opcode == SLUICE_OP_FETCH_ADD ? "one, the second must be 0"
                                                              : "none, both must be 0");
    if ((request->flags & SLUICE_INLINE) != 0 && item->bytes > engine->attr.max_inline)
        return slu_misuse(E2BIG, "request %u is inline with %llu byte%s, max_inline is %u", i,
                          (unsigned long long)item->bytes, SLU_S(item->bytes),
                          engine->attr.max_inline);
    return 0;
}

static int check_sges(const struct slu_engine *engine, const struct sluice_request *request,
                      uint32_t opcode, uint32_t i)
{
    if (request->sge_count > engine->attr.max_sge)
        return slu_misuse(EINVAL, "request %u has %u SGEs, max_sge is %u", i, request->sge_count,
                          engine->attr.max_sge);
    /* The device's limit may be less than what any attribute asks for. */
    if (opcode == SLUICE_OP_READ && request->sge_count > engine->attr.max_read_sge)
        return slu_fail(
            EINVAL, "request %u is a read with %u SGEs, max_read_sge of device %s is %u", i,
            request->sge_count, engine->pd->context->transport->device, engine->attr.max_read_sge);
    if (request->sges != NULL && request->sge_count == 0)
        return slu_misuse(EINVAL,
                          "request %u has a list and sge_count 0: for a message of no bytes sges "
                          "is NULL",
                          i);
    if (request->sges == NULL && request->sge_count > 1)
        return slu_misuse(EINVAL, "request %u has %u SGEs and a NULL list", i, request->sge_count);
    if (request->sges == NULL && request->sge_count == 1 && slu_sge_is_empty(&request->sge))
        return slu_misuse(EINVAL,
                          "request %u: sges must not be NULL for sge_count 1 (or, in a struct "
                          "sluice_request, sge not all zeros): was it forgotten?",
                          i);
    /* This would succeed as a message of no bytes, and move nothing. */
    if (request->sges == NULL && request->sge_count == 0 && !slu_sge_is_empty(&request->sge))
        return slu_misuse(
            EINVAL, "request %u has an element in it, sge, and sge_count 0: was 1 forgotten?", i);
    return 0;
}

static int check_length(const struct slu_engine *engine, const struct slu_item *item, uint32_t i)
{
    if (item->bytes > UINT32_MAX)
        return slu_misuse(E2BIG, "request %u has %llu bytes, a message has at most 2^32 - 1", i,
                          (unsigned long long)item->bytes);
    if (item->opcode == SLUICE_OP_SEND && item->bytes > engine->attr.max_message)
        return slu_fail(E2BIG, "request %u sends %llu bytes, max_message is %llu", i,
                        (unsigned long long)item->bytes,
                        (unsigned long long)engine->attr.max_message);
    return 0;
}

static int check_remote(const struct slu_item *item, uint32_t i)
{
    const struct sluice_remote_mr *remote = item->remote;

    if (item->opcode < SLUICE_OP_WRITE)
        return 0;
    if (!slu_remote_is_clean(remote))
        return slu_misuse(EINVAL, "request %u: remote.reserved is {%u, %u, %u}, must be 0", i,
                          remote->reserved[0], remote->reserved[1], remote->reserved[2]);
    if (item->bytes > remote->length)
        return slu_fail(ERANGE, "request %u: a %s of %llu bytes, the remote range has %llu", i,
                        slu_opcode_name(item->opcode), (unsigned long long)item->bytes,
                        (unsigned long long)remote->length);
    if (remote->length > 0 && remote->addr + (remote->length - 1) < remote->addr)
        return slu_fail(ERANGE, "request %u: the remote range of %llu bytes at %#llx wraps", i,
                        (unsigned long long)remote->length, (unsigned long long)remote->addr);
    return 0;
}

static inline bool has_atomics(const struct slu_engine *engine)
{
    return engine->pd->context->transport->atomics != SLUICE_ATOMICS_NONE;
}

/*
 * Checks an atomic operation: the peer's word and the place for its old value have 8 bytes each,
 * aligned.
 */
static int check_atomic(const struct slu_engine *engine, const struct slu_item *item, uint32_t i)
{
    const struct sluice_request *request = item->request;
    const char *name = slu_opcode_name(item->opcode);

    if (!slu_opcode_is_atomic(item->opcode))
        return 0;
    if (!has_atomics(engine))
        return slu_fail(EOPNOTSUPP, "request %u: device %s cannot do a %s", i,
                        engine->pd->context->transport->device, name);
    if (request->sge_count != 1)
        return slu_misuse(EINVAL, "request %u: a %s has one SGE for the old value, not %u", i, name,
                          request->sge_count);
    if (item->sges[0].length != 8)
        return slu_misuse(EINVAL, "request %u: the SGE of a %s has 8 bytes, not %u", i, name,
                          item->sges[0].length);
    if (item->sges[0].addr % 8 != 0)
        return slu_misuse(EINVAL, "request %u: the SGE of a %s is at %#llx, not a multiple of 8", i,
                          name, (unsigned long long)item->sges[0].addr);
    if (request->remote.addr % 8 != 0)
        return slu_fail(EINVAL, "request %u: remote.addr of a %s is %#llx, not a multiple of 8", i,
                        name, (unsigned long long)request->remote.addr);
    return 0;
}

static int no_such_peer(const struct slu_engine *engine, uint32_t peer, uint32_t i)
{
    if (engine->peer_count == 0)
        return slu_misuse(EINVAL, "request %u names peer %u, there are none yet", i, peer);
    return slu_misuse(EINVAL, "request %u names peer %u, there are peers 0..%u", i, peer,
                      engine->peer_count - 1);
}

/* Returns whether a tagged region belongs to an earlier peer of the index. */
static inline bool is_stale(const struct slu_engine *engine,
                            const struct sluice_peer_remote_mr *remote)
{
    return remote->generation != engine->peers[remote->peer].name.index_generation;
}

static int fail_stale(const struct slu_engine *engine, const struct sluice_peer_remote_mr *remote,
                      uint32_t i)
{
    return slu_fail(ESTALE,
                    "remotes[%u] is of generation %u of index %u, which is at %u: that region was "
                    "of another peer, or sluice_multichannel_peer_remote() did not make it",
                    i, remote->generation, remote->peer,
                    engine->peers[remote->peer].name.index_generation);
}

/*
 * Checks a request with blocks. Unless it is a message, this sets its bytes to 0, so that later
 * checks of the length pass.
 */
static int check_blocks(struct slu_item *item, uint32_t i)
{
    int error = slu_blocks_check(item, i);

    item->bytes = error == 0 && slu_item_is_gathered(item) ? slu_blocks_bytes(item->request) : 0;
    return error;
}

/* Checks one item. The check of the peer's state, when it is posted, finds a removed peer. */
static int check_item(const struct slu_engine *engine, const struct slu_source *source, uint32_t i)
{
    struct slu_item item;
    int error;

    /* The SGE list must be known to be good before slu_source_item() sums it. */
    error = check_sges(engine, slu_source_request(source, i), slu_source_opcode(source, i), i);
    if (error < 0)
        return error;
    slu_source_item(source, i, &item);
    if (item.peer >= engine->peer_count)
        return no_such_peer(engine, item.peer, i);
    if (source->remotes != NULL && is_stale(engine, &source->remotes[i]))
        return fail_stale(engine, &source->remotes[i], i);
    error = check_opcode(&item, i);
    if (error == 0)
        error = check_reserved(item.request, i);
    if (error == 0 && item.request->blocks != NULL)
        error = check_blocks(&item, i);
    if (error == 0)
        error = check_flags(engine, &item, i);
    if (error == 0)
        error = check_length(engine, &item, i);
    if (error == 0 && slu_item_is_gathered(&item))
        error = slu_message_check(engine, &item, i);
    if (error == 0)
        error = check_atomic(engine, &item, i);
    if (error == 0)
        error = check_remote(&item, i);
    if (error == 0 && (item.request->flags & SLUICE_PLAIN_MEMORY) != 0)
        error = slu_borrow_check(engine, &item, i);
    return error;
}

static __attribute__((noinline)) int refuse_receive(const struct slu_engine *engine)
{
    if (engine->arrivals == NULL)
        return slu_misuse(EINVAL, "receives are those of the pool for all peers "
                                  "(sluice_channel_attr.receive_pool): post them by "
                                  "sluice_multichannel_post_receive_any()");
    return slu_misuse(EINVAL, "receives are the library's own where arrivals are counted "
                              "(sluice_channel_attr.arrival_tags)");
}

/* Checks one receive for the pool. Its peer is ignored. */
static int check_shared(const struct slu_engine *engine, const struct slu_source *source,
                        uint32_t i)
{
    struct slu_item item;
    int error = check_sges(engine, slu_source_request(source, i), SLUICE_OP_RECEIVE, i);

    if (error < 0)
        return error;
    slu_source_item(source, i, &item);
    error = check_opcode(&item, i);
    if (error == 0)
        error = check_reserved(item.request, i);
    if (error == 0 && item.request->blocks != NULL)
        error = slu_misuse(EINVAL, "request %u has blocks: a receive of the pool has none", i);
    if (error == 0)
        error = check_flags(engine, &item, i);
    if (error == 0)
        error = check_length(engine, &item, i);
    if (error == 0 && (item.request->flags & SLUICE_PLAIN_MEMORY) != 0)
        error = slu_borrow_check(engine, &item, i);
    return error;
}

int slu_shared_check(const struct slu_engine *engine, const struct slu_source *source)
{
    uint32_t flags = 0;
    int error = 0;

    if (engine->arrivals != NULL)
        return refuse_receive(engine);
    if (engine->pool == NULL)
        return slu_misuse(EINVAL, "there is no pool of receives: sluice_channel_attr.receive_pool "
                                  "is 0");
    if (source->count > 0 && source->lists[0] == NULL)
        return slu_misuse(EINVAL, "a list of %u request%s is NULL", source->count,
                          SLU_S(source->count));
    for (uint32_t i = 0; i < source->count && error == 0; i++) {
        error = check_shared(engine, source, i);
        flags |= source->lists[0][i].flags;
    }
    return error == 0 && (flags & SLUICE_PLAIN_MEMORY) != 0 ? SLU_NAMES_PLAIN : error;
}

/* Checks a source as a whole, not its items. */
static int check_lists(const struct slu_source *source, int64_t deadline)
{
    if (deadline < 0)
        return slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    if (source->count == 0)
        return 0;
    if (source->multicast && source->peers == NULL && source->remotes == NULL)
        return slu_misuse(EINVAL, "a list of %u %s is NULL", source->count,
                          source->opcodes[0] == SLUICE_OP_SEND ? "peers" : "remote regions");
    for (int list = 0; list < 2; list++) {
        uint32_t count = source->multicast ? 1 : source->counts[list];

        if (source->counts[list] > 0 && source->lists[list] == NULL)
            return slu_misuse(EINVAL, "a list of %u request%s is NULL", count, SLU_S(count));
    }
    return 0;
}

/* Counts the requests at the beginning of a list that take the fast path with one operation. */
static SLU_INLINE uint32_t count_usual(const struct slu_engine *engine,
                                       const struct sluice_request *requests, uint32_t count,
                                       uint32_t opcode)
{
    uint32_t given = requests->opcode;
    uint32_t i = 0;

    if (opcode - SLUICE_OP_SEND > SLUICE_OP_READ - SLUICE_OP_SEND ||
        (given != opcode && given != SLUICE_OP_NONE))
        return 0;
    while (i < count && slu_request_is_usual(engine, &requests[i], given, opcode))
        i++;
    return i;
}

/* Checks the items of one list from one index on, each by itself. */
static __attribute__((noinline)) int check_rest(const struct slu_engine *engine,
                                                const struct slu_source *source, int list,
                                                uint32_t from, uint32_t first)
{
    const struct sluice_request *requests = source->lists[list];
    uint32_t named = source->opcodes[list];
    uint32_t flags = 0;
    int queues = 0;

    for (uint32_t i = from; i < source->counts[list]; i++) {
        uint32_t opcode = named != SLUICE_OP_NONE ? named : requests[i].opcode;

        /* The request may still be valid, on the slow path. */
        if (SLU_UNLIKELY(!slu_request_is_plain(engine, &requests[i], opcode))) {
            int error = check_item(engine, source, first + i);

            if (error < 0)
                return error;
            queues |= requests[i].blocks != NULL ? SLU_BLOCKY : 0;
            flags |= requests[i].flags;
        }
        queues |= 1 << slu_opcode_queue(opcode);
    }
    return (flags & SLUICE_PLAIN_MEMORY) == 0 ? queues : SLU_NAMES_PLAIN;
}

/* Checks the items of one list. first is the index of its first item in the source. */
static SLU_INLINE int check_list(const struct slu_engine *engine, const struct slu_source *source,
                                 int list, uint32_t first)
{
    uint32_t named = source->opcodes[list];
    uint32_t opcode = named != SLUICE_OP_NONE ? named : source->lists[list]->opcode;
    uint32_t usual = count_usual(engine, source->lists[list], source->counts[list], opcode);
    int queues = opcode == SLUICE_OP_RECEIVE ? 1 << SLU_RECEIVE_QUEUE : 1 << SLU_SEND_QUEUE;

    if (SLU_LIKELY(usual == source->counts[list])) {
        queues |= SLU_ALIKE;
    } else {
        int more = check_rest(engine, source, list, usual, first);

        if (more < 0)
            return more;
        queues |= more;
    }
    if (SLU_UNLIKELY((queues & 1 << SLU_RECEIVE_QUEUE) != 0 && engine->no_receives))
        return refuse_receive(engine);
    return queues;
}

/* Returns whether a target of a multicast is valid for a request of that many bytes. */
static inline bool is_good_aim(const struct slu_engine *engine, const struct slu_source *source,
                               uint32_t i, uint64_t bytes)
{
    const struct sluice_peer_remote_mr *remote;

    if (source->remotes == NULL)
        return source->peers[i] < engine->peer_count;
    remote = &source->remotes[i];
    return remote->peer < engine->peer_count && !is_stale(engine, remote) &&
           slu_remote_holds(&remote->remote, bytes);
}

/*
 * Checks a multicast: one request and its targets. The peer and remote region in the request are
 * ignored.
 */
static int check_multicast(const struct slu_engine *engine, const struct slu_source *source)
{
    const struct sluice_request *request = source->lists[0];
    uint32_t given = request->opcode;
    bool usual = (given == source->opcodes[0] || given == SLUICE_OP_NONE) &&
                 slu_request_is_usual(engine, request, given, SLUICE_OP_SEND);
    int error = usual ? 0 : check_item(engine, source, 0);
    bool blocky = request->blocks != NULL;
    uint64_t bytes;

    if (error < 0)
        return error;
    bytes = slu_sge_bytes(slu_request_sges(request), request->sge_count);
    for (uint32_t i = 0; i < source->count && error == 0; i++)
        if (SLU_UNLIKELY(blocky || !is_good_aim(engine, source, i, bytes)))
            error = check_item(engine, source, i);
    if (error < 0)
        return error;
    if (usual)
        return 1 << SLU_SEND_QUEUE | SLU_ALIKE;
    if ((request->flags & SLUICE_PLAIN_MEMORY) != 0)
        return SLU_NAMES_PLAIN;
    return 1 << SLU_SEND_QUEUE | (blocky ? SLU_BLOCKY : 0);
}

/*
 * Checks the second list if the first names plain memory: all must be valid before any is
 * registered. Returns the error of either list, or first.
 */
static SLU_COLD int check_second(const struct slu_engine *engine, const struct slu_source *source,
                                 int first)
{
    int second = first;

    if (first == SLU_NAMES_PLAIN)
        second = check_list(engine, source, 1, source->counts[0]);
    return second < 0 ? second : first;
}

/* Checks a source that is not a single list, or that failed the first test. */
static __attribute__((noinline)) int
check_unusual(const struct slu_engine *engine, const struct slu_source *source, int64_t deadline)
{
    int queues = check_lists(source, deadline);
    int more;

    if (queues < 0 || source->count == 0)
        return queues;
    if (source->multicast)
        return check_multicast(engine, source);
    queues = source->counts[0] > 0 ? check_list(engine, source, 0, 0) : SLU_ALIKE;
    if (queues < 0)
        return check_second(engine, source, queues);
    more = check_list(engine, source, 1, source->counts[0]);
    if (more < 0)
        return more;
    return ((queues | more) & ~SLU_ALIKE) | (queues & more & SLU_ALIKE);
}

int slu_source_check(const struct slu_engine *engine, const struct slu_source *source,
                     int64_t deadline)
{
    if (SLU_UNLIKELY(deadline < 0 || source->counts[0] == 0 || source->lists[0] == NULL ||
                     source->counts[1] != 0 || source->multicast))
        return check_unusual(engine, source, deadline);
    return check_list(engine, source, 0, 0);
}
