/* SPDX-License-Identifier: MIT */
/*
 * Host files: a JSON object whose "hosts" array has an object for each rank, in any order. People
 * write them by hand, so each error names the line. An integer "version", which is 1 if it is not
 * there, says from which version on the file can be read; keys that are not known are ignored.
 */
#include "config.h"

#include <string.h>

#include "base/environment.h"
#include "connect/address.h"
#include "exchange/exchange.h"

#ifndef HAVE_JANSSON

int slu_host_file_read(const char *path, struct slu_launch *launch)
{
    (void)launch;
    return slu_fail(EOPNOTSUPP, "host file %.128s: this library was built without jansson", path);
}

#else

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Enough for SLUICE_MAX_RANKS hosts with comments. A larger file is not a host file. */
#define MOST_BYTES ((off_t)64 << 20)
#define VERSION 1
#define PLACE_BYTES sizeof(((struct slu_launch *)NULL)->root)

struct host {
    const char *hostname, *device; /* owned by the document; device may be NULL */
    uint32_t port, rank;
    uint32_t line; /* where the object begins; 0: not known */
};

struct host_file {
    const char *path;
    char *text;
    json_t *document;
    struct host *hosts; /* sorted by rank once all are read */
    size_t count;
};

/* Fails with -EINVAL and "FILE:LINE: host of rank R: " before the words. */
static int fail_host(const struct host_file *file, const struct host *host, const char *words)
{
    char rank[32] = "";

    if (host->rank != SLU_RANK_UNKNOWN)
        snprintf(rank, sizeof rank, " of rank %u", host->rank);
    return slu_fail(EINVAL, "host file %.128s:%u: host%s: %s", file->path, host->line, rank, words);
}

static int read_text(struct host_file *file)
{
    struct stat status;
    size_t used = 0;
    int error = 0;
    /* With O_NONBLOCK, opening a pipe does not wait for its other end. */
    int fd = slu_fd_open(file->path, O_RDONLY | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &status) < 0) {
        error =
            slu_fail(EINVAL, "host file %.128s cannot be read: %s", file->path, strerror(errno));
    } else if (!S_ISREG(status.st_mode) || status.st_size > MOST_BYTES) {
        error = slu_fail(EINVAL, "host file %.128s is not a regular file of at most %lld bytes",
                         file->path, (long long)MOST_BYTES);
    } else {
        file->text = calloc(1, (size_t)status.st_size + 1);
        if (file->text == NULL)
            error = slu_fail(ENOMEM, "no memory for host file %.128s", file->path);
    }
    while (error == 0 && used < (size_t)status.st_size) {
        ssize_t got = read(fd, file->text + used, (size_t)status.st_size - used);

        if (got < 0 && errno != EINTR)
            error = slu_fail(EINVAL, "host file %.128s cannot be read: %s", file->path,
                             strerror(errno));
        if (got == 0)
            break;
        used += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    return error;
}

/* Returns the closing quote of the string that begins here. */
static const char *end_of_string(const char *at)
{
    for (at++; *at != '"' && at[1] != '\0'; at++)
        if (*at == '\\')
            at++;
    return at;
}

/* Tells whether this string is "hosts" and a key: a colon follows. */
static bool is_key(const char *at, const char *end)
{
    const char *next = *end == '"' ? end + 1 + strspn(end + 1, " \t\r\n") : end;

    return end - at == 6 && memcmp(at, "\"hosts", 6) == 0 && *next == ':';
}

/*
 * Sets the lines of the hosts. The JSON decoder does not keep line numbers, so they are counted in
 * the text, which is known to be valid by now. In the array after the key "hosts" at depth 1 (0 is
 * outside), an entry begins after the opening bracket and after each comma at depth 2.
 */
static void find_lines(struct host_file *file)
{
    uint32_t line = 1, depth = 0;
    size_t found = 0;
    bool key = false, within = false, begins = false;

    for (const char *at = file->text; *at != '\0' && found < file->count; at++) {
        if (*at == '\n')
            line++;
        if (begins && strchr(" \t\r\n", *at) == NULL) {
            file->hosts[found++].line = line;
            begins = false;
        }
        if (*at == '"') {
            const char *end = end_of_string(at);

            key = key || (depth == 1 && is_key(at, end));
            at = end;
        } else if (*at == '{' || *at == '[') {
            within = within || (key && depth == 1);
            begins = within && depth == 1;
            depth++;
        } else if (*at == '}' || *at == ']') {
            depth--;
        } else if (*at == ',') {
            begins = within && depth == 2;
        }
    }
}

