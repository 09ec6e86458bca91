/* SPDX-License-Identifier: MIT */
/*
 * The parent, which never calls the library. It leads one affair after the other: all pairs without
 * a connection meet, or the ranks assemble, or are counted, or a pair parts; an affair is over when
 * all live ranks have reported. Kills come at any time, and an affair no longer waits for the
 * report of a killed rank.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker.h"

/* A pair of ranks, by the lower one and the higher one. */
enum pair_state { PAIR_NONE = 0, PAIR_MEETING, PAIR_UP };

struct pair {
    enum pair_state state;
    uint64_t meeting;
    uint32_t met; /* how many have reported it */
};

enum affair {
    AFFAIR_NONE = 0,
    AFFAIR_MEET,
    AFFAIR_ASSEMBLY,
    AFFAIR_COUNT,
    AFFAIR_COMPARE,
    AFFAIR_PART,
    AFFAIR_FINISH,
    AFFAIR_CLOSE
};

static const char *const affair_names[] = {"nothing",      "meetings",  "an assembly", "a census",
                                           "a comparison", "a parting", "the end",     "the close"};

struct broker {
    const struct options *options;
    struct rng rng;
    struct pair pairs[RANKS_MAX][RANKS_MAX];
    enum affair affair;
    int64_t begun;
    uint64_t id;
    uint32_t waiting; /* mask of ranks that have not reported the end */
    struct message sums;
    uint32_t counted; /* mask of ranks whose counts are in the sums */
    bool killed;      /* a rank, since the last comparison */
    uint32_t meetings_due;
    int64_t next_kill, next_census, end;
    uint64_t kills, assemblies, partings, censuses, meetings;
};

static struct broker broker;
struct member members[RANKS_MAX];
bool broken;

static struct pair *pair_of(uint32_t one, uint32_t other)
{
    return one < other ? &broker.pairs[one][other] : &broker.pairs[other][one];
}

static uint32_t live_mask(void)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < broker.options->ranks; i++) {
        mask |= (uint32_t)(members[i].pid != 0) << i;
    }
    return mask;
}

static void notify_rank(uint32_t rank, const struct message *message)
{
    if (members[rank].pid != 0) {
        send(members[rank].socket, message, sizeof(*message), MSG_NOSIGNAL);
    }
}

static void tell_all(uint32_t mask, struct message message)
{
    for (uint32_t i = 0; i < broker.options->ranks; i++) {
        if (mask >> i & 1) {
            notify_rank(i, &message);
        }
    }
}

static void begin(enum affair affair, uint32_t waiting)
{
    broker.affair = affair;
    broker.begun = clock_now();
    broker.waiting = waiting;
}

/* Processes. */

static void start(uint32_t rank)
{
    struct member *member = &members[rank];
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
        complain("socketpair: %s", strerror(errno));
        return;
    }
    member->epoch++;
    memset(member->ledger->failure, 0, sizeof(member->ledger->failure));
    pid_t pid = fork();
    if (pid == 0) {
        close(sockets[0]);
        for (uint32_t i = 0; i < broker.options->ranks; i++) {
            if (members[i].pid != 0) {
                close(members[i].socket);
            }
        }
        soak.options = *broker.options;
        soak.index = rank;
        soak.size = broker.options->ranks;
        soak.epoch = member->epoch;
        soak.broker = sockets[1];
        soak.ledger = member->ledger;
        run_rank();
    }
    close(sockets[1]);
    if (pid < 0) {
        close(sockets[0]);
        complain("fork: %s", strerror(errno));
        return;
    }
    member->pid = pid;
    member->socket = sockets[0];
    member->beats = 0;
    member->seen = clock_now();
    begin_life(member);
}

/* No longer waits for reports of this rank. */
static void forget(uint32_t rank)
{
    broker.waiting &= ~(UINT32_C(1) << rank);
    for (uint32_t i = 0; i < broker.options->ranks; i++) {
        struct pair *pair = pair_of(rank, i);
        if (pair->state == PAIR_MEETING) {
            broker.meetings_due--;
        }
        *pair = (struct pair){PAIR_NONE, 0, 0};
    }
}

