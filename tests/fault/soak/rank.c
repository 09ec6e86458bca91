/* SPDX-License-Identifier: MIT */
/* A process: its life, and the messages of the broker. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../support/heap.h"
#include "soak.h"

struct soak soak;

const char *const call_names[CALLS] = {
#define SOAK_NAME(name, ...) "sluice_" #name,
    FORM_ROWS(SOAK_NAME) SOAK_CALLS(SOAK_NAME)
#undef SOAK_NAME
};

/* The time within which the broker must confirm a kill. */
#define SUSPICION SLUICE_S(20)

void soak_fail(const char *file, int line, const char *format, ...)
{
    char what[900];
    char before[sizeof(soak.ledger->failure)];
    const char *slash = strrchr(file, '/');
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    snprintf(before, sizeof(before), "%s", soak.ledger->failure);
    snprintf(soak.ledger->failure, sizeof(soak.ledger->failure), "%s:%d: %.900s%s%.400s",
             slash ? slash + 1 : file, line, what, before[0] ? "; before: " : "", before);
    _exit(EXIT_FAILURE);
}

void beat(void)
{
    atomic_fetch_add_explicit(&soak.ledger->beats, 1, memory_order_relaxed);
}

void set_task(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(soak.ledger->task, sizeof(soak.ledger->task), format, arguments);
    va_end(arguments);
}

void aim(uint32_t peer, uint32_t count)
{
    soak.ledger->peer = peer;
    soak.ledger->count = count;
}

void begin_call(enum call call)
{
    struct ledger *ledger = soak.ledger;
    ledger->call = call;
    ledger->since = clock_now();
    ledger->inside = 1;
    ledger->calls[call]++;
}

void end_call(void)
{
    soak.ledger->inside = 0;
}

int call_form(const struct form *form, const struct form_call *call)
{
    begin_call((enum call)(form - forms));
    int result = form->call(call);
    end_call();
    return result;
}

bool is_up(uint32_t rank)
{
    return soak.peers[rank].state == PEER_UP;
}

bool is_verbs(void)
{
    return strcmp(soak.options.device, "soft") != 0;
}

void say_message(const struct message *message)
{
    if (send(soak.broker, message, sizeof(*message), MSG_NOSIGNAL) != sizeof(*message)) {
        _exit(EXIT_FAILURE);
    }
}

void send_report(uint32_t word, uint32_t peer, uint64_t id)
{
    struct message message = {.word = word, .peer = peer, .id = id};
    say_message(&message);
}

static void *wake_at_times(void *argument)
{
    struct rng rng = {soak.options.seed + soak.index};
    (void)argument;
    while (!atomic_load(&soak.closing)) {
        sluice_multichannel_wake(soak.mail.mc);
        poll(NULL, 0, 1 + (int)random_below(&rng, 100));
    }
    return NULL;
}

/* A census. */

static int64_t read_status(const char *name)
{
    char line[256];
    long long value = -1;
    FILE *file = fopen("/proc/self/status", "re");
    expect(file, "%s", strerror(errno));
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = atoll(line + strlen(name) + 1);
        }
    }
    fclose(file);
    return value;
}

static void report_count(uint64_t id)
{
    struct message message = {.word = SAY_COUNTED, .id = id};
    struct count *count = &message.count;
    count->heap = (int64_t)(heap_bytes() + mapped_heap_bytes());
    /* Shared memory counts as resident as far as it was touched, so it is left out. */
    count->resident =
        (read_status("VmRSS:") - read_status("RssShmem:")) * 1024 - (int64_t)soak.big_mapped;
    count->threads = (int32_t)read_status("Threads:");
    count->fds = count_fds() - (int32_t)soak.big_allocs * soak.alloc_fds;
    count_words(count);
    say_message(&message);
}

/* At least the requests seen to succeed have succeeded, and at most those that were made. */
static void compare_counters(void)
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    uint64_t ended = 0;
    if (CALL(multichannel_counters, soak.mail.mc, &counters) != 0) {
        give_up("%s", sluice_last_error());
    }
    for (uint32_t i = 0; i < COUNT(counters.requests); i++) {
        ended += counters.requests[i];
    }
    expect(ended >= soak.succeeded && ended <= soak.accepted,
           "%llu requests have succeeded, the counters say %llu, of %llu",
           (unsigned long long)soak.succeeded, (unsigned long long)ended,
           (unsigned long long)soak.accepted);
}

static void take_census(uint64_t id)
{
    set_task("census %llu", (unsigned long long)id);
    soak.paused = true;
    make_quiet(SLUICE_MAX_PEERS);
    compare_counters();
    malloc_trim(0);
    report_count(id);
}

/* Handles a message of the broker. */

static void note_loss(int64_t time)
{
    uint32_t place = 0;
    while (place + 1 < LOSS_TIMES && time / 1000 >> place != 0) {
        place++;
    }
    soak.ledger->losses[place]++;
    if (time > soak.ledger->longest_loss) {
        soak.ledger->longest_loss = time;
    }
}

static bool knows_loss(uint32_t rank)
{
    struct peer *peer = &soak.peers[rank];
    if (CALL(multichannel_peer_state, soak.mail.mc, rank) != SLUICE_STATE_FAILED) {
        return false;
    }
    note_loss(clock_now() - peer->killed_at);
    peer->killed_at = 0;
    return true;
}

