/* SPDX-License-Identifier: MIT */
/*
 * The client of the launcher's PMIx server that a process is, and the functions of
 * libpmix, which is loaded when it is first needed.
 */
#ifndef SLU_EXCHANGE_PMIX_H
#define SLU_EXCHANGE_PMIX_H

#include "base/async_call.h"
#include "exchange/exchange.h"

/* 0, and there is a client of this process, which stays; or an error with a text. */
int slu_pmix_begin(int64_t until);

#ifdef HAVE_PMIX

#include <pmix.h>

/* Once there is a client. */
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

/* Of the client. */
extern pmix_proc_t slu_pmix_self;
/* Threads of ours that ask the server. */
extern _Atomic uint32_t slu_pmix_asking;

/* Whether this is the process that asked first, and no child of it: 0, or an error. */
int slu_pmix_check_process(void);
/* The same without a text. */
bool slu_pmix_is_ours(void);
/* A text of PMIx's own words. */
int slu_pmix_fail(const char *what, pmix_status_t status);

#endif
#endif
