/* SPDX-License-Identifier: MIT */
/*
 * A pretend libpmix for test_pmix.c: rank 0 of 2, whose other rank repeats all words
 * of this one. FAKE_PMIX names the function that fails:
 *
 *   init    PMIx_Init() never returns; calling it again is a mistake
 *   none    PMIx_Init() finds no server
 *   size    PMIx_Get() of the number of ranks never returns
 *   get     PMIx_Get() of a value that a rank has put never returns
 *   fence   PMIx_Fence_nb() never calls back
 *   memory  the other rank has put a report that it has no memory
 *
 * A test that has loaded it can read the number of fences, and the first word of the last
 * value that was put.
 */
#include "config.h"

#ifdef HAVE_PMIX

#include <fcntl.h>
#include <pmix.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

static atomic_uint inits;
static atomic_bool stuck; /* a call hangs, so finalizing would hang as well */
static char last_key[64];
static char *last_bytes;
static size_t last_size;
static void *fences[8]; /* fences that never end */
static unsigned fence_count;
static unsigned all_fences;
static uint32_t last_word;

SHOWN unsigned fake_pmix_fences(void);
SHOWN unsigned fake_pmix_operation(void);

unsigned fake_pmix_fences(void)
{
    return all_fences;
}

unsigned fake_pmix_operation(void)
{
    return last_word;
}

static bool wrong(const char *name)
{
    const char *set = getenv("FAKE_PMIX");
    return set && strcmp(set, name) == 0;
}

static _Noreturn void fail(const char *why)
{
    fprintf(stderr, "the pretend libpmix: %s\n", why);
    abort();
}

static void never_return(void)
{
    stuck = true;
    for (;;) {
        pause();
    }
}

SHOWN pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
    (void)info;
    (void)ninfo;
    if (wrong("init")) {
        if (inits++ > 0) {
            fail("PMIx_Init() while another one is under way");
        }
        if (open("/", O_PATH | O_CLOEXEC) <= STDERR_FILENO) {
            fail("PMIx_Init() gets a descriptor of a standard stream");
        }
        never_return();
    }
    if (wrong("none")) {
        return PMIX_ERR_UNREACH;
    }
    memset(proc, 0, sizeof(*proc));
    snprintf(proc->nspace, sizeof(proc->nspace), "fake");
    return PMIX_SUCCESS;
}

SHOWN pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t ninfo)
{
    (void)info;
    (void)ninfo;
    if (stuck) {
        fail("PMIx_Finalize() while a call is under way");
    }
    free(last_bytes);
    last_bytes = NULL;
    return PMIX_SUCCESS;
}

SHOWN pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *value)
{
    (void)scope;
    free(last_bytes);
    snprintf(last_key, sizeof(last_key), "%s", key);
    last_size = value->data.bo.size;
    last_bytes = malloc(last_size);
    if (!last_bytes) {
        return PMIX_ERR_NOMEM;
    }
    memcpy(last_bytes, value->data.bo.bytes, last_size);
    memcpy(&last_word, last_bytes, sizeof(last_word));
    return PMIX_SUCCESS;
}

SHOWN pmix_status_t PMIx_Commit(void)
{
    return PMIX_SUCCESS;
}

static pmix_status_t get_last(const char *key, uint32_t rank, pmix_value_t *value)
{
    static const struct {
        uint32_t operation, reserved;
        uint64_t bytes;
    } no_memory = {3, 0, 0};
    bool lacks = rank == 1 && wrong("memory");
    if (strcmp(key, last_key) != 0) {
        return PMIX_ERR_NOT_FOUND;
    }
    value->type = PMIX_BYTE_OBJECT;
    value->data.bo.size = lacks ? sizeof(no_memory) : last_size;
    value->data.bo.bytes = malloc(value->data.bo.size);
    if (!value->data.bo.bytes) {
        return PMIX_ERR_NOMEM;
    }
    memcpy(value->data.bo.bytes, lacks ? (const void *)&no_memory : last_bytes,
           value->data.bo.size);
    return PMIX_SUCCESS;
}

SHOWN pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
                             size_t ninfo, pmix_value_t **value)
{
    bool size = strcmp(key, PMIX_JOB_SIZE) == 0;
    pmix_status_t status = PMIX_SUCCESS;
    (void)info;
    (void)ninfo;
    if (wrong(size ? "size" : "get")) {
        never_return();
    }
    *value = calloc(1, sizeof(**value));
    if (!*value) {
        return PMIX_ERR_NOMEM;
    }
    if (size) {
        (*value)->type = PMIX_UINT32;
        (*value)->data.uint32 = 2;
    } else {
        status = get_last(key, proc->rank, *value);
    }
    if (status != PMIX_SUCCESS) {
        free(*value);
    }
    return status;
}

SHOWN pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t nprocs,
                                  const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t call,
                                  void *argument)
{
    (void)procs;
    (void)nprocs;
    (void)info;
    (void)ninfo;
    all_fences++;
    if (wrong("fence")) {
        fences[fence_count++ % 8] = argument;
    } else {
        call(PMIX_SUCCESS, argument);
    }
    return PMIX_SUCCESS;
}

SHOWN const char *PMIx_Error_string(pmix_status_t status)
{
    return status == PMIX_ERR_UNREACH ? "UNREACHABLE" : "SOME ERROR";
}

#else

extern int fake_pmix_is_empty;
int fake_pmix_is_empty;

#endif
