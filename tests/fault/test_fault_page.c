/* SPDX-License-Identifier: MIT */
/*
 * A page that does not come: its memory is behind userfaultfd(2), as it could be in a file of a
 * file system whose server has died. The thread that touches it stops, and so does its channel; all
 * other channels of the context go on, whichever thread serves them, and their deadlines hold.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/pair.h"
#include "../support/process.h"

#define BYTES ((size_t)64 * 1024)
#define TIMES 3

static int open_userfaultfd(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Registered memory whose pages are missing until hole_let_come(). */
struct hole {
    int fd;
    uint8_t *bytes;
    struct sluice_mr *mr;
};

static void hole_open(struct hole *hole, struct sluice_pd *pd)
{
    hole->fd = open_userfaultfd();
    hole->bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(hole->fd >= 0 && hole->bytes != MAP_FAILED, "%s", strerror(errno));
    struct uffdio_register range = {.range = {(uintptr_t)hole->bytes, BYTES},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    require(ioctl(hole->fd, UFFDIO_REGISTER, &range) == 0, "%s", strerror(errno));
    hole->mr =
        made(sluice_mr_register(pd, hole->bytes, BYTES, ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC));
}

/* Waits until a thread has touched the memory and is stopped. */
static void hole_await(const struct hole *hole)
{
    struct uffd_msg message;
    struct pollfd waiting = {.fd = hole->fd, .events = POLLIN};
    require(poll(&waiting, 1, (int)(DEADLINE / 1000000)) == 1, "the page was not touched");
    require(read(hole->fd, &message, sizeof(message)) == (ssize_t)sizeof(message), "%s",
            strerror(errno));
    require(message.event == UFFD_EVENT_PAGEFAULT, "event %d", message.event);
}

static void hole_let_come(const struct hole *hole)
{
    struct uffdio_range range = {(uintptr_t)hole->bytes, BYTES};
    require(ioctl(hole->fd, UFFDIO_UNREGISTER, &range) == 0, "%s", strerror(errno));
}

static void hole_close(struct hole *hole)
{
    require_ok(sluice_mr_deregister(hole->mr));
    munmap(hole->bytes, BYTES);
    close(hole->fd);
}

/* The operation on it. */
enum deed { WRITE_INTO, READ_FROM, ADD_TO, RECEIVE_INTO, SEND_FROM, READ_INTO, DEEDS };

/* Two pairs between the same sides: one is stopped by a page, the other is not. */
struct scene {
    struct pair stuck;
    struct pair other;
    struct hole hole;
    struct memory memory; /* the other end of what is done */
    enum deed deed;
    pthread_t thread;
    int result;
    atomic_bool ready; /* the thread has read the region's key */
    atomic_bool done;
    struct memory far; /* for the other pair: its target is served by the library's thread */
    struct memory near;
};

static bool hole_is_near(enum deed deed)
{
    return deed == SEND_FROM || deed == READ_INTO;
}

static void *touch(void *argument)
{
    struct scene *scene = argument;
    struct sluice_channel *channel = scene->stuck.channels[0];
    struct sluice_remote_mr remote;
    struct sluice_sge sge = memory_sge(&scene->memory, 0, scene->memory.length);
    require_ok(sluice_mr_remote(scene->hole.mr, &remote));
    if (hole_is_near(scene->deed)) {
        remote = memory_remote(&scene->memory, 0, scene->memory.length);
        require_ok(sluice_mr_sge(scene->hole.mr, 0, BYTES, &sge));
    }
    atomic_store(&scene->ready, true);
    switch (scene->deed) {
    case WRITE_INTO:
        scene->result = sluice_channel_write(channel, &sge, 1, &remote, DEADLINE);
        break;
    case READ_FROM:
    case READ_INTO:
        scene->result = sluice_channel_read(channel, &sge, 1, &remote, DEADLINE);
        break;
    case ADD_TO:
        require_ok(sluice_remote_mr_slice(&remote, 8, 8, &remote));
        sge.length = 8;
        scene->result = sluice_channel_fetch_add(channel, &sge, &remote, 5, DEADLINE);
        break;
    default:
        scene->result = sluice_channel_send(channel, &sge, 1, DEADLINE);
    }
    atomic_store(&scene->done, true);
    return NULL;
}

static void scene_open(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    pair_open(&scene->stuck, NULL);
    scene->other.sides = scene->stuck.sides;
    pair_connect(&scene->other, NULL);
    memory_open(&scene->near, scene->other.sides.pds[0], 1000);
    memory_open(&scene->far, scene->other.sides.pds[1], 1000);
    pair_works(&scene->stuck);
    pair_works(&scene->other);
}

static void scene_close(struct scene *scene)
{
    memory_close(&scene->near);
    memory_close(&scene->far);
    sluice_channel_close(scene->other.channels[0]);
    sluice_channel_close(scene->other.channels[1]);
    pair_close(&scene->stuck);
}

/* Starts a thread that does the operation, which stops that thread or the one that serves it. */
static void begin(struct scene *scene, enum deed deed)
{
    struct sides *sides = &scene->stuck.sides;
    scene->deed = deed;
    atomic_store(&scene->done, false);
    atomic_store(&scene->ready, false);
    hole_open(&scene->hole, sides->pds[hole_is_near(deed) ? 0 : 1]);
    memory_open(&scene->memory, sides->pds[hole_is_near(deed) ? 1 : 0], BYTES);
    pattern_fill(scene->memory.bytes, BYTES, deed);
    struct sluice_sge sge = memory_sge(&scene->memory, 0, BYTES);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &sge);
    if (deed == RECEIVE_INTO) {
        require_ok(sluice_mr_sge(scene->hole.mr, 0, BYTES, &sge));
    }
    if (deed == RECEIVE_INTO || deed == SEND_FROM) {
        post(scene->stuck.channels[1], &receive);
    }
    require(pthread_create(&scene->thread, NULL, touch, scene) == 0, "%s", strerror(errno));
    hole_await(&scene->hole);
    require(atomic_load(&scene->ready), "the page was touched before the thread began");
}

