/* SPDX-License-Identifier: MIT */
/*
 * Bandwidth from one process to another of this host: unpolled writes, or
 * reads, as many in flight as the queue has room for, each with its completion.
 *
 *   bench/stream [-p] [-b BYTES] [-n MESSAGES] [-t DEPTH] [-o READS] write|read
 *
 * As ib_write_bw and ib_read_bw have it: one message after the other at the
 * same place, the time from the first post to the last completion. DEPTH is the
 * room of the send queue (128), READS the reads in flight on the wire (16). With
 * -p each process stays on a processor of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

#define MOST_BYTES (UINT32_C(1) << 23)
#define MOST_MESSAGES UINT32_C(1000000)
/* Completions a poll. */
#define BATCH 16

static uint32_t bytes = 65536, messages = 1000, depth = 128, reads = 16;
static uint32_t opcode = SLUICE_OP_NONE;

static int stream(struct pair *pair)
{
    struct sluice_completion completions[BATCH];
    struct sluice_sge sge;
    struct sluice_request request = {.opcode = opcode, .sges = &sge, .sge_count = 1};
    uint32_t posted = 0, done = 0;

    if (sluice_mr_sge(pair->mr, 0, bytes, &sge) != 0 ||
        sluice_remote_mr_slice(&pair->remote, bytes, bytes, &request.remote) != 0)
        return pair_complain(pair, "name the memory");
    while (done < messages) {
        int count;

        for (; posted < messages && posted - done < depth; posted++)
            if (sluice_channel_post(pair->channel, &request, 1, PAIR_DEADLINE, NULL) != 1)
                return pair_complain(pair, "post");
        count = sluice_channel_poll(pair->channel, completions, BATCH);
        if (count < 0)
            return pair_complain(pair, "poll");
        for (int i = 0; i < count; i++, done++)
            if (completions[i].error != 0) {
                fprintf(stderr, "stream: message %u failed: %s\n", done,
                        sluice_status_name(completions[i].status));
                return -1;
            }
    }
    return 0;
}

/* Only one side does anything; the other's device takes part, and its program sleeps. */
static int play(struct pair *pair)
{
    struct pair_clock begin, end;

    if (pair_meet(pair) != 0)
        return -1;
    if (!pair->serves)
        return 0;
    begin = pair_clock();
    if (stream(pair) != 0)
        return -1;
    end = pair_clock();
    printf("%-5s %8u bytes  %10.3f MiB/s  (mean of %u, %u in flight)\n",
           opcode == SLUICE_OP_WRITE ? "write" : "read", bytes,
           (double)bytes * messages / (end.seconds - begin.seconds) / (1 << 20), messages, depth);
    return 0;
}

int main(int argc, char **argv)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .max_sge = 1};
    int option, right = 1;

    while ((option = getopt(argc, argv, "b:n:po:t:")) != -1) {
        if (option == 'b')
            bytes = pair_number("stream", 'b', optarg, MOST_BYTES);
        else if (option == 'n')
            messages = pair_number("stream", 'n', optarg, MOST_MESSAGES);
        else if (option == 't')
            depth = pair_number("stream", 't', optarg, 16384);
        else if (option == 'p')
            pair_pinned = 1;
        else if (option == 'o')
            reads = pair_number("stream", 'o', optarg, 128);
        else
            right = 0;
    }
    if (optind + 1 == argc && strcmp(argv[optind], "write") == 0)
        opcode = SLUICE_OP_WRITE;
    else if (optind + 1 == argc && strcmp(argv[optind], "read") == 0)
        opcode = SLUICE_OP_READ;
    if (!right || opcode == SLUICE_OP_NONE) {
        fprintf(stderr, "usage: stream [-p] [-b BYTES] [-n MESSAGES] [-t DEPTH] [-o READS] "
                        "write|read\n");
        return 2;
    }
    attr.send_depth = depth;
    attr.read_depth = reads;
    return pair_run("stream", &attr, 2 * (size_t)bytes, play);
}
