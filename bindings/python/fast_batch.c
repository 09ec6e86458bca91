/* SPDX-License-Identifier: MIT */
/* Converts Work objects to requests for the library. Nothing here posts or waits. */
#include "fast.h"

#include <string.h>

static const char *const spelled[NAMES] = {
    [N_ADDRESS] = "address",
    [N_BLOCKS] = "_blocks",
    [N_CALLBACKS] = "_callbacks",
    [N_COMPLETION] = "_completion",
    [N_CONNECTION] = "_connection",
    [N_FLAGS] = "flags",
    [N_HANDLE] = "_handle",
    [N_IMMEDIATE] = "immediate",
    [N_KEY] = "key",
    [N_LENGTH] = "length",
    [N_OPCODE] = "opcode",
    [N_OPERAND] = "operand",
    [N_PEER] = "peer",
    [N_PIECES] = "pieces",
    [N_POINTER] = "_pointer",
    [N_REGION] = "region",
    [N_REMOTE] = "remote",
    [N_SEEN] = "seen",
    [N_USER] = "user",
    [N_VALUES] = "_values",
    [N_WORK] = "_work",
};

PyObject *names[NAMES];

int make_names(void)
{
    int i;
    for (i = 0; i < NAMES; i++) {
        names[i] = PyUnicode_InternFromString(spelled[i]);
        if (!names[i])
            return -1;
    }
    return 0;
}

/*
 * Users rarely see the error texts of this file: explain() in fast_engine.c lets Python raise its
 * own error for the same works.
 */
static int fail(const char *what)
{
    PyErr_SetString(PyExc_ValueError, what);
    return -1;
}

static int read_number(PyObject *object, enum name name, uint64_t *value)
{
    PyObject *number = PyObject_GetAttr(object, names[name]);
    if (!number)
        return -1;
    *value = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    return *value == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
}

static int read_number32(PyObject *object, enum name name, uint32_t *value)
{
    uint64_t wide;
    if (read_number(object, name, &wide) < 0)
        return -1;
    *value = (uint32_t)wide;
    return wide > UINT32_MAX ? fail("a number has more than 32 bits") : 0;
}

/* Refuses pieces of a closed region. */
static int check_region(PyObject *piece)
{
    PyObject *region = PyObject_GetAttr(piece, names[N_REGION]), *pointer = NULL;
    int result = -1;
    if (region)
        pointer = PyObject_GetAttr(region, names[N_POINTER]);
    if (pointer)
        result = pointer == Py_None ? fail("the region is closed") : 0;
    Py_XDECREF(pointer);
    Py_XDECREF(region);
    return result;
}

static int fill_sge(struct sluice_sge *sge, PyObject *piece)
{
    if (check_region(piece) < 0 || read_number(piece, N_ADDRESS, &sge->addr) < 0 ||
        read_number32(piece, N_LENGTH, &sge->length) < 0 ||
        read_number32(piece, N_KEY, &sge->lkey) < 0)
        return -1;
    return 0;
}

static int fill_pieces(struct batch *batch, struct sluice_request *request, PyObject *pieces)
{
    Py_ssize_t i, count;
    struct sluice_sge *sges;
    if (!PyTuple_Check(pieces))
        return fail("the pieces of a work are no tuple");
    count = PyTuple_Size(pieces);
    request->sge_count = (uint32_t)count;
    if (count == 0)
        return 0;
    if (count == 1)
        return fill_sge(&request->sge, PyTuple_GetItem(pieces, 0));
    if (count > batch->sges_end - batch->sges)
        return fail("the pieces of a work have changed while it was posted");
    sges = batch->sges;
    batch->sges += count;
    request->sges = sges;
    for (i = 0; i < count; i++)
        if (fill_sge(&sges[i], PyTuple_GetItem(pieces, i)) < 0)
            return -1;
    return 0;
}

static int fill_remote(struct sluice_request *request, PyObject *work)
{
    PyObject *remote = PyObject_GetAttr(work, names[N_REMOTE]);
    int result = 0;
    if (!remote)
        return -1;
    if (remote != Py_None && (read_number(remote, N_ADDRESS, &request->remote.addr) < 0 ||
                              read_number(remote, N_LENGTH, &request->remote.length) < 0 ||
                              read_number32(remote, N_KEY, &request->remote.rkey) < 0))
        result = -1;
    Py_DECREF(remote);
    return result;
}

static int fill_operand(struct sluice_request *request, PyObject *work)
{
    PyObject *operand = PyObject_GetAttr(work, names[N_OPERAND]);
    int i, result = 0;
    if (!operand)
        return -1;
    if (!PyTuple_Check(operand) || PyTuple_Size(operand) != 2)
        result = fail("the operand of a work is no pair");
    for (i = 0; i < 2 && result == 0; i++) {
        request->operand[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(operand, i));
        if (request->operand[i] == UINT64_MAX && PyErr_Occurred())
            result = -1;
    }
    Py_DECREF(operand);
    return result;
}

