/* SPDX-License-Identifier: MIT */
/* The arguments. An error message says what is allowed. */
#include "config.h"

#include <getopt.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define USAGE                                                                               \
    "usage: sluice-perf [option ...] work ...\n"                                            \
    "       sluice-perf [option ...] work ... host   a client of the server on that host\n" \
    "       sluice-perf --server [--port N] [--address A] [--device D]\n"                   \
    "\n"                                                                                    \
    "  --size LIST        bytes: 8,4096 or a sweep 8:1M (8)\n"                              \
    "  --peers N          processes beside the one that measures (1)\n"                     \
    "  --iters N          iterations of each work and size\n"                               \
    "  --duration S       or seconds for each (1)\n"                                        \
    "  --warmup N         iterations that are not counted (a tenth, 10 to 1000)\n"          \
    "  --level L          blocking, scoped or posted (blocking)\n"                          \
    "  --window N         messages of a stream in flight to each peer (64)\n"               \
    "  --device D         such as soft or mlx5_0:1\n"                                       \
    "  --wire W           of soft between processes: auto, tcp or shm\n"                    \
    "  --wait W           adaptive, spin or event\n"                                        \
    "  --inline N         messages of at most N bytes are inline (0)\n"                     \
    "  --queue-pairs N    of each peer, to stripe large writes and reads over (1)\n"        \
    "  --stripe-least N   bytes of the shortest transfer that is striped (262144)\n"        \
    "  --dirty            the sender writes each message before it sends it\n"              \
    "  --validate         checks the contents of each message\n"                            \
    "  --waited           waits for a posted send before the answer\n"                      \
    "  --idle-peers N     connections beside the ones in use\n"                             \
    "  --deadline S       of each operation (60)\n"                                         \
    "  --pin              each process on a processor of its own\n"                         \
    "  --local            own peers, even where a launcher has started this\n"              \
    "  --json, --csv      instead of a table\n"                                             \
    "  --quiet            no progress\n"                                                    \
    "  --version, --help\n"                                                                 \
    "\nworks:\n"

enum {
    OPTION_ADDRESS = 256,
    OPTION_CSV,
    OPTION_DEADLINE,
    OPTION_DEVICE,
    OPTION_DIRTY,
    OPTION_DURATION,
    OPTION_HELP,
    OPTION_IDLE,
    OPTION_INLINE,
    OPTION_ITERS,
    OPTION_JSON,
    OPTION_LEVEL,
    OPTION_LOCAL,
    OPTION_PEERS,
    OPTION_PIN,
    OPTION_PORT,
    OPTION_QUEUE_PAIRS,
    OPTION_QUIET,
    OPTION_SERVER,
    OPTION_SIZE,
    OPTION_STRIPE_LEAST,
    OPTION_VALIDATE,
    OPTION_VERSION,
    OPTION_WAIT,
    OPTION_WAITED,
    OPTION_WARMUP,
    OPTION_WINDOW,
    OPTION_WIRE
};

static const struct option names[] = {
    {"address", required_argument, NULL, OPTION_ADDRESS},
    {"csv", no_argument, NULL, OPTION_CSV},
    {"deadline", required_argument, NULL, OPTION_DEADLINE},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"dirty", no_argument, NULL, OPTION_DIRTY},
    {"duration", required_argument, NULL, OPTION_DURATION},
    {"help", no_argument, NULL, OPTION_HELP},
    {"idle-peers", required_argument, NULL, OPTION_IDLE},
    {"inline", required_argument, NULL, OPTION_INLINE},
    {"iters", required_argument, NULL, OPTION_ITERS},
    {"json", no_argument, NULL, OPTION_JSON},
    {"level", required_argument, NULL, OPTION_LEVEL},
    {"local", no_argument, NULL, OPTION_LOCAL},
    {"peers", required_argument, NULL, OPTION_PEERS},
    {"pin", no_argument, NULL, OPTION_PIN},
    {"port", required_argument, NULL, OPTION_PORT},
    {"queue-pairs", required_argument, NULL, OPTION_QUEUE_PAIRS},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"server", no_argument, NULL, OPTION_SERVER},
    {"size", required_argument, NULL, OPTION_SIZE},
    {"stripe-least", required_argument, NULL, OPTION_STRIPE_LEAST},
    {"validate", no_argument, NULL, OPTION_VALIDATE},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"waited", no_argument, NULL, OPTION_WAITED},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"window", required_argument, NULL, OPTION_WINDOW},
    {"wire", required_argument, NULL, OPTION_WIRE},
    {NULL, 0, NULL, 0},
};

