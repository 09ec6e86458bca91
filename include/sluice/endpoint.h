/* SPDX-License-Identifier: MIT */
/*
 * An endpoint: what a peer needs to know to connect to one of our prepared
 * queue pairs. A fixed-size blob in network byte order, version first, without
 * pointers: MPI_Alltoall(..., 256, MPI_BYTE, ...) or a write(2) is all the
 * serialisation it needs. It holds a secret (the soft transport lets in who
 * knows it), so pass it only to the peer it is for. Decoding never trusts it.
 */
#ifndef SLUICE_ENDPOINT_H
#define SLUICE_ENDPOINT_H

#include <stdint.h>

#include <sluice/macros.h>

#define SLUICE_ENDPOINT_BYTES 256

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
