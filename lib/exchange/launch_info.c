/* SPDX-License-Identifier: MIT */
/* Tells a program what its environment says about its launch, by the same rules as an exchange. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "device/choice.h"
#include "exchange/exchange.h"

/* The prefix of job names of sluice-launch. */
#define OWN_JOB "launch-"

/* sluice-launch sets variables that users also set by hand. */
static const char *name_launcher(const struct slu_launch *launch)
{
    if (launch->launcher != NULL)
        return launch->launcher;
    if (launch->kind == SLUICE_EXCHANGE_PMIX)
        return "PMIx";
    return strncmp(launch->job, OWN_JOB, sizeof OWN_JOB - 1) == 0 ? "sluice-launch" : "";
}

static void fill_info(const struct slu_launch *launch, struct sluice_launch_info *info)
{
    info->kind = launch->kind;
    if (launch->ranks != 0) {
        info->rank = launch->rank;
        info->ranks = launch->ranks;
    }
    snprintf(info->launcher, sizeof info->launcher, "%s", name_launcher(launch));
    snprintf(info->source, sizeof info->source, "%s",
             launch->kind == SLUICE_EXCHANGE_PMIX ? "PMIx" : launch->source);
    snprintf(info->root, sizeof info->root, "%s", launch->root);
    snprintf(info->job, sizeof info->job, "%s", launch->job);
}

int sluice_launch_query(struct sluice_launch_info *info)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_launch_info known = {.size = sizeof known};
    struct slu_launch launch;
    const char *source = NULL;
    int error = SLU_INFO_CHECK(sluice_launch_info, info);

    if (error == 0)
        error = slu_launch_read(NULL, &launch);
    if (error == 0)
        error = slu_local_rank(&known.local_rank, &source);
    if (error < 0)
        return error;
    fill_info(&launch, &known);
    snprintf(known.local_source, sizeof known.local_source, "%s", source != NULL ? source : "");
    slu_info_copy(info, &known, sizeof known);
    return 0;
}
