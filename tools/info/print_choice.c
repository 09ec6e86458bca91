/* SPDX-License-Identifier: MIT */
/* The section of the choice: the device that is opened by default, and why not each other one. */
#include <stdio.h>

#include "config.h"
#include "info.h"

static bool has_rdma(const struct facts *facts)
{
    for (uint32_t i = 0; i < facts->device_count; i++)
        if (facts->devices[i].info.level == SLUICE_LEVEL_NIC)
            return true;
    return false;
}

/* Returns why there is no RDMA device: the first thing that is missing. */
static const char *why_absent(const struct kernel *kernel)
{
#ifndef HAVE_VERBS
    (void)kernel;
    return "this build of the library is without verbs";
#else
    if (!kernel->has_class)
        return "the kernel has no RDMA: /sys/class/infiniband does not exist";
    if (kernel->count == 0)
        return "the kernel has no RDMA device: /sys/class/infiniband is empty";
    if (!kernel->has_uverbs)
        return "programs cannot use RDMA: the module ib_uverbs is not loaded";
    if (!kernel->has_nodes)
        return "/dev/infiniband does not exist: was the container given it?";
    return "libibverbs shows no device of the kernel: their providers are not installed";
#endif
}

static void print_kernel(const struct kernel *kernel, struct out *out)
{
    out_object(out, "kernel", NULL);
    out_flag(out, "rdma", NULL, kernel->has_class, "none");
    out_flag(out, "uverbs", NULL, kernel->has_uverbs, "none");
    out_flag(out, "dev_infiniband", NULL, kernel->has_nodes, "none");
    out_flag(out, "rdma_cm", NULL, kernel->has_cm, "none");
    out_list(out, "devices", NULL);
    for (uint32_t i = 0; i < kernel->count; i++) {
        out_object(out, NULL, NULL);
        out_text(out, "name", NULL, kernel->devices[i].name);
        out_text(out, "driver", NULL, kernel->devices[i].driver);
        out_end(out);
    }
    out_end(out);
    out_end(out);
}

static void print_taken(const struct device *device, struct out *out)
{
    const struct sluice_choice_info *choice = &device->choice;

    out_text(out, "device", "opens", device->info.name);
    out_number(out, "port", choice->port != 0 ? "port" : NULL, choice->port, "%u", choice->port);
    out_text(out, "source", NULL, choice->source);
    out_number(out, "local_rank", "local rank", choice->local_rank, "%u%s%s", choice->local_rank,
               choice->rank_source[0] != '\0' ? ", by " : ", as no launcher sets it",
               choice->rank_source);
    out_text(out, "local_rank_source", NULL, choice->rank_source);
    out_text(out, "reason", "why", choice->reason);
}

static void print_ranks(const struct facts *facts, struct out *out)
{
    char names[INFO_RANKS * 65] = "";
    size_t used = 0;

    out_list(out, "by_local_rank", NULL);
    for (uint32_t i = 0; i < facts->by_rank_count; i++) {
        const char *name = facts->devices[facts->by_rank[i]].info.name;

        out_text(out, NULL, NULL, name);
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? " " : "", name);
    }
    out_end(out);
    if (facts->by_rank_count > 0)
        out_words(out, "local ranks 0, 1, ...", "%s ...", names);
}

static void print_verdicts(const struct facts *facts, struct out *out)
{
    out_list(out, "devices", NULL);
    for (uint32_t i = 0; i < facts->device_count; i++) {
        const struct device *device = &facts->devices[i];

        out_object(out, NULL, NULL);
        out_text(out, "name", NULL, device->info.name);
        out_text(out, "verdict", NULL, word_verdict(device->choice.verdict));
        out_text(out, "reason", NULL, device->choice.reason);
        out_end(out);
        if (device->choice.verdict != SLUICE_CHOICE_TAKEN)
            out_line(out, "not %s: %s", device->info.name, device->choice.reason);
    }
    out_end(out);
}

void print_choice(const struct facts *facts, struct out *out)
{
    out_text(out, "no_rdma", "no RDMA device", has_rdma(facts) ? "" : why_absent(&facts->kernel));
    print_kernel(&facts->kernel, out);
    out_text(out, "error", "fails", facts->choice_error);
    if (facts->choice_error[0] != '\0')
        return;
    for (uint32_t i = 0; i < facts->device_count; i++)
        if (facts->devices[i].choice.verdict == SLUICE_CHOICE_TAKEN)
            print_taken(&facts->devices[i], out);
    print_ranks(facts, out);
    print_verdicts(facts, out);
}
