/* SPDX-License-Identifier: MIT */
/*
 * A server of many clients, of which some stop during their hello, some send garbage, and some are
 * killed. All proper clients are let in while the server still waits for the stopped ones, so no
 * client waits for those. This holds for channels, for peers of a multichannel, for agents and for
 * buffers. In the long form there are 1,000 clients, and their waiting times are compared with
 * those of the same clients without the 300 false ones. Most of the difference is work for clients
 * that come at the same time, on the same processors. So waiting times are measured as well of
 * clients that come one at a time, which wait for the server and the false clients alone.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/fair.h"
#include "../support/halfway.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "../support/stranger.h"

/* How the server lets clients in. */
enum form { ADMIT, ADMIT_INTO, ACCEPT, AGENT, BUFFER, FORMS };

/* The deadline for a client that stops, which no other client may have to wait for. */
#define STUCK PATIENCE *SLUICE_S(60)
#define CLIENT PATIENCE *SLUICE_S(50)
#define MOST_WAYS 100
#define MOST_CLIENTS 700
#define THREADS 7
/*
 * In the long form, the added time that the median client may wait among false ones, and the time
 * that the median client may wait that comes alone. A delay by one false client would be ten
 * seconds at least. The printed values are valid on an idle machine.
 */
#define ADDED_WAIT SLUICE_S(2)
#define LONE_WAIT SLUICE_MS(50)

static const enum halfway_way stopping[] = {SAYS_NOTHING, HALF_A_HELLO, SILENT, HALF_A_STEP,
                                            NO_CHANNEL};
static const enum halfway_way failing[] = {TWO_CHANNELS, GARBAGE_HELLO, GARBAGE, NO_ENDPOINT};
static const enum halfway_way leaving[] = {LEAVES_AT_ONCE, LEAVES, LEAVES_AMID};

struct crowd {
    struct sides sides;
    enum form form;
    int good, bad; /* proper clients, and false ones of each kind */
    bool one_by_one;
    /* The server, in one of its forms. */
    struct sluice_listener *listener;
    struct sluice_multichannel *multichannel;
    struct sluice_agent *agent;
    struct sluice_buffer_service *service;
    struct sluice_buffer *buffer;
    struct sluice_buffer_handle handle;
    uint64_t value;
    char address[64];
    int in, out; /* let in, and failed */
    struct sluice_channel *served[MOST_CLIENTS];
    /* The false clients. */
    struct sluice_prepared_channel *prepared;
    struct halfway halfway;
    int fds[COUNT(stopping)][MOST_WAYS], others[COUNT(failing)][MOST_WAYS];
    /* Clients. */
    pthread_barrier_t barrier;
    atomic_int next, done;
    struct sluice_channel *channels[MOST_CLIENTS];
    struct sluice_agent *agents[THREADS];
    struct sluice_agent_peer *peers[MOST_CLIENTS];
    int64_t waits[MOST_CLIENTS];
    char text[400]; /* of the first that failed */
};

static void allow_files(rlim_t count)
{
    struct rlimit limit;
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    if (limit.rlim_cur < count) {
        limit.rlim_cur = limit.rlim_max < count ? limit.rlim_max : count;
    }
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
}

/* The server. */

static const struct sluice_listen_attr open_to_all = {
    .size = sizeof(open_to_all), .backlog = 1024, .secret_file = ""};

static void open_agent(struct crowd *crowd)
{
    const struct sluice_agent_attr attr = {.size = sizeof(attr), .secret_file = ""};
    const struct sluice_listen_attr backlog = {.size = sizeof(backlog), .backlog = 1024};
    crowd->agent = made(sluice_agent_open(crowd->sides.pds[0], &attr));
    require_ok(sluice_agent_listen(crowd->agent, "127.0.0.1:0", &backlog));
    int port = sluice_agent_address(crowd->agent, crowd->address, sizeof(crowd->address));
    crowd->halfway.port = (uint16_t)port;
}