static void warn_unknown_keys(const struct host_file *file, const struct host *host, json_t *entry)
{
    static const char *const known[] = {"comment", "hostname", "ibdev", "port", "rankid"};
    const char *key;
    json_t *value;

    json_object_foreach(entry, key, value)
    {
        bool found = false;

        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            found = found || strcmp(known[i], key) == 0;
        if (!found)
            slu_log(SLUICE_LOG_WARN, "host file %.128s:%u: \"%.64s\" is not known, and ignored",
                    file->path, host->line, key);
    }
}

/* Writes "host:port", where the other ranks reach rank 0. */
static void write_place(const struct host *host, char place[PLACE_BYTES])
{
    snprintf(place, PLACE_BYTES, strchr(host->hostname, ':') != NULL ? "[%s]:%u" : "%s:%u",
             host->hostname, host->port);
}

static bool is_place(const struct host *host)
{
    char place[PLACE_BYTES];
    struct slu_host_port parsed;

    write_place(host, place);
    return slu_host_port_parse(place, 0, &parsed) == 0;
}

static int read_host(const struct host_file *file, json_t *entry, struct host *host)
{
    json_t *name = json_object_get(entry, "hostname");
    json_t *port = json_object_get(entry, "port");
    json_t *rank = json_object_get(entry, "rankid");
    json_t *device = json_object_get(entry, "ibdev");

    host->rank = SLU_RANK_UNKNOWN;
    if (!json_is_object(entry))
        return fail_host(file, host, "it must be an object");
    if (!json_is_integer(rank) || json_integer_value(rank) < 0 ||
        json_integer_value(rank) >= SLUICE_MAX_RANKS)
        return fail_host(file, host, "its \"rankid\" must be an integer of 0 to 65535");
    host->rank = (uint32_t)json_integer_value(rank);
    if (!json_is_string(name) || json_string_length(name) == 0 || json_string_length(name) > 200)
        return fail_host(file, host, "its \"hostname\" must be a string of 1 to 200 bytes");
    if (!json_is_integer(port) || json_integer_value(port) < 1 || json_integer_value(port) > 65535)
        return fail_host(file, host, "its \"port\" must be an integer of 1 to 65535");
    if (device != NULL && (!json_is_string(device) || json_string_length(device) > 63))
        return fail_host(file, host, "its \"ibdev\" must be a string of at most 63 bytes");
    host->hostname = json_string_value(name);
    host->port = (uint32_t)json_integer_value(port);
    host->device = json_string_value(device);
    if (!is_place(host))
        return fail_host(file, host, "its \"hostname\" is not the name or address of a host");
    warn_unknown_keys(file, host, entry);
    return 0;
}

static int compare_ranks(const void *a, const void *b)
{
    const struct host *left = a, *right = b;

    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->line > right->line) - (left->line < right->line);
}

/* Checks that the sorted ranks are 0 to count - 1. */
static int check_ranks(const struct host_file *file)
{
    char words[96];

    for (size_t i = 0; i < file->count; i++) {
        const struct host *host = &file->hosts[i];

        if (host->rank == i)
            continue;
        if (i == 0)
            snprintf(words, sizeof words, "the first rank must be 0");
        else if (host->rank < i)
            snprintf(words, sizeof words, "line %u has the same rank", file->hosts[i - 1].line);
        else
            snprintf(words, sizeof words, "no host has rank %zu", i);
        return fail_host(file, host, words);
    }
    return 0;
}