static bool is_all_zero(const uint8_t *bytes, size_t length)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static void end(struct scene *scene)
{
    const uint8_t *bytes = scene->hole.bytes;
    require(!atomic_load(&scene->done), "it was not stopped");
    hole_let_come(&scene->hole);
    require(pthread_join(scene->thread, NULL) == 0, "%s", strerror(errno));
    require_ok(scene->result);
    if (scene->deed == RECEIVE_INTO || scene->deed == SEND_FROM) {
        struct sluice_completion completion;
        require_ok(sluice_channel_next(scene->stuck.channels[1], DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
    }
    if (scene->deed == ADD_TO) {
        uint64_t word;
        memcpy(&word, bytes + 8, sizeof(word));
        require(word == 5, "%llu", (unsigned long long)word);
    } else if (scene->deed == READ_FROM || scene->deed == SEND_FROM) {
        require(is_all_zero(scene->memory.bytes, BYTES), "other bytes");
    } else {
        pattern_check(bytes, BYTES, scene->deed);
    }
    pair_works(&scene->stuck);
    memory_close(&scene->memory);
    hole_close(&scene->hole);
}

/* Uses a channel whose target is in another context, served by a thread of the library. */
static void reach_elsewhere(struct scene *scene)
{
    struct sluice_sge sge = memory_sge(&scene->near, 0, 1000);
    struct sluice_remote_mr remote = memory_remote(&scene->far, 0, 1000);
    for (uint64_t i = 0; i < 10; i++) {
        pattern_fill(scene->near.bytes, 1000, i);
        require_ok(sluice_channel_write(scene->other.channels[0], &sge, 1, &remote, DEADLINE));
        memset(scene->near.bytes, 0, 1000);
        require_ok(sluice_channel_read(scene->other.channels[0], &sge, 1, &remote, DEADLINE));
        pattern_check(scene->near.bytes, 1000, i);
    }
}

/* A send that finds no receive ends by its deadline, and the pair begins anew. */
static void miss_deadline(struct pair *pair)
{
    int64_t start = fair_now();
    require_result(sluice_channel_send(pair->channels[0], NULL, 0, SLUICE_MS(100)), -ETIMEDOUT);
    require(fair_now() - start < SLUICE_S(5), "%lld ms", (long long)(fair_now() - start) / 1000000);
    pair_reset(pair);
}

static void others_go_on(struct scene *scene)
{
    reach_elsewhere(scene);
    pair_works(&scene->other);
    miss_deadline(&scene->other);
    pair_works(&scene->other);
    reach_elsewhere(scene);
}

TEST(others_go_on_while_a_page_does_not_come, .times = DEEDS)
{
    struct scene scene;
    scene_open(&scene);
    begin(&scene, (enum deed)_i);
    others_go_on(&scene);
    end(&scene);
    others_go_on(&scene);
    scene_close(&scene);
}

/* A helper that was stopped and replaced can replace another one later. */
TEST(helpers_are_replaced_again_and_again)
{
    struct scene scene;
    scene_open(&scene);
    for (int i = 0; i < TIMES; i++) {
        begin(&scene, WRITE_INTO);
        others_go_on(&scene);
        end(&scene);
    }
    scene_close(&scene);
}

struct deregistering {
    struct sluice_mr *mr;
    atomic_bool begun;
    atomic_bool done;
};

static void *deregister(void *argument)
{
    struct deregistering *deregistering = argument;
    atomic_store(&deregistering->begun, true);
    require_ok(sluice_mr_deregister(deregistering->mr));
    atomic_store(&deregistering->done, true);
    return NULL;
}

/*
 * Memory is not touched once it is deregistered, so deregistering waits for the page; all others go
 * on.
 */
TEST(deregistering_waits_for_the_page)
{
    struct deregistering deregistering;
    struct sluice_remote_mr remote;
    struct scene scene;
    pthread_t thread;
    scene_open(&scene);
    begin(&scene, WRITE_INTO);
    deregistering = (struct deregistering){.mr = scene.hole.mr};
    require_ok(sluice_mr_remote(scene.hole.mr, &remote));
    require(pthread_create(&thread, NULL, deregister, &deregistering) == 0, "%s", strerror(errno));
    while (!atomic_load(&deregistering.begun)) {
        let_pass(SLUICE_MS(1));
    }
    others_go_on(&scene);
    require(!atomic_load(&deregistering.done), "it did not wait");
    hole_let_come(&scene.hole);
    require(pthread_join(thread, NULL) == 0 && pthread_join(scene.thread, NULL) == 0, "%s",
            strerror(errno));
    /* Between contexts, a later part found the region gone. */
    require(scene.result == 0 || (scene.result == -EACCES && current_wire() != WIRE_SELF), "%d",
            scene.result);
    require_ok(sluice_mr_deregister(NULL));
    others_go_on(&scene);
    memory_close(&scene.memory);
    munmap(scene.hole.bytes, BYTES);
    close(scene.hole.fd);
    scene_close(&scene);
}

struct writing {
    struct sluice_channel *channel;
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
    int result;
};

static void *write_once(void *argument)
{
    struct writing *writing = argument;
    writing->result =
        sluice_channel_write(writing->channel, &writing->sge, 1, &writing->remote, DEADLINE);
    return NULL;
}

/*
 * One peer has stopped a multichannel: the deadlines of the others hold, and they can be removed.
 */
TEST(peers_of_a_stopped_multichannel)
{
    struct star star;
    struct hole hole;
    struct memory memory;
    pthread_t thread;
    star_open(&star, 3, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        star_works(&star, i);
    }
    /* The hub is on the first side, its peers are on the second one. */
    hole_open(&hole, star.sides.pds[0]);
    memory_open(&memory, star.sides.pds[1], BYTES);
    pattern_fill(memory.bytes, BYTES, 4);
    struct writing writing = {.channel = star.spokes[0], .sge = memory_sge(&memory, 0, BYTES)};
    require_ok(sluice_mr_remote(hole.mr, &writing.remote));
    require(pthread_create(&thread, NULL, write_once, &writing) == 0, "%s", strerror(errno));
    hole_await(&hole);
    int64_t start = fair_now();
    struct sluice_sge sge = memory_sge(&memory, 0, 100);
    struct sluice_remote_mr remote;
    require_ok(sluice_remote_mr_slice(&writing.remote, 0, 100, &remote));
    require_result(sluice_channel_write(star.spokes[1], &sge, 1, &remote, SLUICE_MS(100)),
                   -ETIMEDOUT);
    sluice_channel_close(star.spokes[1]);
    star.spokes[1] = NULL;
    struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, &sge);
    write.remote = remote;
    post(star.spokes[2], &write);
    sluice_channel_close(star.spokes[2]);
    star.spokes[2] = NULL;
    require(fair_now() - start < SLUICE_S(8), "%lld ms", (long long)(fair_now() - start) / 1000000);
    hole_let_come(&hole);
    require(pthread_join(thread, NULL) == 0, "%s", strerror(errno));
    require_ok(writing.result);
    pattern_check(hole.bytes, BYTES, 4);
    star_works(&star, 0);
    memory_close(&memory);
    hole_close(&hole);
    star_close(&star);
}

int main(void)
{
    int fd = open_userfaultfd();
    if (!device_is_soft()) {
        puts("1..0 # SKIP a device has pinned the pages, which have come before");
        return EXIT_SUCCESS;
    }
    if (fd < 0) {
        printf("1..0 # SKIP no userfaultfd: %s\n", strerror(errno));
        return EXIT_SUCCESS;
    }
    close(fd);
    return run_tests("fault_page", 60);
}