/* A process with a handle knows the key of the service, which stands behind its owner's name. */
static void open_buffer(struct crowd *crowd)
{
    const struct sluice_buffer_service_attr attr = {.size = sizeof(attr), .address = "127.0.0.1:0"};
    struct sluice_buffer_info info = {.size = sizeof(info)};
    crowd->value = 41;
    crowd->service = made(sluice_buffer_service_open(&crowd->sides.pds[0], 1, &attr));
    crowd->buffer = made(sluice_buffer_publish(crowd->service, &crowd->value, sizeof(crowd->value),
                                               SLUICE_ACCESS_REMOTE_READ));
    require_ok(sluice_buffer_export(crowd->buffer, &crowd->handle));
    require_ok(sluice_buffer_handle_query(&crowd->handle, &info));
    crowd->halfway.port = (uint16_t)atoi(strrchr(info.address, ':') + 1);
    crowd->halfway.secret = crowd->handle.bytes + 24;
    crowd->halfway.secret_bytes = 32;
    put(put(crowd->halfway.own, 0x736c7571, 4), device_is_soft() ? 2 : 1, 4);
    crowd->halfway.own_bytes = 8;
}

static void open_listener(struct crowd *crowd)
{
    if (crowd->form == ADMIT_INTO) {
        crowd->multichannel = made(sluice_prepared_multichannel_handshake(
            sluice_multichannel_prepare(crowd->sides.pds[0], 0, NULL), NULL, 0));
    }
    crowd->listener = made(sluice_listen("127.0.0.1:0", &open_to_all));
    int port = sluice_listener_address(crowd->listener, crowd->address, sizeof(crowd->address));
    crowd->halfway.port = (uint16_t)port;
}

static void admit_all(struct crowd *crowd)
{
    struct sluice_admitted admitted = {.size = sizeof(admitted)};
    struct sluice_incoming *incoming;
    while ((incoming = sluice_listener_next(crowd->listener, 0)) != NULL) {
        /* The client may have left, or want something that this listener does not offer. */
        if (crowd->form == ADMIT) {
            (void)!sluice_incoming_admit(incoming, crowd->sides.pds[0], NULL, NULL, STUCK, 1);
        } else {
            (void)!sluice_incoming_admit_into(incoming, crowd->multichannel, NULL, STUCK, 1);
        }
    }
    while (sluice_listener_admitted(crowd->listener, 0, &admitted) == 0) {
        if (admitted.error < 0) {
            require(admitted.error != -ETIMEDOUT, "%s", sluice_last_error());
            crowd->out++;
        } else {
            crowd->served[crowd->in++] = admitted.channel;
        }
    }
}

/* Serves until all clients are connected; only the descriptor is waited for. */
static void serve(struct crowd *crowd)
{
    struct pollfd pollfd = {
        .fd = crowd->listener != NULL ? sluice_listener_fd(crowd->listener) : -1, .events = POLLIN};
    struct sluice_channel *channel;
    while (atomic_load(&crowd->done) < crowd->good) {
        (void)!poll(&pollfd, 1, 100);
        if (crowd->form == ADMIT || crowd->form == ADMIT_INTO) {
            admit_all(crowd);
        } else if (crowd->form == ACCEPT) {
            while ((channel = sluice_accept(crowd->listener, crowd->sides.pds[0], NULL, 0))) {
                crowd->served[crowd->in++] = channel;
            }
        }
    }
}

/* Starts the false clients. */

static void come_in_vain(struct crowd *crowd, int turn)
{
    for (size_t way = 0; way < COUNT(stopping); way++) {
        crowd->fds[way][turn] = halfway_come(&crowd->halfway, stopping[way]);
    }
    for (size_t way = 0; way < COUNT(failing); way++) {
        crowd->others[way][turn] = halfway_come(&crowd->halfway, failing[way]);
    }
    for (size_t way = 0; way < COUNT(leaving); way++) {
        require_result(halfway_come(&crowd->halfway, leaving[way]), -1);
    }
}