static int parse(struct host_file *file)
{
    json_error_t where;
    json_t *hosts, *version;
    int error = 0;

    file->document = json_loads(file->text, JSON_REJECT_DUPLICATES, &where);
    if (file->document == NULL)
        return slu_fail(EINVAL, "host file %.128s:%d:%d: %s", file->path, where.line, where.column,
                        where.text);
    version = json_object_get(file->document, "version");
    if (version != NULL && (!json_is_integer(version) || json_integer_value(version) < 1))
        return slu_fail(EINVAL, "host file %.128s: its \"version\" must be an integer from 1 on",
                        file->path);
    if (version != NULL && json_integer_value(version) > VERSION)
        return slu_fail(EINVAL,
                        "host file %.128s: can be read from version %lld on, and this library "
                        "reads version %d",
                        file->path, (long long)json_integer_value(version), VERSION);
    hosts = json_object_get(file->document, "hosts");
    if (!json_is_array(hosts))
        return slu_fail(EINVAL, "host file %.128s: it must be an object with an array \"hosts\"",
                        file->path);
    file->count = json_array_size(hosts);
    if (file->count == 0 || file->count > SLUICE_MAX_RANKS)
        return slu_fail(EINVAL, "host file %.128s: %zu hosts: must be 1 to %u", file->path,
                        file->count, SLUICE_MAX_RANKS);
    file->hosts = calloc(file->count, sizeof *file->hosts);
    if (file->hosts == NULL)
        return slu_fail(ENOMEM, "no memory for the %zu hosts of %.128s", file->count, file->path);
    find_lines(file);
    for (size_t i = 0; i < file->count && error == 0; i++)
        error = read_host(file, json_array_get(hosts, i), &file->hosts[i]);
    if (error < 0)
        return error;
    qsort(file->hosts, file->count, sizeof *file->hosts, compare_ranks);
    return check_ranks(file);
}

/* Either name may be the short form of the other. */
static bool same_host(const char *a, const char *b)
{
    size_t left = strcspn(a, "."), right = strcspn(b, ".");

    if (a[left] != '\0' && b[right] != '\0')
        return strcasecmp(a, b) == 0;
    return left == right && strncasecmp(a, b, left) == 0;
}

static int find_rank(const struct host_file *file, uint32_t *rank)
{
    char own[256] = "";
    size_t matches = 0;

    gethostname(own, sizeof own - 1);
    for (size_t i = 0; i < file->count; i++) {
        if (!same_host(file->hosts[i].hostname, own))
            continue;
        *rank = (uint32_t)i;
        matches++;
    }
    if (matches == 1)
        return 0;
    return slu_fail(EINVAL,
                    "host file %.128s: %zu of its hosts are this one, %.64s: set SLUICE_RANK",
                    file->path, matches, own);
}

/* Sets rank, ranks, root and device of the launch from the file. */
static int complete(const struct host_file *file, struct slu_launch *launch)
{
    const struct host *root = &file->hosts[0];
    uint32_t rank = launch->rank;
    const char *device;
    int error = 0;

    if (launch->ranks != 0 && launch->ranks != file->count)
        return slu_fail(EINVAL,
                        "host file %.128s has %zu host%s, but by %s there must be %u rank%s",
                        file->path, file->count, SLU_S(file->count), launch->source, launch->ranks,
                        SLU_S(launch->ranks));
    if (rank == SLU_RANK_UNKNOWN)
        error = find_rank(file, &rank);
    if (error < 0)
        return error;
    if (rank >= file->count)
        return slu_fail(EINVAL, "%s is %u, but host file %.128s has only %zu host%s",
                        launch->rank_source, rank, file->path, file->count, SLU_S(file->count));
    if (launch->rank == SLU_RANK_UNKNOWN)
        snprintf(launch->source, sizeof launch->source, "host file and name of this host");
    else if (launch->ranks == 0)
        snprintf(launch->source, sizeof launch->source, "%s and host file", launch->rank_source);
    launch->rank = rank;
    launch->ranks = (uint32_t)file->count;
    if (launch->root[0] == '\0')
        write_place(root, launch->root);
    device = file->hosts[rank].device;
    if (device != NULL && slu_env_value(SLU_ENV_DEVICE) == NULL)
        snprintf(launch->device, sizeof launch->device, "%s", device);
    return 0;
}

int slu_host_file_read(const char *path, struct slu_launch *launch)
{
    struct host_file file = {.path = path};
    int error = read_text(&file);

    if (error == 0)
        error = parse(&file);
    if (error == 0)
        error = complete(&file, launch);
    free(file.hosts);
    json_decref(file.document);
    free(file.text);
    return error;
}

#endif
