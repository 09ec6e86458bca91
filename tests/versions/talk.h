/* SPDX-License-Identifier: MIT */
/* Shared by the files of the program talk. */
#ifndef TALK_H
#define TALK_H

#include <stddef.h>
#include <stdint.h>

#include <sluice.h>

/* Of every call; longer than any takes that succeeds. TALK_SECONDS replaces it. */
#define DEADLINE_SECONDS 20
#define DEADLINE (deadline)
#define PATH_BYTES 512

extern int side;
extern int64_t deadline;

struct device {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr;
    uint8_t *memory;
};

/* Print a text. Return -1. */
int complain(const char *what);
int differ(const char *what);
/* Pass bytes to the other process, by files. meet() returns when both are there. */
int give(const char *name, const void *bytes, size_t count);
int take(const char *name, void *bytes, size_t count);
int meet(const char *name);
/* The bytes that a side sends; salt tells messages apart. */
void fill(uint8_t *bytes, size_t count, int of, uint32_t salt);
int is_filled(const uint8_t *bytes, size_t count, int of, uint32_t salt);

int open_device(struct device *device, size_t bytes);
void close_device(struct device *device);

/* channels.c: everything that a channel can move, by endpoints and by address. */
int talk_pair(void);
int talk_striped(void);
int talk_connect(void);
/* services.c */
int talk_agent(void);
int talk_buffer(void);
/* ranks.c */
int talk_exchange(void);
int talk_relay(void);
int talk_node(void);
int talk_lazy(void);

#endif
