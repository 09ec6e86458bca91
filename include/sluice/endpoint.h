/* SPDX-License-Identifier: MIT */
/*
 * An endpoint: what a peer needs to know to connect to one of our prepared
 * queue pairs. A fixed-size blob in network byte order, without pointers:
 * MPI_Alltoall(..., 384, MPI_BYTE, ...) or a write(2) is all the serialisation
 * it needs. The blob begins with the version that wrote it and the oldest
 * version that can read it, so that libraries of different versions can
 * connect. The blob holds a secret (the soft transport admits any process that
 * knows it), so pass it only to its peer. Decoding never trusts its content.
 */
#ifndef SLUICE_ENDPOINT_H
#define SLUICE_ENDPOINT_H

#include <stdint.h>

#include <sluice/macros.h>

#define SLUICE_ENDPOINT_BYTES 384

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_endpoint {
    uint8_t bytes[SLUICE_ENDPOINT_BYTES];
};

#ifdef __cplusplus
}
#endif

#endif
