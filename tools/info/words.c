/* SPDX-License-Identifier: MIT */
/* Names of the library's numbers, the same in text and in JSON. */
#include <stdio.h>

#include "info.h"

#define WORD(words, number)                                                                   \
    ((number) < sizeof(words) / sizeof(words)[0] && (words)[number] != NULL ? (words)[number] \
                                                                            : "unknown")

const char *word_state(uint32_t port_state)
{
    static const char *const words[] = {
        [SLUICE_PORT_UNKNOWN] = "unknown", [SLUICE_PORT_DOWN] = "down",
        [SLUICE_PORT_INIT] = "init",       [SLUICE_PORT_ARMED] = "armed",
        [SLUICE_PORT_ACTIVE] = "active",   [SLUICE_PORT_ACTIVE_DEFER] = "recovering",
    };

    return WORD(words, port_state);
}

const char *word_link(uint32_t link_layer)
{
    static const char *const words[] = {
        [SLUICE_LINK_NONE] = "none",
        [SLUICE_LINK_INFINIBAND] = "InfiniBand",
        [SLUICE_LINK_ETHERNET] = "Ethernet",
    };

    return WORD(words, link_layer);
}

const char *word_gid(uint32_t gid_type)
{
    static const char *const words[] = {
        [SLUICE_GID_INFINIBAND] = "InfiniBand",
        [SLUICE_GID_ROCE_V1] = "RoCE v1",
        [SLUICE_GID_ROCE_V2] = "RoCE v2",
    };

    return WORD(words, gid_type);
}

const char *word_verdict(uint32_t verdict)
{
    static const char *const words[] = {
        [SLUICE_CHOICE_TAKEN] = "taken",
        [SLUICE_CHOICE_OTHER_RANK] = "other-rank",
        [SLUICE_CHOICE_FARTHER] = "farther",
        [SLUICE_CHOICE_NOT_ACTIVE] = "not-active",
        [SLUICE_CHOICE_LAST_RESORT] = "last-resort",
        [SLUICE_CHOICE_NOT_NAMED] = "not-named",
    };

    return WORD(words, verdict);
}

const char *word_variable(uint32_t state)
{
    static const char *const words[] = {
        [SLUICE_VARIABLE_UNSET] = "unset",
        [SLUICE_VARIABLE_SET] = "set",
        [SLUICE_VARIABLE_WRONG] = "wrong",
        [SLUICE_VARIABLE_UNKNOWN] = "unknown",
    };

    return WORD(words, state);
}

const char *word_kind(uint32_t exchange_kind)
{
    static const char *const words[] = {
        [SLUICE_EXCHANGE_AUTO] = "auto",
        [SLUICE_EXCHANGE_TCP] = "tcp",
        [SLUICE_EXCHANGE_PMIX] = "pmix",
        [SLUICE_EXCHANGE_OWN] = "own",
    };

    return WORD(words, exchange_kind);
}

const char *word_atomics(uint32_t atomics)
{
    static const char *const words[] = {
        [SLUICE_ATOMICS_NONE] = "none",
        [SLUICE_ATOMICS_DEVICE] = "device",
        [SLUICE_ATOMICS_GLOBAL] = "global",
    };

    return WORD(words, atomics);
}

const char *word_level(uint32_t level)
{
    static const char *const words[] = {
        [SLUICE_LEVEL_TCP] = "tcp",
        [SLUICE_LEVEL_NIC] = "nic",
        [SLUICE_LEVEL_MEMORY] = "memory",
    };

    return WORD(words, level);
}

const char *bytes_text(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    uint32_t unit = 0;
    uint64_t tenths = bytes;

    if (bytes == INFO_NO_LIMIT)
        return "not limited";
    for (; tenths >= 1024 && unit < 6; tenths /= 1024)
        unit++;
    if (unit > 0 && bytes >> 10 * (unit - 1) < 10240 && (bytes >> 10 * (unit - 1)) % 1024 != 0)
        snprintf(text, 32, "%.1f %s", (double)(bytes >> 10 * (unit - 1)) / 1024, units[unit]);
    else
        snprintf(text, 32, "%llu %s", (unsigned long long)tenths, units[unit]);
    return text;
}

const char *limit_text(uint64_t count, char text[32])
{
    if (count == INFO_NO_LIMIT)
        return "not limited";
    snprintf(text, 32, "%llu", (unsigned long long)count);
    return text;
}
