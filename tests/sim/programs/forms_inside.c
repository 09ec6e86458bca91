/* SPDX-License-Identifier: MIT */
/* Two channels of one process that are connected to each other, each with a thread of its own. */
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "forms.h"

/* Longer than any request of these threads may take. */
#define LATE SLUICE_S(12)

/* How the thread that receives waits: it leaves the library alone, sleeps, or polls. */
enum way { OUTSIDE, ASLEEP, POLLING, WAYS };

static struct {
    struct sluice_channel *ends[2]; /* the first one sends */
    enum way way;
    uint32_t bytes;
    int64_t deadline;    /* of the receive */
    bool sent, received; /* what the threads have done so far */
    int error;           /* of the message that was received */
} inside;

static bool is_excused(void)
{
    return sim_befell(sim_rank(), sim_rank()) != 0;
}

static bool connect(void)
{
    struct sluice_prepared_channel *prepared[2];
    struct sluice_endpoint endpoints[2];
    bool well = true;
    memset(endpoints, 0, sizeof endpoints);
    for (uint32_t i = 0; i < 2; i++) {
        prepared[i] = sluice_channel_prepare(forms.pd, NULL);
        well = well_with(prepared[i] != NULL, sim_rank(), "prepare") && well &&
               well_with(sluice_prepared_channel_endpoint(prepared[i], &endpoints[i]) == 0,
                         sim_rank(), "endpoint");
    }
    for (uint32_t i = 0; i < 2; i++) {
        inside.ends[i] =
            well ? sluice_prepared_channel_handshake(prepared[i], &endpoints[!i]) : NULL;
        if (!well) {
            sluice_prepared_channel_free(prepared[i]);
        }
    }
    return well_with(inside.ends[0] != NULL && inside.ends[1] != NULL, sim_rank(), "handshake");
}

static void disconnect(void)
{
    sluice_channel_close(inside.ends[0]);
    sluice_channel_close(inside.ends[1]);
    inside.ends[0] = inside.ends[1] = NULL;
}

/* Some time from a step of a processor to that of a call. */
static void hesitate(void)
{
    sim_pause((int64_t)below(UINT64_C(1) << below(16)));
}

/* Waits without the library until the message was sent. */
static void stay_outside(void)
{
    int64_t began = sim_own_time();
    for (int64_t pause = 500; !inside.sent && sim_own_time() - began < LATE; pause *= 2) {
        sim_pause(pause);
    }
}

/* Sleeps on the descriptor. A message that has come wakes it. */
static void sleep_once(struct sluice_channel *channel)
{
    struct pollfd pollfd = {.fd = sluice_channel_fd(channel), .events = POLLIN};
    struct sluice_completion completion;
    int64_t due;
    int armed = sluice_channel_arm(channel, &due);
    must(pollfd.fd >= 0 && armed >= 0, "arm: %s", sluice_last_error());
    if (armed == 0 && poll(&pollfd, 1, (int)(LATE / 1000000)) == 0 &&
        sluice_channel_poll(channel, &completion, 1) == 1) {
        must(is_excused(), "a message wakes nobody");
        inside.received = true;
        inside.error = completion.error;
    }
}

static void *receive(void *argument)
{
    struct sluice_channel *channel = inside.ends[1];
    struct sluice_sge sge = form_sge(IN, FORM_BYTES);
    struct sluice_completion completion = {.error = 0};
    struct sluice_handle handle;
    (void)argument;
    hesitate();
    inside.error = sluice_channel_post_receive(channel, &sge, 1, inside.deadline, &handle);
    if (!well_with(inside.error == 0, sim_rank(), "a receive")) {
        return NULL;
    }
    if (inside.way == OUTSIDE) {
        stay_outside();
    }
    for (uint32_t turn = 0; !inside.received && inside.way != OUTSIDE; turn++) {
        int count = sluice_channel_poll(channel, &completion, 1);
        must(count >= 0, "poll: %s", sluice_last_error());
        inside.received = count == 1;
        inside.error = completion.error;
        if (count == 0 && inside.way == ASLEEP) {
            sleep_once(channel);
        } else if (count == 0 && turn < 50) {
            hesitate();
        } else if (count == 0) {
            sim_pause(SLUICE_MS(1));
        }
    }
    if (!inside.received) {
        must(sluice_channel_wait(channel, &handle, PATIENCE + SLUICE_S(3), &completion) == 0,
             "wait: %s", sluice_last_error());
        inside.error = completion.error;
    }
    return NULL;
}

