/* SPDX-License-Identifier: MIT */
/* The hosts of a job, and which ranks each of them has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"

#define MOST_HOST 255

struct list {
    struct place *places; /* count is 0 where none was given */
    uint32_t count, room;
    bool counted, uncounted; /* some host has a number of ranks, or has none */
};

uint32_t read_count(const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    return text[0] >= '1' && text[0] <= '9' && *end == '\0' && number <= MOST_RANKS
               ? (uint32_t)number
               : 0;
}

static struct place *add_place(struct list *list)
{
    if (list->count == list->room) {
        uint32_t room = list->room == 0 ? 16 : 2 * list->room;
        struct place *places = realloc(list->places, room * sizeof *places);

        if (places == NULL)
            die(STATUS_ARGUMENTS, "no memory for %u hosts", room);
        list->places = places;
        list->room = room;
    }
    list->places[list->count] = (struct place){0};
    return &list->places[list->count++];
}

static void check_host(const struct list *list, const char *where, const char *host)
{
    size_t length = strlen(host);

    if (length == 0 || host[0] == '-' || host[0] == '@' || host[length - 1] == '@' ||
        strpbrk(host, " \t'\"\\;&|<>$`()[]{}*?~#") != NULL)
        die(STATUS_ARGUMENTS, "%s: '%s' is not a host", where, host);
    for (uint32_t i = 0; i < list->count; i++)
        if (list->places[i].host != NULL && strcmp(list->places[i].host, host) == 0)
            die(STATUS_ARGUMENTS, "%s: %s is named twice: give all its ranks at once", where, host);
}

/*
 * Adds "host", "host:4", "[::1]:4" or "::1"; with a user before it, if there is one. slots: the
 * number, if it stands elsewhere.
 */
static void add_host(struct list *list, const char *where, const char *text, const char *slots)
{
    const char *open = strchr(text, '['), *close = open != NULL ? strchr(open, ']') : NULL;
    const char *colon = close != NULL ? close + 1 : strchr(text, ':');
    char host[MOST_HOST + 1];
    struct place *place;
    int length = close != NULL ? (int)(close - open - 1) : (int)strlen(text);

    if (close != NULL && *colon != '\0' && *colon != ':')
        die(STATUS_ARGUMENTS, "%s: '%s' is not a host", where, text);
    if (close == NULL && colon != NULL && colon == strrchr(text, ':'))
        length = (int)(colon - text);
    else if (close == NULL)
        colon = NULL; /* an IPv6 address, or no number */
    if (colon != NULL && *colon == ':')
        slots = colon + 1;
    if (snprintf(host, sizeof host, "%.*s%.*s", close != NULL ? (int)(open - text) : 0, text,
                 length, close != NULL ? open + 1 : text) >= (int)sizeof host)
        die(STATUS_ARGUMENTS, "%s: '%s' is too long", where, text);
    check_host(list, where, host);
    place = add_place(list);
    place->host = strdup(host);
    place->count = slots != NULL ? read_count(slots) : 0;
    if (place->host == NULL)
        die(STATUS_ARGUMENTS, "no memory for host %s", host);
    if (slots != NULL && place->count == 0)
        die(STATUS_ARGUMENTS, "%s: the ranks of %s must be 1 to %d, not '%s'", where, host,
            MOST_RANKS, slots);
    *(slots != NULL ? &list->counted : &list->uncounted) = true;
}

/* Gives each host its ranks, one after the other. count: 0 for as many as the hosts have. */
static void distribute(struct list *list, struct job *job, uint32_t count)
{
    uint64_t sum = 0;
    uint32_t used = 0, hosts = 0;

    if (list->count == 0)
        die(STATUS_ARGUMENTS, "no host is named");
    if (list->counted && list->uncounted)
        die(STATUS_ARGUMENTS, "give each host a number of ranks, or none");
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->uncounted && count > 0)
            list->places[i].count = count / list->count + (i < count % list->count);
        else if (list->uncounted)
            list->places[i].count = 1;
        sum += list->places[i].count;
    }
    if (count == 0 && sum > MOST_RANKS)
        die(STATUS_ARGUMENTS, "how many ranks must be 1 to %d", MOST_RANKS);
    if (count > sum)
        die(STATUS_ARGUMENTS, "-n is %u, but the hosts have %u ranks", count, (unsigned)sum);
    job->ranks = count > 0 ? count : (uint32_t)sum;
    for (; hosts < list->count && used < job->ranks; hosts++) {
        struct place *place = &list->places[hosts];

        place->first = used;
        if (place->count > job->ranks - used)
            place->count = job->ranks - used;
        used += place->count;
    }
    job->places = list->places;
    job->place_count = hosts;
}

void places_read_list(struct job *job, const char *text, uint32_t count)
{
    struct list list = {0};
    char *copy = strdup(text), *rest = copy, *word;

    if (copy == NULL)
        die(STATUS_ARGUMENTS, "no memory for the hosts");
    while ((word = strsep(&rest, ",")) != NULL) {
        if (word[0] == '\0')
            die(STATUS_ARGUMENTS, "--hosts: a host is missing in '%s'", text);
        add_host(&list, "--hosts", word, NULL);
    }
    free(copy);
    distribute(&list, job, count);
}

/* Reads "host", "host:4" or "host slots=4"; a # begins a comment. */
static void read_line(struct list *list, const char *where, char *line)
{
    char *rest = NULL, *host, *slots;

    line[strcspn(line, "#\r\n")] = '\0';
    host = strtok_r(line, " \t", &rest);
    slots = host != NULL ? strtok_r(NULL, " \t", &rest) : NULL;
    if (slots != NULL && (strncmp(slots, "slots=", 6) != 0 || strtok_r(NULL, " \t", &rest) != NULL))
        die(STATUS_ARGUMENTS, "%s: a line must be 'host', 'host:4' or 'host slots=4'", where);
    if (host != NULL)
        add_host(list, where, host, slots != NULL ? slots + 6 : NULL);
}

void places_read_file(struct job *job, const char *path, uint32_t count)
{
    FILE *file = fopen(path, "re");
    struct list list = {0};
    char *line = NULL, where[512];
    size_t room = 0;
    unsigned number = 0;

    if (file == NULL)
        die(STATUS_ARGUMENTS, "--hostfile %s: %s", path, strerror(errno));
    while (getline(&line, &room, file) >= 0) {
        snprintf(where, sizeof where, "%s:%u", path, ++number);
        read_line(&list, where, line);
    }
    if (ferror(file))
        die(STATUS_ARGUMENTS, "--hostfile %s cannot be read", path);
    free(line);
    fclose(file);
    distribute(&list, job, count);
}

void place_address(const struct place *place, char *text, size_t size)
{
    const char *at = strchr(place->host, '@');

    snprintf(text, size, "%s", at != NULL ? at + 1 : place->host);
}
