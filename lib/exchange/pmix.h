/* SPDX-License-Identifier: MIT */
/*
 * The process as a client of the launcher's PMIx server, and the functions of libpmix, which is
 * loaded when it is first needed.
 */
#ifndef SLU_EXCHANGE_PMIX_H
#define SLU_EXCHANGE_PMIX_H

#include "base/async_call.h"
#include "exchange/exchange.h"

/* Makes this process a client, which it stays. Fails with a text. */
int slu_pmix_begin(int64_t until);

#ifdef HAVE_PMIX

#include <pmix.h>

/* Valid once the process is a client. */
struct slu_pmix_functions {
    __typeof__(PMIx_Commit) *commit;
    __typeof__(PMIx_Error_string) *error_string;
    __typeof__(PMIx_Fence_nb) *fence_nb;
    __typeof__(PMIx_Finalize) *finalize;
    __typeof__(PMIx_Get) *get;
    __typeof__(PMIx_Init) *init;
    __typeof__(PMIx_Put) *put;
};
extern struct slu_pmix_functions slu_pmix;

/* The name of the client. */
extern pmix_proc_t slu_pmix_self;
/* The number of threads that query the server. */
extern _Atomic uint32_t slu_pmix_queries;

/* Fails with a text in a forked child of the process that is the client. */
int slu_pmix_check_process(void);
/* The same, without a text. */
bool slu_pmix_is_ours(void);
/* Fails with a text that has PMIx's name of the status. */
int slu_pmix_fail(const char *what, pmix_status_t status);

#endif
#endif