/*
 * Whether a server waits for such a client after letting it in. A device notices by itself that a
 * channel never connects.
 */
static bool is_waited_for(enum halfway_way way)
{
    return way >= SILENT && (way != NO_CHANNEL || device_is_soft());
}

/* Requires that the server waits for all stopped clients. */
static void check_stopped(struct crowd *crowd)
{
    for (size_t way = 0; way < COUNT(stopping); way++) {
        for (int i = 0; i < crowd->bad; i++) {
            require(!is_waited_for(stopping[way]) || halfway_is_held(crowd->fds[way][i]),
                    "%d of way %zu was given up", i, way);
            close(crowd->fds[way][i]);
        }
    }
    for (size_t way = 0; way < COUNT(failing); way++) {
        for (int i = 0; i < crowd->bad; i++) {
            close(crowd->others[way][i]);
        }
    }
}

/* Clients. */

/* Its own service is not what it waits for. */
static int read_buffer(struct crowd *crowd, int64_t *waited)
{
    const struct sluice_buffer_service_attr attr = {.size = sizeof(attr), .address = "127.0.0.1:0"};
    struct sluice_buffer_service *user = sluice_buffer_service_open(&crowd->sides.pds[1], 1, &attr);
    struct span begun = span_begin();
    uint64_t value = 0;
    int error = user != NULL ? sluice_buffer_read(user, &crowd->handle, 0, NULL, &value,
                                                  sizeof(value), CLIENT)
                             : -errno;
    *waited = span_since(begun).fair;
    sluice_buffer_service_close(user);
    return error == 0 && value != 41 ? -EILSEQ : error;
}

static int become_peer(struct crowd *crowd, int thread, int number)
{
    crowd->peers[number] =
        sluice_agent_connect(crowd->agents[thread], crowd->address, NULL, CLIENT);
    return crowd->peers[number] != NULL ? 0 : -errno;
}

static int come(struct crowd *crowd, int thread, int number)
{
    const struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    struct span begun = span_begin();
    int error = 0;
    if (crowd->form == BUFFER) {
        return read_buffer(crowd, &crowd->waits[number]);
    }
    if (crowd->form == AGENT) {
        error = become_peer(crowd, thread, number);
    } else {
        crowd->channels[number] =
            sluice_connect(crowd->address, crowd->sides.pds[1], NULL, &options, CLIENT);
        error = crowd->channels[number] != NULL ? 0 : -errno;
    }
    crowd->waits[number] = span_since(begun).fair;
    return error;
}

struct thread {
    pthread_t thread;
    struct crowd *crowd;
    int number;
};

/* All false clients come first, and then the proper ones. */
static void *run_thread(void *argument)
{
    struct thread *thread = argument;
    struct crowd *crowd = thread->crowd;
    for (int i = thread->number; i < crowd->bad; i += THREADS) {
        come_in_vain(crowd, i);
    }
    (void)pthread_barrier_wait(&crowd->barrier);
    if (crowd->one_by_one && thread->number > 0) {
        return NULL;
    }
    for (int i; (i = atomic_fetch_add(&crowd->next, 1)) < crowd->good;) {
        if (come(crowd, thread->number, i) < 0 && crowd->text[0] == 0) {
            snprintf(crowd->text, sizeof(crowd->text), "client %d: %s", i, sluice_last_error());
        }
        atomic_fetch_add(&crowd->done, 1);
    }
    return NULL;
}

