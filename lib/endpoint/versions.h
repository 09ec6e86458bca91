/* SPDX-License-Identifier: MIT */
/*
 * The versions that a wire form carries: by which version of the form it was written,
 * and from which version on it can be read. So a library can add to a form and still
 * talk with those that know less. For whoever changes a form:
 *
 *   A field that is new goes where zeros were, and zero says what it said before there
 *   was the field. VERSION is raised, READABLE is not: who knows less ignores it.
 *
 *   Where one that knows less would be wrong, whatever the field says, READABLE is
 *   raised to VERSION. Only those forms may say so that need it: one without the
 *   feature may stay readable.
 *
 *   OLDEST is the first version whose forms are still understood here.
 *
 *   A reader judges what it knows, and lets be what it does not: of a form of its own
 *   version bits and bytes without a meaning may be refused, of a later one never. The
 *   checksum is of all bytes, and its place is not changed, nor is that of the versions.
 */
#ifndef SLU_VERSIONS_H
#define SLU_VERSIONS_H

#include <stdint.h>

#include "base/error.h"

/* What a reader knows of a form; what names it, with its article. */
struct slu_versions {
    const char *what;
    uint32_t version, oldest;
};

/* 0, or -EPROTO with a text. */
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
