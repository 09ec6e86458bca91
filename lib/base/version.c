/* SPDX-License-Identifier: MIT */
/* The version of the running library. */
#include "config.h"

#include <sluice/version.h>

const char *sluice_version(void)
{
    return PACKAGE_VERSION " (" TRANSPORTS ")";
}

uint32_t sluice_version_number(void)
{
    return SLUICE_VERSION_CODE;
}