static void open_crowd(struct crowd *crowd, enum form form, int good, int bad)
{
    const struct sluice_agent_attr attr = {
        .size = sizeof(attr), .flags = SLUICE_AGENT_NO_THREAD, .secret_file = ""};
    memset(crowd, 0, sizeof(*crowd));
    crowd->form = form;
    crowd->good = good;
    crowd->bad = bad;
    sides_open(&crowd->sides);
    crowd->prepared = prepare_channel(crowd->sides.pds[1], NULL, &crowd->halfway.endpoint);
    if (form == AGENT) {
        open_agent(crowd);
        for (int i = 0; i < THREADS; i++) {
            crowd->agents[i] = made(sluice_agent_open(crowd->sides.pds[1], &attr));
        }
    } else if (form == BUFFER) {
        open_buffer(crowd);
    } else {
        open_listener(crowd);
    }
}

static void close_crowd(struct crowd *crowd)
{
    for (int i = 0; i < crowd->good; i++) {
        sluice_agent_peer_close(crowd->peers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        sluice_agent_close(crowd->agents[i]);
    }
    sluice_agent_close(crowd->agent);
    sluice_buffer_release(crowd->buffer);
    sluice_buffer_service_close(crowd->service);
    for (int i = 0; i < crowd->good; i++) {
        sluice_channel_close(crowd->channels[i]);
        sluice_channel_close(crowd->served[i]);
    }
    sluice_prepared_channel_free(crowd->prepared);
    sluice_multichannel_close(crowd->multichannel);
    sluice_listener_close(crowd->listener);
    sides_close(&crowd->sides);
}

static int compare(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* Runs the crowd. Returns the median waiting time of the clients. */
static int64_t run_crowd(struct crowd *crowd)
{
    struct thread threads[THREADS];
    require(pthread_barrier_init(&crowd->barrier, NULL, THREADS) == 0, "no barrier");
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.crowd = crowd, .number = i};
        require(pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]) == 0,
                "no thread");
    }
    serve(crowd);
    for (int i = 0; i < THREADS; i++) {
        require(pthread_join(threads[i].thread, NULL) == 0, "no end");
    }
    pthread_barrier_destroy(&crowd->barrier);
    require(crowd->text[0] == 0, "%s", crowd->text);
    check_stopped(crowd);
    qsort(crowd->waits, (size_t)crowd->good, sizeof(crowd->waits[0]), compare);
    printf("# form %u: %d clients%s and %d that are none: half of them wait %lld us, 99 of 100 at "
           "most %lld us, the last %lld us\n",
           crowd->form, crowd->good, crowd->one_by_one ? ", one at a time," : "",
           crowd->bad * (int)(COUNT(stopping) + COUNT(failing) + COUNT(leaving)),
           (long long)(crowd->waits[crowd->good / 2] / 1000),
           (long long)(crowd->waits[crowd->good * 99 / 100] / 1000),
           (long long)(crowd->waits[crowd->good - 1] / 1000));
    fflush(stdout);
    return crowd->waits[crowd->good / 2];
}

static struct crowd crowd;

TEST(stopped_clients_delay_no_other, .times = FORMS)
{
    int good = short_run() ? 28 : 700, bad = short_run() ? 7 : 25;
    int64_t alone = 0, among;
    allow_files(16384);
    if (!short_run()) {
        open_crowd(&crowd, (enum form)_i, good, 0);
        alone = run_crowd(&crowd);
        close_crowd(&crowd);
    }
    open_crowd(&crowd, (enum form)_i, good, bad);
    among = run_crowd(&crowd);
    require(short_run() || among < alone + ADDED_WAIT, "%lld us, and alone %lld us",
            (long long)(among / 1000), (long long)(alone / 1000));
    close_crowd(&crowd);
    if (!short_run()) {
        open_crowd(&crowd, (enum form)_i, good, bad);
        crowd.one_by_one = true;
        alone = run_crowd(&crowd);
        require(alone < LONE_WAIT, "%lld us", (long long)(alone / 1000));
        close_crowd(&crowd);
    }
}

int main(void)
{
    return RUN_GROUPS("held_up", {"tcp", WIRE_TCP, 120}, {"shm", WIRE_SHM, 120});
}
