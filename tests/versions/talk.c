/* SPDX-License-Identifier: MIT */
/*
 * Two of these processes talk to each other, each with a library of another version:
 *
 *   talk SIDE WHAT FOLDER
 *
 * SIDE is 0 or 1; WHAT is a name of the table at the end; what the two need to find each other goes
 * through files of FOLDER. Prints "ok LEVEL", or the text of the first error. It uses only calls
 * that every version since the oldest one of tests/check-versions.sh has.
 */
#include "talk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *folder;
int side;
int64_t deadline = SLUICE_S(DEADLINE_SECONDS);

int complain(const char *what)
{
    printf("%s: %s\n", what, sluice_last_error());
    return -1;
}

int differ(const char *what)
{
    printf("%s: other bytes than were sent\n", what);
    return -1;
}

static void name_file(char path[PATH_BYTES], const char *name, int of, const char *end)
{
    snprintf(path, PATH_BYTES, "%s/%s-%d%s", folder, name, of, end);
}

int give(const char *name, const void *bytes, size_t count)
{
    char path[PATH_BYTES], last[PATH_BYTES];
    FILE *file;
    int result = -1;

    name_file(path, name, side, ".new");
    name_file(last, name, side, "");
    file = fopen(path, "w");
    if (file != NULL && fwrite(bytes, 1, count, file) == count)
        result = 0;
    if (file == NULL || fclose(file) != 0 || rename(path, last) != 0)
        result = -1;
    if (result != 0)
        printf("%s: %s\n", path, strerror(errno));
    return result;
}

/* Polls for the file of the other process, for as long as a call would wait. */
int take(const char *name, void *bytes, size_t count)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    char path[PATH_BYTES];
    time_t until = time(NULL) + (time_t)(deadline / SLUICE_S(1));
    FILE *file = NULL;
    int result;

    name_file(path, name, 1 - side, "");
    while (file == NULL && time(NULL) < until) {
        file = fopen(path, "r");
        if (file == NULL)
            nanosleep(&pause, NULL);
    }
    result = file != NULL && fread(bytes, 1, count, file) == count ? 0 : -1;
    if (file != NULL)
        fclose(file);
    else
        printf("the other process has not given %s\n", name);
    return result;
}

int meet(const char *name)
{
    char byte = 0;

    return give(name, &byte, 1) == 0 ? take(name, &byte, 1) : -1;
}

void fill(uint8_t *bytes, size_t count, int of, uint32_t salt)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + salt * 31 + (uint32_t)of * 101 + 1);
}

int is_filled(const uint8_t *bytes, size_t count, int of, uint32_t salt)
{
    uint8_t *wanted = malloc(count);
    int equal;

    if (wanted == NULL)
        return 0;
    fill(wanted, count, of, salt);
    equal = memcmp(bytes, wanted, count) == 0;
    free(wanted);
    return equal;
}

int open_device(struct device *device, size_t bytes)
{
    const uint32_t access = SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ |
                            SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC;

    device->context = sluice_context_open(getenv("SLUICE_TEST_DEVICE"), NULL);
    device->pd = device->context != NULL ? sluice_pd_alloc(device->context) : NULL;
    device->mr = device->pd != NULL ? sluice_mr_alloc(device->pd, bytes, access) : NULL;
    if (device->mr == NULL)
        return complain("set up");
    device->memory = sluice_mr_addr(device->mr);
    return 0;
}

void close_device(struct device *device)
{
    sluice_mr_deregister(device->mr);
    sluice_pd_free(device->pd);
    sluice_context_close(device->context);
}

static const struct {
    const char *name;
    int (*run)(void);
} table[] = {
    {"pair", talk_pair},   {"striped", talk_striped}, {"connect", talk_connect},
    {"agent", talk_agent}, {"buffer", talk_buffer},   {"exchange", talk_exchange},
    {"relay", talk_relay}, {"node", talk_node},       {"lazy", talk_lazy},
};

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: talk 0|1 WHAT FOLDER\n");
        return 2;
    }
    if (getenv("TALK_SECONDS") != NULL)
        deadline = SLUICE_S(atoi(getenv("TALK_SECONDS")));
    side = argv[1][0] == '1';
    folder = argv[3];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].name, argv[2]) != 0)
            continue;
        if (table[i].run() != 0)
            return EXIT_FAILURE;
        printf("ok\n");
        return EXIT_SUCCESS;
    }
    fprintf(stderr, "talk: no %s\n", argv[2]);
    return 2;
}
