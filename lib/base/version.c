/* SPDX-License-Identifier: MIT */
/* The version text. */
#include "config.h"

#include <sluice/version.h>

const char *sluice_version(void)
{
    return PACKAGE_VERSION " (" TRANSPORTS ")";
}
