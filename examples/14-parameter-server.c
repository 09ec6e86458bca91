/* SPDX-License-Identifier: MIT */
/*
 * A parameter server: it publishes the weights of a model, and for each worker a buffer for
 * its gradient. Workers read weights and write gradients by the handles that they receive,
 * without any call of the server, which only gets a byte when a gradient has been written.
 *
 *   14-parameter-server [-n WORKERS] [-s STEPS]
 *
 * The model is a straight line through points, which are divided among the workers. All sums
 * are of whole numbers, so that the digest of the weights is the same for any number of
 * workers. It is printed at the end, and compared with that of one process alone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sluice.h>

#include "workers.h"

#define WEIGHTS 1024u
#define POINTS 96u /* for each weight, over all workers */
#define DEADLINE SLUICE_S(30)

struct weights {
    int64_t of[WEIGHTS];
};

/* The first message to a worker. */
struct task {
    uint32_t rank, workers;
    struct sluice_buffer_handle weights, gradient;
};

struct device {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_buffer_service *service;
};

struct server {
    struct device device;
    struct sluice_buffer *weights;
    struct sluice_buffer *gradients[MAX_PROCESSES];
};

static int open_device(struct device *device)
{
    device->context = sluice_context_open(NULL, NULL);
    device->pd = device->context != NULL ? sluice_pd_alloc(device->context) : NULL;
    device->service = device->pd != NULL ? sluice_buffer_service_open(&device->pd, 1, NULL) : NULL;
    return device->service != NULL ? 0 : complain("set up", "a service");
}

static void close_device(struct device *device)
{
    sluice_buffer_service_close(device->service);
    sluice_pd_free(device->pd);
    sluice_context_close(device->context);
}

/* Returns the value that a weight should have according to a point. */
static int64_t target_of(uint32_t weight, uint32_t point)
{
    return (int64_t)(weight * 7919u % 10007u) * 1000 + (int64_t)(point * 104729u % 2001u) - 1000;
}

/* Adds the gradient of one worker's points; of all points as rank 0 of 1. */
static void add_gradient(const struct weights *weights, uint32_t rank, uint32_t workers,
                         struct weights *gradient)
{
    memset(gradient, 0, sizeof(*gradient));
    for (uint32_t weight = 0; weight < WEIGHTS; weight++)
        for (uint32_t point = rank; point < POINTS; point += workers)
            gradient->of[weight] += target_of(weight, point) - weights->of[weight];
}

static void descend(struct weights *weights, const struct weights *sum)
{
    for (uint32_t weight = 0; weight < WEIGHTS; weight++)
        weights->of[weight] += sum->of[weight] / (int64_t)(2 * POINTS);
}

static uint64_t digest(const struct weights *weights)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (uint32_t weight = 0; weight < WEIGHTS; weight++)
        hash = (hash ^ (uint64_t)weights->of[weight]) * UINT64_C(1099511628211);
    return hash;
}

/* The worker: receives a byte for each step, and sends one back once its gradient is written. */
static int work(struct device *device, const struct task *task, struct sluice_mr *mr, int socket)
{
    struct weights *weights = sluice_mr_addr(mr), *gradient = weights + 1;
    char go;

    while (take(socket, &go, 1) == 0 && go == 's') {
        if (sluice_buffer_read(device->service, &task->weights, 0, mr, weights, sizeof(*weights),
                               DEADLINE) != 0)
            return complain("worker", "read the weights");
        add_gradient(weights, task->rank, task->workers, gradient);
        if (sluice_buffer_write(device->service, &task->gradient, 0, mr, gradient,
                                sizeof(*gradient), DEADLINE) != 0)
            return complain("worker", "write a gradient");
        if (give(socket, &go, 1) != 0)
            return -1;
    }
    return go == 'e' ? 0 : -1;
}

