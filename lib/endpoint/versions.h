/* SPDX-License-Identifier: MIT */
/*
 * The versions that a wire format carries: the version that wrote it, and the oldest
 * version that can read it. So a library can extend a format and still talk to older
 * libraries. Rules for a change of a format:
 *
 *   A new field takes bytes that were zero before, and zero must mean what the format
 *   meant without the field. Raise VERSION but not READABLE: older readers ignore it.
 *
 *   If an older reader must not ignore the change, raise READABLE to VERSION, but only
 *   in the messages that need it: those without the feature may stay readable.
 *
 *   OLDEST is the first version that this library still reads.
 *
 *   A reader may refuse bits and bytes without a meaning in a message of its own version,
 *   but must ignore them in a later one. The checksum covers all bytes. The places of the
 *   checksum and of the versions never change.
 *
 * Forms that began with one number have both versions in it: slu_versions_join().
 * docs/stability.md lists all forms; tests/check-versions.sh lets libraries of different
 * versions talk to each other.
 */
#ifndef SLU_VERSIONS_H
#define SLU_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Every VERSION has this added: 1 makes a library of the next version, whose forms are readable
 * from the same versions on, for tests/check-versions.sh. Otherwise 0.
 */
#ifndef SLU_VERSIONS_NEXT
#define SLU_VERSIONS_NEXT 0
#endif

/* The versions that a reader knows; what names the format, with its article. */
struct slu_versions {
    const char *what;
    uint32_t version, oldest;
};

/*
 * Joins both versions to one number of twice as many bits: readable, and above it written, or 0 if
 * the two are equal.
 */
static inline uint32_t slu_versions_join(uint32_t written, uint32_t readable, unsigned bits)
{
    return written == readable ? readable : written << bits | readable;
}

/* Splits what slu_versions_join() has joined. */
static inline void slu_versions_split(uint32_t joined, unsigned bits, uint32_t *written,
                                      uint32_t *readable)
{
    *readable = joined & ((UINT32_C(1) << bits) - 1);
    *written = joined >> bits != 0 ? joined >> bits : *readable;
}

/* Returns whether a reader of these versions reads a message with these. Sets no text. */
static inline bool slu_versions_fit(const struct slu_versions *known, uint32_t written,
                                    uint32_t readable)
{
    return readable != 0 && readable <= written && readable <= known->version &&
           written >= known->oldest;
}

/* Checks the versions in a message: 0, or -EPROTO with a text. */
static inline int slu_versions_check(const struct slu_versions *known, uint32_t written,
                                     uint32_t readable)
{
    if (readable == 0 || written < readable)
        return slu_fail(EPROTO, "%s says that version %u wrote it and version %u can read it",
                        known->what, written, readable);
    if (readable > known->version)
        return slu_fail(EPROTO,
                        "%s was written by version %u of its form, to be read from version %u on; "
                        "this library knows version %u: it is too old for that peer",
                        known->what, written, readable, known->version);
    if (written < known->oldest)
        return slu_fail(EPROTO,
                        "%s was written by version %u of its form; this library knows version %u, "
                        "and reads from version %u on: that peer is too old",
                        known->what, written, known->version, known->oldest);
    return 0;
}

#endif