/* Reads the number of an option. */
static int read_number(const char *name, const char *text, uint64_t least, uint64_t most,
                       uint64_t *number)
{
    char *rest;
    unsigned long long value = strtoull(text, &rest, 10);

    if (*text < '0' || *text > '9' || *rest != '\0' || value < least || value > most) {
        fprintf(stderr, "sluice-perf: --%s %s: must be a number of %llu to %llu\n", name, text,
                (unsigned long long)least, (unsigned long long)most);
        return -1;
    }
    *number = value;
    return 0;
}

static int read_number32(const char *name, const char *text, uint32_t least, uint32_t most,
                         uint32_t *number)
{
    uint64_t value;

    if (read_number(name, text, least, most, &value) != 0)
        return -1;
    *number = (uint32_t)value;
    return 0;
}

static int read_seconds(const char *name, const char *text, int64_t *time)
{
    char *rest;
    double value = strtod(text, &rest);

    if (*text < '0' || *text > '9' || *rest != '\0' || !(value >= 0.001 && value <= 86400)) {
        fprintf(stderr, "sluice-perf: --%s %s: must be seconds, 0.001 to 86400\n", name, text);
        return -1;
    }
    *time = (int64_t)(value * 1e9);
    return 0;
}

/* Reads a word: its index in a list that ends with NULL. */
static int read_word(const char *name, const char *text, const char *const *words, uint32_t *place)
{
    for (uint32_t i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0) {
            *place = i;
            return 0;
        }
    fprintf(stderr, "sluice-perf: --%s %s: must be", name, text);
    for (uint32_t i = 0; words[i] != NULL; i++)
        fprintf(stderr, "%s %s", i == 0 ? "" : words[i + 1] == NULL ? " or" : ",", words[i]);
    fputc('\n', stderr);
    return -1;
}

/* Reads a number of bytes, perhaps with K, M or G; *end is what follows. Returns 0 if wrong. */
static uint64_t read_bytes(const char *text, const char **end)
{
    char *rest;
    unsigned long long value = *text >= '0' && *text <= '9' ? strtoull(text, &rest, 10) : 0;
    uint32_t shift = 0;

    if (value == 0 || value > PLAN_MOST_BYTES)
        return 0;
    if (*rest == 'K' || *rest == 'M' || *rest == 'G')
        shift = *rest == 'K' ? 10 : *rest == 'M' ? 20 : 30;
    *end = rest + (shift != 0 ? 1 : 0);
    return value << shift <= PLAN_MOST_BYTES ? value << shift : 0;
}

static int add_size(struct plan *plan, uint64_t size)
{
    if (plan->size_count == PLAN_SIZES)
        return -1;
    plan->sizes[plan->size_count++] = size;
    return 0;
}

/* Reads a size, "8", or a sweep in powers of two, "8:1M"; *end is what follows. */
static int read_sweep(struct plan *plan, const char *text, const char **end)
{
    uint64_t first = read_bytes(text, end), last = first;

    if (first != 0 && **end == ':')
        last = read_bytes(*end + 1, end);
    if (first == 0 || last < first)
        return -1;
    for (uint64_t size = first; size < last; size *= 2)
        if (add_size(plan, size) != 0)
            return -1;
    return add_size(plan, last);
}

