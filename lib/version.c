/* SPDX-License-Identifier: MIT */
/* The version text. */
#include "config.h"

#include <sluice/version.h>

#include "internal.h"

const char *sluice_version(void)
{
#ifdef HAVE_VERBS
    return PACKAGE_VERSION " (verbs soft)";
#else
    return PACKAGE_VERSION " (soft)";
#endif
}
