/* SPDX-License-Identifier: MIT */
/* The transports that were built in, in order of preference. */
#include "config.h"

#include "transport/transport.h"

const struct slu_transport *const slu_transports[] = {
#ifdef HAVE_VERBS
    &slu_transport_verbs,
#endif
    &slu_transport_soft,
};

const uint32_t slu_transport_count = sizeof slu_transports / sizeof slu_transports[0];
