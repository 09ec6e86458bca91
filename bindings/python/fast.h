/* SPDX-License-Identifier: MIT */
/*
 * The hot calls of the Python package in C: posting a list and waiting for it, and taking
 * completions. The extension is not linked with libsluice, which is chosen when the package is
 * imported: _engine.py passes the addresses of the functions. _engine.py also has the same
 * calls in Python, for installations without the extension.
 *
 * Only the stable interface of Python 3.10 is used, so that one build serves all later versions.
 */
#ifndef SLUICE_PYTHON_FAST_H
#define SLUICE_PYTHON_FAST_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

#include <sluice/blocks.h>
#include <sluice/request.h>

/* Attributes of objects of the package, see spelled[] in fast_batch.c. */
enum name {
    N_ADDRESS,
    N_BLOCKS,
    N_CALLBACKS,
    N_COMPLETION,
    N_CONNECTION,
    N_FLAGS,
    N_HANDLE,
    N_IMMEDIATE,
    N_KEY,
    N_LENGTH,
    N_OPCODE,
    N_OPERAND,
    N_PEER,
    N_PIECES,
    N_POINTER,
    N_REGION,
    N_REMOTE,
    N_SEEN,
    N_USER,
    N_VALUES,
    N_WORK,
    NAMES
};

/* The spellings as strings of Python. */
extern PyObject *names[NAMES];

/* Arrays for one call that posts. All of them are in one block of memory, at requests. */
struct batch {
    PyObject *works; /* a tuple */
    uint32_t count;
    int posted;
    uint64_t number; /* user_data of the first request */
    struct sluice_request *requests;
    struct sluice_completion *completions;
    struct sluice_handle *handles;
    struct sluice_sge *sges, *sges_end; /* the unused ones */
    uint32_t *order;                    /* the index in works of each request */
    uint8_t *done;                      /* whether each completion was written */
};

/* Makes the strings in names. -1: an exception is set. */
int make_names(void);

/* Allocates the arrays for a tuple of works. -1: an exception is set. */
int begin_batch(struct batch *batch, PyObject *works);

void end_batch(struct batch *batch);

/*
 * Writes the requests, receives first if receives_first is set. count has the requests in flight
 * and room their limit, each for all but receives, and for receives.
 * Returns 1; 0 if there is no room for all of them; -1 if an exception is set.
 */
int fill_batch(struct batch *batch, uint64_t number, const int64_t count[2], const int64_t room[2],
               int receives_first);

#endif
