/* SPDX-License-Identifier: MIT */
/* The command line. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/probe.h"
#include "info.h"

#define MOST_SECONDS 86400

#define USAGE                                                                            \
    "usage: sluice-info [option ...] [section ...]\n"                                    \
    "\n"                                                                                 \
    "Prints what sluice sees of this host, its devices and this process, which device\n" \
    "it would open, and what is wrong.\n"                                                \
    "\n"                                                                                 \
    "  --json             as one JSON document\n"                                        \
    "  --probes           only the probes for tracers, see sluice_tracing(7)\n"          \
    "  --advice           only what is wrong: exit status 1 if something is\n"           \
    "  --device D         as if a program opened this one, such as soft or mlx5_0:1\n"   \
    "  --timeout S        seconds that everything may take (30)\n"                       \
    "  --version, --help\n"                                                              \
    "\n"                                                                                 \
    "sections, all by default:\n"

enum {
    OPTION_ADVICE = 256,
    OPTION_DEVICE,
    OPTION_HELP,
    OPTION_JSON,
    OPTION_PROBES,
    OPTION_TIMEOUT,
    OPTION_VERSION
};

static const struct option names[] = {
    {"advice", no_argument, NULL, OPTION_ADVICE},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"help", no_argument, NULL, OPTION_HELP},
    {"json", no_argument, NULL, OPTION_JSON},
    {"probes", no_argument, NULL, OPTION_PROBES},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

static int complain(const char *what, const char *text)
{
    fprintf(stderr, "sluice-info: %s: %s; --help lists all\n", what, text);
    return -1;
}

static int read_timeout(struct options *options, const char *text)
{
    char *rest;
    unsigned long value = strtoul(text, &rest, 10);

    if (*text < '0' || *text > '9' || *rest != '\0' || value == 0 || value > MOST_SECONDS) {
        fprintf(stderr, "sluice-info: --timeout %s: must be seconds, 1 to %d\n", text,
                MOST_SECONDS);
        return -1;
    }
    options->timeout = (uint32_t)value;
    return 0;
}

static int help(void)
{
    fputs(USAGE, stdout);
    for (uint32_t i = 0; i < info_section_count; i++)
        printf("  %-18s %s\n", info_sections[i].name, info_sections[i].title);
    return 1;
}

/* Lists the probes of the library built with this tool; another one may be loaded. */
static int list_probes(void)
{
#ifdef HAVE_PROBES
#define PRINT(name, arguments) puts("sluice:" #name "(" arguments ")");
    SLU_PROBES(PRINT)
#undef PRINT
#else
    puts("none: the library was built without sys/sdt.h, or with --disable-probes");
#endif
    return 1;
}

static int read_option(struct options *options, int option, const char *text)
{
    switch (option) {
    case OPTION_ADVICE:
        options->advice = true;
        return 0;
    case OPTION_DEVICE:
        options->device = text;
        return 0;
    case OPTION_HELP:
        return help();
    case OPTION_JSON:
        options->json = true;
        return 0;
    case OPTION_PROBES:
        return list_probes();
    case OPTION_TIMEOUT:
        return read_timeout(options, text);
    default:
        printf("sluice-info %s, library %s\n", PACKAGE_VERSION, sluice_version());
        return 1;
    }
}

static int find_section(const char *name)
{
    for (uint32_t i = 0; i < info_section_count; i++)
        if (strcmp(info_sections[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int read_sections(struct options *options, int count, char **words)
{
    for (int i = 0; i < count; i++) {
        int section = find_section(words[i]);

        if (section < 0)
            return complain(words[i], "no such section");
        options->sections |= UINT64_C(1) << section;
    }
    if (options->advice && count > 0)
        return complain("--advice", "it takes no sections");
    if (options->advice)
        options->sections = UINT64_C(1) << find_section("advice");
    else if (count == 0)
        options->sections = (UINT64_C(1) << info_section_count) - 1;
    return 0;
}

static int check(const struct options *options)
{
    if (options->json && !out_has_json()) {
        fputs("sluice-info: --json: this build has no jansson, and prints text only; configure "
              "it where jansson is installed\n",
              stderr);
        return -1;
    }
    return 0;
}

int options_read(struct options *options, int argc, char **argv)
{
    int option, result = 0;

    *options = (struct options){.timeout = 30};
    opterr = 0;
    while (result == 0 && (option = getopt_long(argc, argv, ":", names, NULL)) != -1) {
        if (option == '?' || option == ':')
            return complain(argv[optind - 1],
                            option == ':' ? "it needs a value" : "no such option");
        result = read_option(options, option, optarg);
    }
    if (result == 0)
        result = read_sections(options, argc - optind, argv + optind);
    return result == 0 ? check(options) : result;
}