/* An emulated device notices a death only when it sends. */
static void check_losses(void)
{
    for (uint32_t i = 0; i < soak.size && !is_verbs(); i++) {
        struct peer *peer = &soak.peers[i];
        if (peer->killed_at == 0 || knows_loss(i) || clock_now() - peer->killed_at < LOSS_TIME) {
            continue;
        }
        /* This rank may itself have been stopped for that time. */
        look(&soak.mail);
        expect(peer->killed_at == 0 || knows_loss(i),
               "rank %u is not known to be dead %lld ms after it was killed", i,
               (long long)(clock_now() - peer->killed_at) / 1000000);
    }
}

/* The rank lives again. */
static void forget_loss(uint32_t rank)
{
    struct peer *peer = &soak.peers[rank];
    if (peer->killed_at != 0 && !is_verbs() && !knows_loss(rank)) {
        soak.ledger->met_again++;
    }
    peer->killed_at = 0;
}

static void peer_down(uint32_t rank, int64_t when)
{
    struct peer *peer = &soak.peers[rank];
    if (peer->state == PEER_UP || peer->state == PEER_QUIET) {
        peer->killed_at = when;
    } else if (peer->state == PEER_SUSPECT) {
        note_loss(peer->failed_at - when);
    }
    expect(peer->state != PEER_SUSPECT || peer->failed_at >= when,
           "rank %u was killed %lld us after an operation with it had failed", rank,
           (long long)(when - peer->failed_at) / 1000);
    if (peer->state == PEER_SUSPECT) {
        soak.ledger->failure[0] = '\0';
    }
    peer->state = PEER_ABSENT;
}

static void part(uint32_t rank, uint64_t id)
{
    expect(soak.peers[rank].state == PEER_UP || soak.peers[rank].state == PEER_SUSPECT,
           "rank %u is in state %d", rank, soak.peers[rank].state);
    set_task("parting from rank %u", rank);
    make_quiet(rank);
    if (is_up(rank)) {
        soak.peers[rank].state = PEER_QUIET;
    }
    send_report(SAY_DONE, rank, id);
    set_task("its mail");
}

static void take_message(const struct message *message)
{
    switch (message->word) {
    case SAY_MEET:
        forget_loss(message->peer);
        meet_peer(message->peer, message->id);
        break;
    case SAY_OFFER:
        if (message->id == soak.peers[message->peer].meeting) {
            take_offer(message->peer, &message->offer);
        }
        break;
    case SAY_GO:
        go_with_peer(message->peer);
        break;
    case SAY_QUIET:
        part(message->peer, message->id);
        break;
    case SAY_DOWN:
        peer_down(message->peer, message->when);
        break;
    case SAY_ASSEMBLE:
        assemble(message->id, message->mask);
        send_report(SAY_DONE, 0, message->id);
        set_task("its mail");
        break;
    case SAY_CENSUS:
        take_census(message->id);
        break;
    case SAY_COMPARE:
        compare_words(message);
        send_report(SAY_DONE, 0, message->id);
        break;
    case SAY_GO_ON:
        soak.paused = false;
        set_task("its mail");
        break;
    case SAY_FINISH:
        set_task("its end");
        soak.paused = true;
        make_quiet(SLUICE_MAX_PEERS);
        send_report(SAY_DONE, 0, message->id);
        break;
    case SAY_CLOSE:
        atomic_store(&soak.closing, true);
        break;
    default:
        give_up("the broker says %u", message->word);
    }
}

/* Handles a message of the broker. Returns whether there was one. */
static bool listen_once(void)
{
    struct message message;
    ssize_t got = recv(soak.broker, &message, sizeof(message), MSG_DONTWAIT);
    if (got == sizeof(message)) {
        beat();
        take_message(&message);
        return true;
    }
    if (got >= 0) {
        _exit(EXIT_FAILURE); /* the parent is gone */
    }
    return false;
}

static void check_suspects(void)
{
    for (uint32_t i = 0; i < soak.size; i++) {
        const struct peer *peer = &soak.peers[i];
        expect(peer->state != PEER_SUSPECT || clock_now() - peer->failed_at < SUSPICION,
               "rank %u was not killed", i);
    }
}

static void live(void)
{
    set_task("its start");
    while (!atomic_load(&soak.closing)) {
        soak.ledger->step = ++soak.step;
        beat();
        while (listen_once()) {
        }
        check_suspects();
        check_losses();
        serve_mail();
        if (soak.paused) {
            look(&soak.mail);
        } else {
            mail_step();
            if (one_in(&soak.rng, 2)) {
                look(&soak.mail);
            }
        }
    }
}

/* Requires that the library closed all descriptors that it opened. */
static void check_leftovers(int fds)
{
    int left = settle_fds(fds);
    expect(left == fds, "%d fds at the end, %d at the start", left, fds);
}

void run_rank(void)
{
    pthread_t waker;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    soak.rng.state = mix_with(soak.options.seed, (uint64_t)soak.epoch << 8 | soak.index);
    int fds = count_fds();
    open_rank();
    expect(pthread_create(&waker, NULL, wake_at_times, NULL) == 0, "no thread");
    live();
    pthread_join(waker, NULL);
    close_rank();
    check_leftovers(fds);
    exit(EXIT_SUCCESS); /* not _exit(): the sanitizers look for leaks at exit */
}