static int read_sizes(struct plan *plan, const char *text)
{
    const char *at = text;

    plan->size_count = 0;
    while (read_sweep(plan, at, &at) == 0) {
        if (*at == '\0')
            return 0;
        if (*at++ != ',')
            break;
    }
    fprintf(stderr,
            "sluice-perf: --size %s: must be a list of 1 to %d sizes of 1 byte to 1G, such as "
            "8,4096,1M or 8:1M\n",
            text, PLAN_SIZES);
    return -1;
}

static int set_wire(const char *text)
{
    static const char *const wires[] = {"auto", "tcp", "shm", NULL};
    uint32_t place;

    if (read_word("wire", text, wires, &place) != 0)
        return -1;
    setenv("SLUICE_WIRE", text, 1);
    return 0;
}

static int read_flag(struct options *options, int option)
{
    switch (option) {
    case OPTION_CSV:
        options->format = FORMAT_CSV;
        return 0;
    case OPTION_JSON:
        options->format = FORMAT_JSON;
        return 0;
    case OPTION_DIRTY:
        options->plan.flags |= PLAN_DIRTY;
        return 0;
    case OPTION_VALIDATE:
        options->plan.flags |= PLAN_VALIDATE;
        return 0;
    case OPTION_WAITED:
        options->plan.flags |= PLAN_WAITED;
        return 0;
    case OPTION_PIN:
        options->plan.flags |= PLAN_PIN;
        return 0;
    case OPTION_LOCAL:
        options->local = true;
        return 0;
    case OPTION_QUIET:
        options->quiet = true;
        return 0;
    case OPTION_SERVER:
        options->serves = true;
        return 0;
    case OPTION_VERSION:
        printf("sluice-perf %s, library %s\n", PACKAGE_VERSION, sluice_version());
        return 1;
    case OPTION_HELP:
        fputs(USAGE, stdout);
        for (uint32_t i = 0; i < perf_work_count; i++)
            printf("  %-15s %s\n", perf_works[i].name, perf_works[i].what);
        return 1;
    default:
        return -1;
    }
}

static int read_option(struct options *options, int option, const char *text)
{
    static const char *const levels[] = {"blocking", "scoped", "posted", NULL};
    static const char *const waits[] = {"adaptive", "spin", "event", NULL};
    struct plan *plan = &options->plan;

    switch (option) {
    case OPTION_ADDRESS:
        options->address = text;
        return 0;
    case OPTION_DEADLINE:
        return read_seconds("deadline", text, &plan->deadline);
    case OPTION_DEVICE:
        options->device = text;
        return 0;
    case OPTION_DURATION:
        return read_seconds("duration", text, &plan->duration);
    case OPTION_IDLE:
        return read_number32("idle-peers", text, 0, PLAN_MOST_IDLE, &plan->idle_peers);
    case OPTION_INLINE:
        return read_number32("inline", text, 0, 1024, &plan->inline_bytes);
    case OPTION_ITERS:
        return read_number("iters", text, 1, UINT64_C(1000000000), &plan->iterations);
    case OPTION_LEVEL:
        return read_word("level", text, levels, &plan->level);
    case OPTION_PEERS:
        options->peers_given = true;
        return read_number32("peers", text, 1, 1023, &plan->peers);
    case OPTION_PORT:
        return read_number32("port", text, 1, 65535, &options->port);
    case OPTION_QUEUE_PAIRS:
        return read_number32("queue-pairs", text, 1, 8, &plan->queue_pairs);
    case OPTION_SIZE:
        return read_sizes(plan, text);
    case OPTION_STRIPE_LEAST:
        return read_number32("stripe-least", text, 1, INT32_MAX, &plan->stripe_least);
    case OPTION_WAIT:
        return read_word("wait", text, waits, &plan->wait_mode);
    case OPTION_WARMUP:
        return read_number("warmup", text, 1, UINT64_C(1000000000), &plan->warm_up);
    case OPTION_WINDOW:
        return read_number32("window", text, 1, PLAN_MOST_WINDOW, &plan->window);
    case OPTION_WIRE:
        return set_wire(text);
    default:
        return read_flag(options, option);
    }
}

