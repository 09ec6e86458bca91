/* SPDX-License-Identifier: MIT */
/*
 * What calls of a connect by address report: calls that promise to leave errno alone only return a
 * result, mistakes of the program are reported before anything else, and texts name the other side
 * and which side failed.
 */
#include <stdio.h>
#include <string.h>

#include "../support/client.h"

/* Two sides, multichannels on both, and a listener. */
struct scene {
    struct sides sides;
    struct sluice_multichannel *all[2];
    struct sluice_listener *listener;
    struct sluice_connect_attr options;
    struct client client;
};

static void scene_open(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    sides_open(&scene->sides);
    scene->listener = listen_with("127.0.0.1:0", "");
    for (int i = 0; i < 2; i++) {
        scene->all[i] = made(sluice_prepared_multichannel_handshake(
            sluice_multichannel_prepare(scene->sides.pds[i], 0, NULL), NULL, 0));
    }
    scene->options = (struct sluice_connect_attr){.size = sizeof(scene->options)};
    scene->options.secret_file = "";
}

static void scene_close(struct scene *scene)
{
    sluice_listener_close(scene->listener);
    sluice_multichannel_close(scene->all[0]);
    sluice_multichannel_close(scene->all[1]);
    sides_close(&scene->sides);
}

static int connect_to(const struct scene *scene, const char *address, int64_t deadline)
{
    uint32_t peer;
    return sluice_connect_into(address, scene->all[1], &scene->options, deadline, &peer, 1);
}

static int connect_to_none(struct scene *scene)
{
    return connect_to(scene, "no address", DEADLINE);
}

/* Connects to a port that was free, and is free again. */
static int connect_to_nobody(struct scene *scene)
{
    struct sluice_listener *listener = listen_with("127.0.0.1:0", "");
    char address[64];
    snprintf(address, sizeof(address), "127.0.0.1:%d", sluice_listener_address(listener, NULL, 0));
    sluice_listener_close(listener);
    return connect_to(scene, address, DEADLINE);
}

/* The listener lets no client in. */
static int connect_late(struct scene *scene)
{
    char address[64];
    (void)!sluice_listener_address(scene->listener, address, sizeof(address));
    return connect_to(scene, address, SLUICE_MS(50));
}

static int connect_without_secret(struct scene *scene)
{
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = "/nowhere"};
    uint32_t peer;
    return sluice_connect_into("127.0.0.1:1", scene->all[1], &options, 0, &peer, 1);
}

/* Lets in as many peers as asked for, within the deadline. */
static int let_in(struct scene *scene, uint32_t count, int64_t deadline, int wanted)
{
    uint32_t peers[2];
    struct sluice_incoming *incoming =
        client_meet(&scene->client, scene->listener, scene->all[1], 1);
    errno = EXDEV;
    int error = sluice_incoming_accept_into(incoming, scene->all[0], NULL, deadline, peers, count);
    int after = errno;
    client_join(&scene->client, wanted);
    errno = after;
    return error;
}

static int accept_one(struct scene *scene)
{
    return let_in(scene, 1, DEADLINE, 0);
}

static int accept_two(struct scene *scene)
{
    return let_in(scene, 2, DEADLINE, -ECONNREFUSED);
}

static int accept_late(struct scene *scene)
{
    return let_in(scene, 1, 0, -ECONNREFUSED);
}

static int accept_no_one(struct scene *scene)
{
    uint32_t peer;
    return sluice_incoming_accept_into(NULL, scene->all[0], NULL, 0, &peer, 1);
}

static int query(struct scene *scene)
{
    struct sluice_incoming_info info = {.size = sizeof(info)};
    struct sluice_incoming *incoming =
        client_meet(&scene->client, scene->listener, scene->all[1], 1);
    errno = EXDEV;
    int error = sluice_incoming_query(incoming, &info);
    sluice_incoming_refuse(incoming, "no");
    int after = errno;
    client_join(&scene->client, -ECONNREFUSED);
    errno = after;
    return error;
}

static int query_none(struct scene *scene)
{
    (void)scene;
    return sluice_incoming_query(NULL, NULL);
}

static int wake(struct scene *scene)
{
    return sluice_listener_wake(scene->listener);
}

static int wake_none(struct scene *scene)
{
    (void)scene;
    return sluice_listener_wake(NULL);
}

static int look_at_fd(struct scene *scene)
{
    return sluice_listener_fd(scene->listener) >= 0 ? 0 : -1;
}

