/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../support/memory.h"
#include "crowd.h"

struct client {
    struct board *board;
    uint32_t number;
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct memory memory; /* a window, and behind it a line */
    struct sluice_channel *channel;
    struct sluice_remote_mr window;
};

uint64_t asked_key(const struct line *line)
{
    return pattern_key(line->number, line->round, 1);
}

uint64_t answered_key(const struct line *line)
{
    return pattern_key(line->number, line->round, 2);
}

/* Ends this process; the server fails the test with the text of the first one. */
static void give_up(struct board *board, uint32_t number, const char *what)
{
    if (atomic_fetch_add(&board->failed, 1) == 0) {
        snprintf(board->failure, sizeof(board->failure), "client %u: %s: %s", number, what,
                 sluice_last_error());
    }
    _exit(EXIT_FAILURE);
}

static void expect(const struct client *client, bool done, const char *what)
{
    if (!done) {
        give_up(client->board, client->number, what);
    }
}

static void come(struct client *client)
{
    struct line hello = {.number = client->number};
    struct sluice_private_data own = {.bytes = sizeof(hello)};
    struct sluice_private_data peer = {0};
    struct sluice_connect_attr options = {
        .size = sizeof(options), .secret_file = "", .own = &own, .peer = &peer};
    struct sluice_remote_mr all;
    memcpy(own.data, &hello, sizeof(hello));
    client->context = sluice_context_open(test_device(), NULL);
    expect(client, client->context != NULL, "open");
    client->pd = sluice_pd_alloc(client->context);
    expect(client, client->pd != NULL, "domain");
    memory_open(&client->memory, client->pd, WINDOW + sizeof(struct line));
    client->channel = sluice_connect(client->board->address, client->pd, NULL, &options, LIFE);
    expect(client, client->channel != NULL, "connect");
    expect(client,
           peer.bytes == SLUICE_REMOTE_MR_BYTES && sluice_remote_mr_unpack(peer.data, &all) == 0 &&
               sluice_remote_mr_slice(&all, (uint64_t)client->number * WINDOW, WINDOW,
                                      &client->window) == 0,
           "window");
}

/*
 * Writes into the server's window, sends a request, waits for the answer, and reads what the server
 * wrote there.
 */
static void ask(struct client *client, uint32_t round)
{
    struct line line = {client->number, round};
    struct sluice_sge window = memory_sge(&client->memory, 0, WINDOW);
    struct sluice_sge word = memory_sge(&client->memory, WINDOW, sizeof(line));
    struct sluice_completion done;
    uint8_t wanted[WINDOW];
    pattern_fill(client->memory.bytes, WINDOW, asked_key(&line));
    memcpy(client->memory.bytes + WINDOW, &line, sizeof(line));
    expect(client, sluice_channel_write(client->channel, &window, 1, &client->window, LIFE) == 0,
           "write");
    expect(client, sluice_channel_send(client->channel, &word, 1, LIFE) == 0, "ask");
    memset(client->memory.bytes, 0, WINDOW + sizeof(line));
    expect(client, sluice_channel_receive(client->channel, &word, 1, LIFE, &done) == 0, "answer");
    expect(client,
           done.bytes == sizeof(line) &&
               memcmp(client->memory.bytes + WINDOW, &line, sizeof(line)) == 0,
           "a wrong answer");
    expect(client, sluice_channel_read(client->channel, &window, 1, &client->window, LIFE) == 0,
           "read");
    pattern_fill(wanted, WINDOW, answered_key(&line));
    expect(client, memcmp(client->memory.bytes, wanted, WINDOW) == 0, "wrong bytes");
}

void run_client(struct board *board, uint32_t number, bool victim)
{
    struct client client = {.board = board, .number = number};
    come(&client);
    for (uint32_t round = 1; victim || round <= ROUNDS; round++) {
        ask(&client, round);
    }
    expect(&client, sluice_channel_send(client.channel, NULL, 0, LIFE) == 0, "goodbye");
    sluice_channel_close(client.channel);
    memory_close(&client.memory);
    sluice_pd_free(client.pd);
    sluice_context_close(client.context);
    exit(EXIT_SUCCESS); /* not _exit(): the sanitizers look for leaks at exit */
}