/* Runs a worker. It registers its memory once; otherwise each call would register it. */
static int run_worker(int socket)
{
    struct device device = {0};
    struct sluice_mr *mr = NULL;
    struct task task;
    int result = take(socket, &task, sizeof(task));

    if (result == 0)
        result = open_device(&device);
    if (result == 0) {
        mr = sluice_mr_alloc(device.pd, 2 * sizeof(struct weights), SLUICE_ACCESS_LOCAL_WRITE);
        result = mr != NULL ? work(&device, &task, mr, socket) : complain("worker", "get memory");
    }
    sluice_mr_deregister(mr);
    close_device(&device);
    return result;
}

static int publish(struct server *server, const struct workers *workers)
{
    struct task task = {.workers = workers->count - 1};

    server->weights = sluice_buffer_publish(server->device.service, NULL, sizeof(struct weights),
                                            SLUICE_ACCESS_REMOTE_READ);
    if (server->weights == NULL || sluice_buffer_export(server->weights, &task.weights) != 0)
        return complain("server", "publish the weights");
    for (uint32_t i = 1; i < workers->count; i++) {
        server->gradients[i] = sluice_buffer_publish(
            server->device.service, NULL, sizeof(struct weights), SLUICE_ACCESS_REMOTE_WRITE);
        if (server->gradients[i] == NULL ||
            sluice_buffer_export(server->gradients[i], &task.gradient) != 0)
            return complain("server", "publish a place for a gradient");
        task.rank = i - 1;
        if (give(workers->sockets[i], &task, sizeof(task)) != 0)
            return -1;
    }
    return 0;
}

static int train(const struct server *server, const struct workers *workers, uint32_t steps)
{
    struct weights *weights = sluice_buffer_addr(server->weights);
    static struct weights sum;

    for (uint32_t step = 0; step < steps; step++) {
        memset(&sum, 0, sizeof(sum));
        if (workers_send(workers, 's') != 0 || workers_receive(workers) != 0)
            return -1;
        for (uint32_t i = 1; i < workers->count; i++) {
            const struct weights *gradient = sluice_buffer_addr(server->gradients[i]);

            for (uint32_t weight = 0; weight < WEIGHTS; weight++)
                sum.of[weight] += gradient->of[weight];
        }
        descend(weights, &sum);
    }
    return workers_send(workers, 'e');
}

/* Trains the model in one process, for comparison. */
static uint64_t train_alone(uint32_t steps)
{
    static struct weights weights, gradient;

    for (uint32_t step = 0; step < steps; step++) {
        add_gradient(&weights, 0, 1, &gradient);
        descend(&weights, &gradient);
    }
    return digest(&weights);
}

static int run_server(const struct workers *workers, uint32_t steps)
{
    struct server server = {.weights = NULL};
    int result = open_device(&server.device);

    if (result == 0)
        result = publish(&server, workers);
    if (result == 0)
        result = train(&server, workers, steps);
    if (result == 0) {
        uint64_t found = digest(sluice_buffer_addr(server.weights));

        printf("%u workers, %u steps: digest %016" PRIx64 "\n", workers->count - 1, steps, found);
        if (found != train_alone(steps)) {
            fprintf(stderr, "14-parameter-server: one process alone finds another one\n");
            result = -1;
        }
    }
    for (uint32_t i = 1; i < workers->count; i++)
        sluice_buffer_release(server.gradients[i]);
    sluice_buffer_release(server.weights);
    close_device(&server.device);
    return result;
}

static int usage(void)
{
    fprintf(stderr, "usage: 14-parameter-server [-n WORKERS] [-s STEPS]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct workers workers = {0};
    long count = 3, steps = 50;
    int option, result;

    while ((option = getopt(argc, argv, "n:s:")) != -1) {
        if (option == 'n')
            count = atol(optarg);
        else if (option == 's')
            steps = atol(optarg);
        else
            return usage();
    }
    if (optind != argc || count < 1 || count > MAX_PROCESSES - 1 || steps < 1 || steps > 1000000)
        return usage();
    /* Start the processes first: open objects do not survive a fork. */
    result = workers_start(&workers, (uint32_t)count + 1, run_worker);
    if (result == 0)
        result = run_server(&workers, (uint32_t)steps);
    return workers_end(&workers, result) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
