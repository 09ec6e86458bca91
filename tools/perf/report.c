/* SPDX-License-Identifier: MIT */
/* Prints the results: as a table, as JSON, or as CSV. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "perf.h"

static const char *const levels[] = {"blocking", "scoped", "posted"};

static bool is_first;

/* Prints a JSON member, escaped: names of devices and addresses come from outside. */
static void print_json_text(const char *name, const char *text, const char *end)
{
    printf("\"%s\": \"", name);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '"' || byte == '\\')
            printf("\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7f)
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    printf("\"%s", end);
}

static const char *wire(void)
{
    const char *value = getenv("SLUICE_WIRE");

    return value != NULL && *value != '\0' ? value : "auto";
}

static void begin_json(const struct team *team)
{
    const struct plan *plan = &team->plan;

    printf("{");
    print_json_text("program", "sluice-perf", ", ");
    print_json_text("version", plan->version, ", ");
    print_json_text("device", team->info.device, ", ");
    print_json_text("transport", team->info.transport, ", ");
    print_json_text("wire", wire(), ", ");
    print_json_text("peer_address", team->address, ",\n ");
    print_json_text("level", levels[plan->level], ", ");
    printf("\"peers\": %u, \"idle_peers\": %u, \"window\": %u, \"inline\": %u,\n ", plan->peers,
           plan->idle_peers, plan->window, plan->inline_bytes);
    printf("\"queue_pairs\": %u, ", plan->queue_pairs > 0 ? plan->queue_pairs : 1);
    printf("\"dirty\": %s, \"validated\": %s, \"ticks_per_us\": %.4f,\n \"results\": [",
           (plan->flags & PLAN_DIRTY) != 0 ? "true" : "false",
           (plan->flags & PLAN_VALIDATE) != 0 ? "true" : "false", 1000 / ticks_length());
}

void report_begin(const struct team *team, const struct options *options)
{
    const struct plan *plan = &team->plan;

    is_first = true;
    switch (options->format) {
    case FORMAT_JSON:
        begin_json(team);
        break;
    case FORMAT_CSV:
        puts("work,bytes,peers,level,iterations,seconds,mean_us,min_us,p50_us,p99_us,p99.9_us,"
             "max_us,mib_per_s,messages_per_s");
        break;
    default:
        printf("sluice-perf %s: device %s, %u peer%s, %s%s%s\n", plan->version, team->info.device,
               plan->peers, plan->peers == 1 ? "" : "s", levels[plan->level],
               (plan->flags & PLAN_DIRTY) != 0 ? ", dirty" : "",
               (plan->flags & PLAN_VALIDATE) != 0 ? ", validated" : "");
        printf("%-15s %10s %10s %10s %10s %10s %10s %11s %12s\n", "work", "bytes", "iterations",
               "us mean", "50 %", "99 %", "99.9 %", "MiB/s", "messages/s");
        break;
    }
    fflush(stdout);
}

static void json_result(const struct result *result)
{
    printf("%s\n  {\"work\": \"%s\", \"bytes\": %zu, \"iterations\": %" PRIu64
           ", \"seconds\": %.6f,\n",
           is_first ? "" : ",", result->work->name, result->size, result->iterations,
           result->seconds);
    printf("   \"mean_us\": %.4f, \"min_us\": %.4f, \"p50_us\": %.4f, \"p99_us\": %.4f, "
           "\"p99.9_us\": %.4f, \"max_us\": %.4f,\n",
           result->mean, result->least, result->median, result->p99, result->p999, result->most);
    printf("   \"mib_per_s\": %.3f, \"messages_per_s\": %.1f}", result->bandwidth, result->rate);
}

void report_result(const struct team *team, const struct options *options,
                   const struct result *result)
{
    switch (options->format) {
    case FORMAT_JSON:
        json_result(result);
        break;
    case FORMAT_CSV:
        printf("%s,%zu,%u,%s,%" PRIu64 ",%.6f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.3f,%.1f\n",
               result->work->name, result->size, team->plan.peers, levels[team->plan.level],
               result->iterations, result->seconds, result->mean, result->least, result->median,
               result->p99, result->p999, result->most, result->bandwidth, result->rate);
        break;
    default:
        printf("%-15s %10zu %10" PRIu64 " %10.3f %10.3f %10.3f %10.3f %11.1f %12.0f\n",
               result->work->name, result->size, result->iterations, result->mean, result->median,
               result->p99, result->p999, result->bandwidth, result->rate);
        break;
    }
    is_first = false;
    fflush(stdout);
}

void report_end(const struct options *options)
{
    if (options->format == FORMAT_JSON)
        puts("\n ]}");
    fflush(stdout);
}

/* Prints progress on a terminal, in a line that is erased later. */
void report_progress(const struct options *options, const struct run *run, double part)
{
    if (options->quiet || isatty(STDERR_FILENO) == 0)
        return;
    if (run == NULL)
        fputs("\r\033[K", stderr);
    else
        fprintf(stderr, "\r\033[K%s, %zu bytes: %.0f %%", run->work->name, run->size,
                part < 1 ? part * 100 : 100);
    fflush(stderr);
}