static int address_without_room(struct scene *scene)
{
    char text[4];
    return sluice_listener_address(scene->listener, text, sizeof(text));
}

static int close_listener(struct scene *scene)
{
    sluice_listener_close(scene->listener);
    scene->listener = NULL;
    return 0;
}

/* Each call that returns no object, in success and in failure. */
static const struct {
    int (*call)(struct scene *scene);
    int result;
} calls[] = {
    {connect_to_none, -EINVAL},
    {connect_to_nobody, -ECONNREFUSED},
    {connect_late, -ETIMEDOUT},
    {connect_without_secret, -EINVAL},
    {accept_one, 0},
    {accept_two, -EINVAL},
    {accept_late, -ETIMEDOUT},
    {accept_no_one, -EINVAL},
    {query, 0},
    {query_none, -EINVAL},
    {wake, 0},
    {wake_none, -EINVAL},
    {look_at_fd, 0},
    {address_without_room, -ERANGE},
    {close_listener, 0},
};

TEST(errno_stays)
{
    struct scene scene;
    scene_open(&scene);
    for (size_t i = 0; i < COUNT(calls); i++) {
        errno = EXDEV;
        int result = calls[i].call(&scene);
        require(errno == EXDEV, "call %zu: errno is %d", i, errno);
        require(result == calls[i].result, "call %zu: %d, %s", i, result, sluice_last_error());
    }
    scene_close(&scene);
}

/* A client falls silent, or the listener of one does; each is named by its address. */
TEST(silent_side_is_named)
{
    struct scene scene;
    uint32_t peers[2];
    scene_open(&scene);
    /* The client gives up before it is let in, which the listener has not noticed. */
    client_init(&scene.client, scene.listener, NULL, "");
    scene.client.into = scene.all[1];
    scene.client.count = 1;
    scene.client.deadline = SLUICE_MS(300);
    client_start(&scene.client);
    struct sluice_incoming *incoming = made(sluice_listener_next(scene.listener, DEADLINE));
    client_join(&scene.client, -ETIMEDOUT);
    require_words(scene.client.text, "127.0.0.1:");
    require_error(sluice_incoming_accept_into(incoming, scene.all[0], NULL, DEADLINE, peers, 1),
                  -ECONNRESET, "127.0.0.1:");
    /* An invalid port. */
    require_null(sluice_listen("127.0.0.1:99999", NULL), EINVAL, "not in 0..65535");
    require_error(connect_to(&scene, "127.0.0.1:99999", 0), -EINVAL, "not in 1..65535");
    scene_close(&scene);
}

/* The call does not wait for a client, and a client that has come does not learn of the mistake. */
TEST(mistakes_come_first)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .service_level = 99};
    struct scene scene;
    uint32_t peer;
    scene_open(&scene);
    require_null(sluice_accept(scene.listener, NULL, NULL, SLUICE_FOREVER), EINVAL, "domain");
    require_null(sluice_accept(scene.listener, scene.sides.pds[0], &attr, SLUICE_FOREVER), EINVAL,
                 "service_level");
    require_null(sluice_connect("no.name.invalid:1", NULL, NULL, &scene.options, SLUICE_FOREVER),
                 EINVAL, "domain");
    require_null(sluice_connect("no.name.invalid:1", scene.sides.pds[0], &attr, &scene.options,
                                SLUICE_FOREVER),
                 EINVAL, "service_level");
    struct sluice_incoming *incoming = client_meet(&scene.client, scene.listener, scene.all[1], 1);
    require_null(sluice_incoming_accept(incoming, NULL, NULL, NULL, DEADLINE), EINVAL, "domain");
    client_join(&scene.client, -ECONNREFUSED);
    require_words(scene.client.text, "refused us: its program could not let us in");
    /* The same holds for a multichannel with an open scope. */
    struct sluice_scope *scope = made(sluice_multichannel_scope_begin(scene.all[0], DEADLINE));
    incoming = client_meet(&scene.client, scene.listener, scene.all[1], 1);
    require_error(sluice_incoming_accept_into(incoming, scene.all[0], NULL, DEADLINE, &peer, 1),
                  -EBUSY, "multichannel");
    client_join(&scene.client, -ECONNREFUSED);
    require_words(scene.client.text, "refused us: its program could not let us in");
    require_ok(sluice_scope_end(scope, NULL));
    scene_close(&scene);
}

int main(void)
{
    return RUN_GROUPS("told", {"self", WIRE_SELF, 60});
}
