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
 */
#ifndef SLU_VERSIONS_H
#define SLU_VERSIONS_H

#include <stdint.h>

#include "base/error.h"

/* The versions that a reader knows; what names the format, with its article. */
struct slu_versions {
    const char *what;
    uint32_t version, oldest;
};

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