static void collect(uint32_t rank)
{
    struct member *member = &members[rank];
    int status = 0;
    while (waitpid(member->pid, &status, 0) < 0 && errno == EINTR) {
    }
    member->pid = 0;
    close(member->socket);
    if (member->killed ||
        (broker.affair == AFFAIR_CLOSE && WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
        return;
    }
    if (WIFSIGNALED(status)) {
        complain("rank %u ended by signal %d (%s)", rank, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else {
        complain("rank %u ended with status %d: %s", rank, WEXITSTATUS(status),
                 member->ledger->failure);
    }
}

static void kill_rank(uint32_t rank)
{
    struct member *member = &members[rank];
    struct message message = {.word = SAY_DOWN, .peer = rank, .when = clock_now()};
    if (broker.options->verbose) {
        printf("# %.3f s: kill rank %u during %s\n", run_time(), rank, affair_names[broker.affair]);
    }
    member->killed = true;
    end_life(rank, member);
    note_sockets(member->pid);
    kill(member->pid, SIGKILL);
    collect(rank);
    member->killed = false;
    broker.killed = true;
    broker.kills++;
    forget(rank);
    tell_all(live_mask(), message);
}

/* Kills seldom while pairs still meet, so that other work is done as well. */
static bool is_time_to_kill(int64_t now)
{
    if (broker.affair >= AFFAIR_FINISH || now < broker.next_kill || now >= broker.end) {
        return false;
    }
    if (broker.affair == AFFAIR_MEET && !one_in(&broker.rng, 4)) {
        broker.next_kill = now + SLUICE_MS(broker.options->kill_every) / 4;
        return false;
    }
    return true;
}

/* Kills a rank; the lower half of the ranks is never killed. */
static void kill_somebody(void)
{
    uint32_t half = broker.options->ranks / 2;
    uint32_t rank = half + (uint32_t)random_below(&broker.rng, broker.options->ranks - half);
    int64_t every = SLUICE_MS(broker.options->kill_every);
    broker.next_kill =
        clock_now() + every / 2 + (int64_t)random_below(&broker.rng, (uint64_t)every);
    if (members[rank].pid != 0) {
        kill_rank(rank);
    }
    if (broker.options->kills != 0 && broker.kills >= broker.options->kills) {
        broker.end = clock_now();
    }
}

/* Affairs. */

static void meet(uint32_t one, uint32_t other)
{
    struct message message = {.word = SAY_MEET, .id = ++broker.meetings};
    *pair_of(one, other) = (struct pair){PAIR_MEETING, message.id, 0};
    broker.meetings_due++;
    message.peer = other;
    notify_rank(one, &message);
    message.peer = one;
    notify_rank(other, &message);
}

/*
 * Lets all live ranks without a connection meet, and starts dead ones. Returns whether there were
 * any.
 */
static bool begin_meetings(void)
{
    bool any = false;
    for (uint32_t i = 0; i < broker.options->ranks; i++) {
        if (members[i].pid == 0 && !broken) {
            start(i);
        }
    }
    for (uint32_t i = 0; i < broker.options->ranks; i++) {
        for (uint32_t j = i + 1; j < broker.options->ranks; j++) {
            if (pair_of(i, j)->state == PAIR_NONE && members[i].pid && members[j].pid) {
                meet(i, j);
                any = true;
            }
        }
    }
    if (any) {
        begin(AFFAIR_MEET, 0);
    }
    return any;
}

static void pass_offer(uint32_t from, struct message *message)
{
    struct pair *pair = pair_of(from, message->peer);
    uint32_t to = message->peer;
    if (pair->state == PAIR_MEETING && pair->meeting == message->id) {
        message->peer = from;
        notify_rank(to, message);
    }
}

static void take_met(uint32_t from, const struct message *message)
{
    struct pair *pair = pair_of(from, message->peer);
    struct message go = {.word = SAY_GO, .id = message->id};
    if (pair->state != PAIR_MEETING || pair->meeting != message->id || ++pair->met < 2) {
        return;
    }
    pair->state = PAIR_UP;
    broker.meetings_due--;
    go.peer = message->peer;
    notify_rank(from, &go);
    go.peer = from;
    notify_rank(message->peer, &go);
}

static void begin_assembly(void)
{
    struct message message = {.word = SAY_ASSEMBLE, .id = ++broker.assemblies};
    message.mask = live_mask();
    begin(AFFAIR_ASSEMBLY, message.mask);
    broker.id = message.id;
    tell_all(message.mask, message);
}

static void begin_census(void)
{
    struct message message = {.word = SAY_CENSUS, .id = ++broker.censuses};
    broker.sums = (struct message){.word = SAY_COMPARE, .id = message.id};
    broker.counted = 0;
    broker.id = message.id;
    begin(AFFAIR_COUNT, live_mask());
    tell_all(live_mask(), message);
}

/* Indices: the rank that added, and the rank that has the word. */
static uint64_t paired[RANKS_MAX][RANKS_MAX];

static void take_count(uint32_t from, const struct message *message)
{
    const struct count *count = &message->count;
    if (broker.affair != AFFAIR_COUNT || message->id != broker.id) {
        return;
    }
    for (uint32_t i = 0; i < broker.options->ranks; i++) {
        broker.sums.count.shared[i] += count->shared[i];
        broker.sums.count.locked[i] += count->locked[i];
        paired[from][i] = count->paired[i];
    }
    broker.counted |= UINT32_C(1) << from;
    broker.waiting &= ~(UINT32_C(1) << from);
    add_sample(&members[from], count);
}

static void begin_comparison(void)
{
    struct message message = broker.sums;
    message.mask = broker.counted & live_mask();
    message.flag = !broker.killed;
    begin(AFFAIR_COMPARE, live_mask());
    for (uint32_t to = 0; to < broker.options->ranks; to++) {
        for (uint32_t from = 0; from < broker.options->ranks; from++) {
            message.count.paired[from] = paired[from][to];
        }
        notify_rank(to, &message);
    }
    /* A rank killed from now on has added nothing since it was counted. */
    broker.killed = false;
}

/* Two ranks part, and meet again. */
static void begin_parting(void)
{
    uint32_t one = (uint32_t)random_below(&broker.rng, broker.options->ranks);
    uint32_t other = (uint32_t)random_below(&broker.rng, broker.options->ranks);
    struct message message = {.word = SAY_QUIET, .id = ++broker.partings};
    if (one == other) {
        return;
    }
    broker.id = message.id;
    begin(AFFAIR_PART, UINT32_C(1) << one | UINT32_C(1) << other);
    broker.sums.mask = broker.waiting;
    message.peer = other;
    notify_rank(one, &message);
    message.peer = one;
    notify_rank(other, &message);
}

static void end_parting(void)
{
    uint32_t pair[2];
    uint32_t count = 0;
    for (uint32_t i = 0; i < broker.options->ranks; i++) {
        if (broker.sums.mask >> i & 1) {
            pair[count++] = i;
        }
    }
    if (members[pair[0]].pid && members[pair[1]].pid &&
        pair_of(pair[0], pair[1])->state == PAIR_UP) {
        meet(pair[0], pair[1]);
        begin(AFFAIR_MEET, 0);
    }
}

static bool is_over(void)
{
    return broker.affair == AFFAIR_MEET ? broker.meetings_due == 0 : broker.waiting == 0;
}

static bool all_up(void)
{
    for (uint32_t i = 0; i < broker.options->ranks; i++) {
        for (uint32_t j = i + 1; j < broker.options->ranks; j++) {
            if (pair_of(i, j)->state != PAIR_UP) {
                return false;
            }
        }
    }
    return true;
}

/* The soak's time begins when all have met for the first time. */
static void start_clock(void)
{
    int64_t now = clock_now();
    if (broker.end == SLUICE_FOREVER) {
        broker.end = now + SLUICE_S(broker.options->seconds);
        broker.next_kill = now + SLUICE_MS(broker.options->kill_every) / 2;
        broker.next_census = now;
    }
}

static void end_affair(void)
{
    enum affair affair = broker.affair;
    broker.affair = AFFAIR_NONE;
    switch (affair) {
    case AFFAIR_COUNT:
        begin_comparison();
        break;
    case AFFAIR_COMPARE:
        tell_all(live_mask(), (struct message){.word = SAY_GO_ON});
        break;
    case AFFAIR_PART:
        end_parting();
        break;
    case AFFAIR_MEET:
        start_clock();
        if (broker.options->verbose) {
            printf("# %.3f s: all have met\n", run_time());
        }
        break;
    case AFFAIR_FINISH:
        check_remains(broker.options);
        begin(AFFAIR_CLOSE, live_mask());
        tell_all(live_mask(), (struct message){.word = SAY_CLOSE});
        break;
    default:
        break;
    }
}

static void begin_affair(void)
{
    int64_t now = clock_now();
    if (!all_up()) {
        begin_meetings();
    } else if (now >= broker.end) {
        begin(AFFAIR_FINISH, live_mask());
        tell_all(live_mask(), (struct message){.word = SAY_FINISH});
    } else if (now >= broker.next_census) {
        broker.next_census = now + SLUICE_S(1);
        begin_census();
    } else if (one_in(&broker.rng, 10)) {
        begin_parting();
    } else if (one_in(&broker.rng, 2)) {
        begin_assembly();
    } else {
        /* For some time there is only mail. */
        begin(AFFAIR_NONE, 0);
        broker.begun = now + (int64_t)random_below(&broker.rng, SLUICE_MS(60));
    }
}

static void take_message(uint32_t from, struct message *message)
{
    switch (message->word) {
    case SAY_OFFER:
        pass_offer(from, message);
        break;
    case SAY_MET:
        take_met(from, message);
        break;
    case SAY_COUNTED:
        take_count(from, message);
        break;
    case SAY_DONE:
        broker.waiting &= ~(UINT32_C(1) << from);
        break;
    default:
        complain("rank %u says %u", from, message->word);
        break;
    }
}

static void listen_to_ranks(int timeout)
{
    struct pollfd fds[RANKS_MAX];
    for (uint32_t i = 0; i < broker.options->ranks; i++) {
        fds[i] = (struct pollfd){.fd = members[i].pid ? members[i].socket : -1, .events = POLLIN};
    }
    if (poll(fds, broker.options->ranks, timeout) <= 0) {
        return;
    }
    for (uint32_t i = 0; i < broker.options->ranks; i++) {
        struct message message;
        if (!fds[i].revents || !members[i].pid) {
            continue;
        }
        if (recv(members[i].socket, &message, sizeof(message), MSG_DONTWAIT) == sizeof(message)) {
            take_message(i, &message);
        } else {
            broker.waiting &= ~(UINT32_C(1) << i);
            collect(i);
        }
    }
}

static bool is_finished(void)
{
    return broken || (broker.affair == AFFAIR_CLOSE && live_mask() == 0);
}

static void watch_affair(void)
{
    if (broker.affair != AFFAIR_NONE &&
        clock_now() - broker.begun > SLUICE_S(2 * broker.options->hang)) {
        complain("%s takes more than %u s; ranks that are waited for: mask %#x",
                 affair_names[broker.affair], 2 * broker.options->hang, broker.waiting);
    }
}

static void run(void)
{
    while (!is_finished()) {
        int64_t now = clock_now();
        listen_to_ranks(10);
        watch_members(broker.options);
        watch_affair();
        if (is_time_to_kill(now)) {
            kill_somebody();
        }
        while (broker.affair != AFFAIR_NONE && broker.affair != AFFAIR_CLOSE && is_over()) {
            end_affair();
        }
        if (broker.affair == AFFAIR_NONE && now >= broker.begun) {
            begin_affair();
        }
    }
}

int run_broker(const struct options *options)
{
    struct ledger *ledgers = mmap(NULL, RANKS_MAX * sizeof(struct ledger), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ledgers == MAP_FAILED) {
        perror("mmap");
        return EXIT_FAILURE;
    }
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        members[i].ledger = &ledgers[i];
    }
    broker.options = options;
    broker.rng.state = mix(options->seed);
    begin_watch();
    broker.end = broker.next_kill = SLUICE_FOREVER;
    run();
    for (uint32_t i = 0; i < options->ranks; i++) {
        if (members[i].pid) {
            kill(members[i].pid, SIGKILL);
            while (waitpid(members[i].pid, NULL, 0) < 0 && errno == EINTR) {
            }
        } else if (!broken) {
            end_life(i, &members[i]);
        }
    }
    printf("# %llu kills, %llu meetings, %llu assemblies, %llu partings, %llu censuses\n",
           (unsigned long long)broker.kills, (unsigned long long)broker.meetings,
           (unsigned long long)broker.assemblies, (unsigned long long)broker.partings,
           (unsigned long long)broker.censuses);
    if (!broken) {
        conclude_remains();
    }
    return conclude_watch(options) ? EXIT_SUCCESS : EXIT_FAILURE;
}