/* Sets the blocks of a request: a work has the address of its struct sluice_blocks, or 0. */
static int fill_blocks(struct sluice_request *request, PyObject *work)
{
    uint64_t address;
    if (read_number(work, N_BLOCKS, &address) < 0)
        return -1;
    request->blocks = (const struct sluice_blocks *)(uintptr_t)address;
    return 0;
}

static int fill_request(struct batch *batch, struct sluice_request *request, PyObject *work)
{
    PyObject *pieces = PyObject_GetAttr(work, names[N_PIECES]);
    int result = pieces ? fill_pieces(batch, request, pieces) : -1;
    Py_XDECREF(pieces);
    if (result < 0 || read_number32(work, N_PEER, &request->peer) < 0 ||
        read_number32(work, N_FLAGS, &request->flags) < 0 ||
        read_number32(work, N_IMMEDIATE, &request->immediate) < 0 ||
        fill_remote(request, work) < 0 || fill_operand(request, work) < 0)
        return -1;
    return fill_blocks(request, work);
}

/* Returns the number of pieces that do not fit in their requests; -1 if an exception is set. */
static Py_ssize_t count_sges(PyObject *works, Py_ssize_t count)
{
    Py_ssize_t i, length, total = 0;
    PyObject *pieces;
    for (i = 0; i < count; i++) {
        pieces = PyObject_GetAttr(PyTuple_GetItem(works, i), names[N_PIECES]);
        if (!pieces)
            return -1;
        length = PyTuple_Check(pieces) ? PyTuple_Size(pieces) : 0;
        Py_DECREF(pieces);
        total += length > 1 ? length : 0;
    }
    return total;
}

int begin_batch(struct batch *batch, PyObject *works)
{
    Py_ssize_t count = PyTuple_Size(works), sges = count_sges(works, count);
    size_t n = (size_t)count;
    if (sges < 0)
        return -1;
    /* The arrays are in the order of falling alignment. */
    batch->requests =
        PyMem_Malloc(n * (sizeof(struct sluice_request) + sizeof(struct sluice_completion) +
                          sizeof(struct sluice_handle) + sizeof(uint32_t) + 1) +
                     (size_t)sges * sizeof(struct sluice_sge));
    if (!batch->requests) {
        PyErr_NoMemory();
        return -1;
    }
    batch->works = works;
    batch->count = (uint32_t)count;
    batch->posted = 0;
    batch->completions = (struct sluice_completion *)(batch->requests + n);
    batch->handles = (struct sluice_handle *)(batch->completions + n);
    batch->sges = (struct sluice_sge *)(batch->handles + n);
    batch->sges_end = batch->sges + sges;
    batch->order = (uint32_t *)batch->sges_end;
    batch->done = (uint8_t *)(batch->order + n);
    memset(batch->requests, 0, n * sizeof(struct sluice_request));
    memset(batch->done, 0, n);
    return 0;
}

void end_batch(struct batch *batch)
{
    PyMem_Free(batch->requests);
}

/* Reads the opcode of each work. Returns the number of receives, or -1. */
static int read_opcodes(const struct batch *batch, uint32_t *opcodes)
{
    uint32_t i;
    int receives = 0;
    for (i = 0; i < batch->count; i++) {
        if (read_number32(PyTuple_GetItem(batch->works, i), N_OPCODE, &opcodes[i]) < 0)
            return -1;
        receives += opcodes[i] == SLUICE_OP_RECEIVE;
    }
    return receives;
}

int fill_batch(struct batch *batch, uint64_t number, const int64_t count[2], const int64_t room[2],
               int receives_first)
{
    uint32_t *opcodes = (uint32_t *)batch->completions; /* unused until the requests are posted */
    uint32_t i, at, next[2];
    int receives = read_opcodes(batch, opcodes);
    if (receives < 0)
        return -1;
    if (count[1] + receives > room[1] || count[0] + (int64_t)batch->count - receives > room[0])
        return 0;
    next[0] = (uint32_t)receives;
    next[1] = 0;
    batch->number = number;
    for (i = 0; i < batch->count; i++) {
        at = receives_first ? next[opcodes[i] == SLUICE_OP_RECEIVE]++ : i;
        batch->order[at] = i;
        batch->requests[at].opcode = opcodes[i];
        batch->requests[at].user_data = number + at;
        if (fill_request(batch, &batch->requests[at], PyTuple_GetItem(batch->works, i)) < 0)
            return -1;
    }
    return 1;
}
