/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "info.h"

/* Complains about a --device that is malformed, or names no device of this host. */
static int refuse_device(const struct facts *facts)
{
    if (facts->options->device == NULL || facts->choice_error[0] == '\0')
        return 0;
    fprintf(stderr, "sluice-info: --device %s: %s\n", facts->options->device, facts->choice_error);
    return STATUS_USAGE;
}

static bool is_wanted(const struct options *options, uint32_t section)
{
    return (options->sections >> section & 1) != 0;
}

static uint32_t needs_of(const struct options *options)
{
    uint32_t needs = 0;

    for (uint32_t i = 0; i < info_section_count; i++)
        if (is_wanted(options, i))
            needs |= info_sections[i].needs;
    return needs;
}

static void print_section(const struct facts *facts, const struct section *section, struct out *out)
{
    /* With --advice it is the only section, and needs no title. */
    out_object(out, section->name, facts->options->advice ? NULL : section->title);
    section->print(facts, out);
    out_end(out);
}

static bool print_all(const struct facts *facts)
{
    const struct options *options = facts->options;
    struct out out;
    bool first = true;

    out_begin(&out, options->json);
    if (options->json) {
        out_text(&out, "program", NULL, "sluice-info");
        out_number(&out, "format", NULL, INFO_FORMAT, "none");
    }
    for (uint32_t i = 0; i < info_section_count; i++) {
        if (!is_wanted(options, i))
            continue;
        if (!first)
            out_line(&out, "%s", "");
        first = false;
        print_section(facts, &info_sections[i], &out);
    }
    return out_finish(&out);
}

static int work(const struct options *options)
{
    uint32_t needs = needs_of(options);
    struct facts facts;
    int status;

    facts_find(&facts, options, needs);
    if (needs == NEEDS_ALL)
        advise(&facts);
    status = refuse_device(&facts);
    if (status == 0 && !print_all(&facts)) {
        fputs("sluice-info: cannot write to the standard output\n", stderr);
        status = STATUS_FAILED;
    }
    if (status == 0 && options->advice && facts.advice_count > 0)
        status = STATUS_ADVICE;
    facts_free(&facts);
    return status;
}

int main(int argc, char **argv)
{
    struct options options;
    int result = options_read(&options, argc, argv);

    if (result != 0)
        return result > 0 ? STATUS_FINE : STATUS_USAGE;
    return watch(work, &options);
}