static int find_work(const char *name)
{
    for (uint32_t i = 0; i < perf_work_count; i++)
        if (strcmp(perf_works[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* Returns whether a host of that name exists; otherwise it is rather a misspelt work. */
static bool is_host(const char *name)
{
    struct addrinfo *list = NULL;
    int error = getaddrinfo(name, NULL, NULL, &list);

    if (error == 0)
        freeaddrinfo(list);
    return error == 0;
}

/* Reads the works, and perhaps a host after them. */
static int read_words(struct options *options, int count, char **words)
{
    struct plan *plan = &options->plan;

    for (int i = 0; i < count; i++) {
        int work = find_work(words[i]);

        if (work < 0 && i > 0 && i == count - 1 && is_host(words[i])) {
            options->host = words[i];
        } else if (work < 0 && i > 0 && i == count - 1) {
            fprintf(stderr, "sluice-perf: %s: no such work, and no such host; --help lists works\n",
                    words[i]);
            return -1;
        } else if (work < 0) {
            fprintf(stderr, "sluice-perf: %s: no such work; --help lists them\n", words[i]);
            return -1;
        } else if (plan->work_count == PLAN_WORKS) {
            fprintf(stderr, "sluice-perf: more than %d works\n", PLAN_WORKS);
            return -1;
        } else {
            plan->works[plan->work_count++] = (uint32_t)work;
        }
    }
    return 0;
}

static int complain(const char *text)
{
    fprintf(stderr, "sluice-perf: %s\n", text);
    return -1;
}

static int complain_of(const char *argument, const char *text)
{
    fprintf(stderr, "sluice-perf: %s: %s; --help lists all\n", argument, text);
    return -1;
}

/* Checks for options that exclude each other. */
static int check(const struct options *options)
{
    const struct plan *plan = &options->plan;

    if (options->serves && plan->work_count != 0)
        return complain("--server gets its works from the client, and takes none itself");
    if (options->serves != (options->address != NULL) && options->address != NULL)
        return complain("--address needs --server");
    if (!options->serves && plan->work_count == 0)
        return complain("which work? --help lists them");
    if ((options->serves || options->host != NULL) && (options->peers_given || options->local))
        return complain("a client and its server are the only processes: no --peers, no --local");
    for (uint32_t i = 0; i < plan->work_count; i++) {
        const struct work *work = &perf_works[plan->works[i]];

        if ((work->flags & WORK_BLOCKING) != 0 && plan->level != LEVEL_BLOCKING) {
            fprintf(stderr, "sluice-perf: %s has no level but blocking\n", work->name);
            return -1;
        }
        for (uint32_t j = 0; j < plan->size_count && (work->flags & WORK_SIZELESS) == 0; j++)
            if (plan->sizes[j] < work->least) {
                fprintf(stderr, "sluice-perf: %s needs at least %u bytes\n", work->name,
                        work->least);
                return -1;
            }
    }
    return 0;
}

int options_read(struct options *options, int argc, char **argv)
{
    struct plan *plan = &options->plan;
    int option, result = 0;

    *options = (struct options){
        .plan = {.size = sizeof *plan, .peers = 1, .window = 64, .size_count = 1, .sizes = {8}},
        .port = 7471};
    snprintf(plan->version, sizeof plan->version, "%s", PACKAGE_VERSION);
    plan->duration = SLUICE_S(1);
    plan->deadline = SLUICE_S(60);
    opterr = 0;
    while (result == 0 && (option = getopt_long(argc, argv, ":", names, NULL)) != -1) {
        if (option == '?' || option == ':')
            return complain_of(argv[optind - 1],
                               option == ':' ? "it needs a value" : "no such option");
        result = read_option(options, option, optarg);
    }
    if (result == 0)
        result = read_words(options, argc - optind, argv + optind);
    return result == 0 ? check(options) : result;
}
