/* SPDX-License-Identifier: MIT */
/* The version of the header and of the library that is running. */
#ifndef SLUICE_VERSION_H
#define SLUICE_VERSION_H

#include <stdint.h>

#include <sluice/macros.h>

#define SLUICE_VERSION_MAJOR 1
#define SLUICE_VERSION_MINOR 0
#define SLUICE_VERSION_PATCH 0
/* A later version has a larger number: major << 16 | minor << 8 | patch. */
#define SLUICE_VERSION_CODE \
    (SLUICE_VERSION_MAJOR * 65536 + SLUICE_VERSION_MINOR * 256 + SLUICE_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the version of the running library and the transports built into it,
 * in the order of preference. After "verbs" comes the version of the libibverbs
 * that it was built with and, after "static", the providers that are linked
 * into it:
 *
 *   1.0.0 (verbs 1.14.44.0, soft)
 *   1.0.0 (verbs 1.14.44.0 static mlx5 rxe, soft)
 *   1.0.0 (soft)
 *
 * The text is static and must not be freed.
 */
SLUICE_EXPORT const char *sluice_version(void);

/* Returns SLUICE_VERSION_CODE of the running library. */
SLUICE_EXPORT uint32_t sluice_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
