/* SPDX-License-Identifier: MIT */
/* The sections of the environment and of the launcher. */
#include <errno.h>
#include <string.h>

#include "info.h"

static void print_variable(const struct sluice_variable_info *info, struct out *out)
{
    bool hidden = info->state != SLUICE_VARIABLE_UNSET && info->value[0] == '\0';

    out_object(out, NULL, NULL);
    out_text(out, "name", NULL, info->name);
    out_text(out, "state", NULL, word_variable(info->state));
    out_text(out, "value", NULL, info->value);
    out_flag(out, "hidden", NULL, hidden, "none");
    out_text(out, "default", NULL, info->preset);
    out_text(out, "allowed", NULL, info->allowed);
    out_text(out, "what", NULL, info->what);
    out_text(out, "nearest", NULL, info->nearest);
    out_text(out, "reason", NULL, info->reason);
    out_end(out);
    if (info->state == SLUICE_VARIABLE_UNSET)
        out_words(out, info->name, "not set: %s", info->preset);
    else
        out_words(out, info->name, "%s%s%s%s", hidden ? "(set, and not shown)" : info->value,
                  info->reason[0] != '\0' ? " (" : "", info->reason,
                  info->reason[0] != '\0' ? ")" : "");
}

void print_environment(const struct facts *facts, struct out *out)
{
    out_list(out, "variables", NULL);
    for (uint32_t i = 0; i < facts->variable_count; i++)
        print_variable(&facts->variables[i], out);
    out_end(out);
}

static void print_rank(const struct sluice_launch_info *launch, struct out *out)
{
    if (launch->ranks != 0) {
        out_number(out, "rank", "rank", launch->rank, "%u of %u, by %s", launch->rank,
                   launch->ranks, launch->source);
        out_number(out, "ranks", NULL, launch->ranks, "none");
    } else {
        out_null(out, "rank", "rank", "known only to the server of PMIx");
        out_null(out, "ranks", NULL, "none");
    }
    out_text(out, "source", NULL, launch->source);
    out_number(out, "local_rank", "local rank", launch->local_rank, "%u%s%s", launch->local_rank,
               launch->local_source[0] != '\0' ? ", by " : ", as no launcher sets it",
               launch->local_source);
    out_text(out, "local_rank_source", NULL, launch->local_source);
}

void print_launcher(const struct facts *facts, struct out *out)
{
    const struct sluice_launch_info *launch = &facts->launch;

    if (facts->launch_result == -ENOENT) {
        out_null(out, "launcher", "launcher", "none: this process is alone");
        out_null(out, "error", NULL, "none");
        return;
    }
    out_text(out, "error", "fails", facts->launch_error);
    if (facts->launch_result < 0)
        return;
    out_text(out, "launcher", "launcher",
             launch->launcher[0] != '\0' ? launch->launcher : "by hand");
    print_rank(launch, out);
    out_text(out, "exchange", "exchange over", word_kind(launch->kind));
    out_text(out, "root", "rank 0 is at", launch->root);
    out_text(out, "job", "job", launch->job);
    out_text(out, "warning", "but", facts->launch_warning);
}