static void check_bytes(void)
{
    must(form_holds(IN, inside.bytes, sim_rank(), sim_rank()),
         "step %u: a message within a process has wrong bytes", forms.step);
}

/* A message from one thread to the other, which are both at it at once. */
static bool pass(void)
{
    struct sluice_sge sge = form_sge(OUT, inside.bytes);
    pthread_t thread;
    int result;
    if (!works(pthread_create(&thread, NULL, receive, NULL) == 0, "thread")) {
        return false;
    }
    hesitate();
    result = sluice_channel_send(inside.ends[0], &sge, 1, SLUICE_S(10));
    inside.sent = true;
    must(result == 0 || is_excused(), "a message within a process: %s", sluice_last_error());
    pthread_join(thread, NULL);
    if (result == 0 && inside.error == 0) {
        check_bytes();
    }
    return result == 0 && inside.error == 0;
}

/* The sender takes its message back, and uses the memory again, whatever the receiver got. */
static bool take_back(void)
{
    struct sluice_sge sge = form_sge(OUT, inside.bytes);
    struct sluice_completion completion = {.error = 0};
    struct sluice_handle handle;
    pthread_t thread;
    int result;
    inside.way = POLLING;
    inside.deadline = SLUICE_S(1); /* no device tells the receiver */
    if (!works(pthread_create(&thread, NULL, receive, NULL) == 0, "thread")) {
        return false;
    }
    hesitate();
    result = sluice_channel_post_send(inside.ends[0], &sge, 1, PATIENCE, &handle);
    if (well_with(result == 0, sim_rank(), "a send")) {
        hesitate();
        result = sluice_channel_cancel(inside.ends[0], &handle, &completion);
        must(result == 0, "cancel: %s", sluice_last_error());
        memset(forms.memory + OUT, 0xee, inside.bytes);
    } else {
        sluice_channel_shutdown(inside.ends[0], 0);
    }
    pthread_join(thread, NULL);
    must(completion.error != 0 || result != 0 || inside.error == 0 || is_excused(),
         "a message was sent that did not come");
    if (inside.error == 0) {
        check_bytes();
    }
    return true;
}

/* A write behind a send waits with it, until there is a receive. */
static bool keep_order(void)
{
    uint8_t *word = forms.memory + WINDOW + sim_rank() * FORM_BYTES;
    struct sluice_sge out = form_sge(OUT, 8), in = form_sge(IN, 8);
    struct sluice_remote_mr remote = form_remote(sim_rank(), 8);
    struct sluice_completion completion;
    int result;
    bool well;
    memset(word, 0x33, 8);
    memset(forms.memory + OUT, 0x44, 8);
    result = sluice_channel_post_send(inside.ends[0], &out, 1, PATIENCE, NULL);
    well = well_with(result == 0, sim_rank(), "a send");
    result = sluice_channel_post_write(inside.ends[0], &out, 1, &remote, PATIENCE, NULL);
    well = well_with(result == 0, sim_rank(), "a write") && well;
    for (uint64_t i = below(4); i > 0; i--) {
        (void)!sluice_channel_poll(inside.ends[i % 2], &completion, 1);
        sim_pause((int64_t)below(1000000));
    }
    must(word[0] == 0x33, "step %u: a write overtakes a send", forms.step);
    result = sluice_channel_receive(inside.ends[1], &in, 1, PATIENCE, NULL);
    well = well_with(result == 0, sim_rank(), "a receive") && well;
    result = sluice_channel_flush(inside.ends[0], PATIENCE + SLUICE_S(3));
    must(result == 0 || !well, "flush: %s", sluice_last_error());
    must(!well || word[0] == 0x44 || is_excused(), "step %u: a write was not done", forms.step);
    return well;
}

bool form_inside(void)
{
    static bool (*const kinds[])(void) = {pass, pass, take_back, keep_order};
    bool well = true;
    for (uint64_t i = 1 + below(4); i > 0 && well; i--) {
        inside.way = (enum way)below(WAYS);
        inside.sent = inside.received = false;
        inside.deadline = PATIENCE;
        inside.bytes = 1 + (uint32_t)below(below(2) ? 100 : FORM_BYTES);
        form_fill(OUT, inside.bytes, sim_rank(), sim_rank());
        well = connect() && kinds[below(sizeof kinds / sizeof *kinds)]();
        disconnect();
    }
    return well;
}
