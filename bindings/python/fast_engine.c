/* SPDX-License-Identifier: MIT */
/*
 * Posting, waiting and taking completions for one connection of Python.
 *
 * Python serves signals only between its own instructions. A function here runs no such instruction
 * between posting a request and recording it, so that Ctrl-C loses no request.
 */
#include "fast.h"

#include <errno.h>
#include <time.h>

#define POLL_MOST 64   /* completions that are taken at a time */
#define POST_ONLY (-1) /* as in _engine.py */

typedef int (*post_function)(void *, const struct sluice_request *, uint32_t, int64_t,
                             struct sluice_handle *);
typedef int (*poll_function)(void *, struct sluice_completion *, uint32_t);
typedef int (*next_function)(void *, int64_t, struct sluice_completion *);
typedef int (*wait_function)(void *, const struct sluice_handle *, int64_t,
                             struct sluice_completion *);

/*
 * One connection. Callers hold the lock of the connection; run() takes it itself if it will wait.
 */
struct engine {
    PyObject head;
    void *channel; /* NULL: it was closed */
    post_function post;
    poll_function poll;
    next_function next;
    wait_function wait;
    int64_t *count; /* in flight and not taken: sends and all else, receives */
    int64_t *room;  /* the limit of each */
    uint64_t next_number;
    PyObject *kept;   /* owner of the two arrays */
    PyObject *posted; /* requests whose completions were not taken, by number */
    PyObject *unseen; /* append() of the complete requests that no call waits for */
    PyObject *called; /* append() of the requests whose callbacks are due */
    PyObject *acquire, *release;
};

static PyObject *no_arguments, *not_blocking, *to_nanoseconds, *explain_works;
static PyTypeObject *completion_type, *request_type;
static newfunc new_completion_object, new_request;

/* Converts seconds to nanoseconds. Unusual values are left to nanoseconds() in Python. */
static int read_duration(PyObject *seconds, int64_t *value)
{
    PyObject *number;
    double plain = -1;
    if (seconds == Py_None) {
        *value = INT64_MAX;
        return 0;
    }
    if (PyFloat_CheckExact(seconds))
        plain = PyFloat_AsDouble(seconds);
    if (plain >= 0 && plain < 9.2e9) {
        *value = (int64_t)(plain * 1e9);
        return 0;
    }
    if (PyLong_CheckExact(seconds)) {
        *value = PyLong_AsLongLong(seconds);
        if (*value >= 0 && *value < INT64_C(9200000000)) {
            *value *= 1000000000;
            return 0;
        }
        PyErr_Clear();
    }
    number = PyObject_CallFunctionObjArgs(to_nanoseconds, seconds, NULL);
    if (!number)
        return -1;
    *value = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return *value == -1 && PyErr_Occurred() ? -1 : 0;
}

static int64_t read_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/*
 * Posts the batch. If all of it was posted, waits for it, for slice nanoseconds at most. Runs
 * without the interpreter's lock.
 */
static void post_and_wait(struct engine *engine, struct batch *batch, int64_t deadline,
                          int64_t slice)
{
    int64_t end = 0, left;
    int result;
    uint32_t i;
    batch->posted =
        engine->post(engine->channel, batch->requests, batch->count, deadline, batch->handles);
    if (slice == POST_ONLY || batch->posted != (int)batch->count)
        return;
    for (i = 0; i < batch->count; i++) {
        /* Most requests are complete by now, so that the clock need not be read. */
        result = engine->wait(engine->channel, &batch->handles[i], 0, &batch->completions[i]);
        if (result == -ETIMEDOUT && slice > 0) {
            left = read_clock();
            end = end ? end : left + slice;
            left = end > left ? end - left : 0;
            result =
                engine->wait(engine->channel, &batch->handles[i], left, &batch->completions[i]);
            if (left == 0 || result != 0)
                slice = 0; /* the rest is only polled */
        }
        batch->done[i] = result == 0;
    }
}

/* Makes a Completion; the order of its fields is that of _FIELDS in _completion.py. */
static PyObject *new_completion(const struct sluice_completion *c, PyObject *user)
{
    PyObject *made = new_completion_object(completion_type, no_arguments, NULL);
    PyObject *values = PyTuple_New(12), *fields[12] = {NULL};
    int i, failed = !made || !values;
    if (failed) {
        Py_XDECREF(made);
        Py_XDECREF(values);
        return NULL;
    }
    fields[0] = PyLong_FromUnsignedLong(c->opcode);
    fields[1] = PyLong_FromUnsignedLong(c->peer);
    fields[2] = PyLong_FromUnsignedLongLong(c->bytes);
    fields[3] = PyLong_FromLong(c->error);
    fields[4] = PyLong_FromUnsignedLong(c->error_class);
    fields[5] = PyLong_FromUnsignedLong(c->status);
    fields[6] = PyLong_FromUnsignedLong(c->cause);
    fields[7] = PyLong_FromUnsignedLong(c->vendor);
    if (c->flags & SLUICE_IMMEDIATE)
        fields[8] = PyLong_FromUnsignedLong(c->immediate);
    else
        fields[8] = Py_NewRef(Py_None);
    fields[9] = PyBool_FromLong(c->flags & SLUICE_WRITTEN);
    fields[10] = PyBool_FromLong(c->flags & SLUICE_PEER_REMOVED);
    fields[11] = Py_NewRef(user);
    for (i = 0; i < 12; i++) {
        failed |= !fields[i];
        PyTuple_SetItem(values, i, fields[i]);
    }
    if (failed || PyObject_SetAttr(made, names[N_VALUES], values) < 0)
        Py_CLEAR(made);
    Py_DECREF(values);
    return made;
}

/* Makes a Request for a posted work that is not known to be complete. */
static PyObject *add_request(struct engine *engine, struct batch *batch, uint32_t at,
                             PyObject *connection, PyObject *seen)
{
    PyObject *request = new_request(request_type, no_arguments, NULL);
    PyObject *number = PyLong_FromUnsignedLongLong(batch->number + at);
    PyObject *handle =
        PyBytes_FromStringAndSize((const char *)&batch->handles[at], sizeof(struct sluice_handle));
    PyObject *work = PyTuple_GetItem(batch->works, batch->order[at]);
    if (!request || !number || !handle ||
        PyObject_SetAttr(request, names[N_CONNECTION], connection) < 0 ||
        PyObject_SetAttr(request, names[N_WORK], work) < 0 ||
        PyObject_SetAttr(request, names[N_HANDLE], handle) < 0 ||
        (seen == Py_True && PyObject_SetAttr(request, names[N_SEEN], seen) < 0) ||
        PyDict_SetItem(engine->posted, number, request) < 0)
        Py_CLEAR(request);
    else
        engine->count[batch->requests[at].opcode == SLUICE_OP_RECEIVE]++;
    Py_XDECREF(number);
    Py_XDECREF(handle);
    return request;
}

/* Returns a Completion, a Request, or None if the work was not posted. */
static PyObject *end_of(struct engine *engine, struct batch *batch, uint32_t at,
                        PyObject *connection, PyObject *seen)
{
    PyObject *work = PyTuple_GetItem(batch->works, batch->order[at]), *user, *made;
    if ((int)at >= batch->posted)
        return Py_NewRef(Py_None);
    if (!batch->done[at])
        return add_request(engine, batch, at, connection, seen);
    user = PyObject_GetAttr(work, names[N_USER]);
    made = user ? new_completion(&batch->completions[at], user) : NULL;
    Py_XDECREF(user);
    return made;
}

/*
 * Returns the result of each work, in the order of works: a list if the call did not wait or all
 * succeeded, otherwise a tuple.
 */
static PyObject *ends_of(struct engine *engine, struct batch *batch, PyObject *connection,
                         int waited)
{
    uint32_t i, entries = waited ? batch->count : (uint32_t)batch->posted;
    PyObject *ends = PyList_New(entries), *each, *tuple;
    int good = 1, failed = !ends;
    for (i = 0; ends && i < entries; i++) {
        each = end_of(engine, batch, i, connection, waited ? Py_True : Py_False);
        failed |= !each;
        good &= !waited || (batch->done[i] && batch->completions[i].error == 0);
        PyList_SetItem(ends, batch->order[i], each);
    }
    if (failed) {
        /* There was no memory. Unrecorded work in flight must keep its memory forever. */
        Py_INCREF(batch->works);
        Py_CLEAR(ends);
    }
    if (!ends || good)
        return ends;
    tuple = PyList_AsTuple(ends);
    Py_DECREF(ends);
    return tuple;
}

/* Lets Python raise its own error for works that could not be read, if it has one. */
static void explain(PyObject *works)
{
    PyObject *type, *value, *traceback, *made;
    PyErr_Fetch(&type, &value, &traceback);
    made = PyObject_CallFunctionObjArgs(explain_works, works, NULL);
    if (made) {
        PyErr_Restore(type, value, traceback);
    } else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    Py_XDECREF(made);
}

static PyObject *run_filled(struct engine *engine, struct batch *batch, PyObject *connection,
                            int64_t deadline, int64_t slice)
{
    PyThreadState *thread;
    engine->next_number += batch->count;
    thread = PyEval_SaveThread();
    post_and_wait(engine, batch, deadline, slice);
    PyEval_RestoreThread(thread);
    if (slice == POST_ONLY)
        return batch->posted < 0 ? PyLong_FromLong(batch->posted)
                                 : ends_of(engine, batch, connection, 0);
    return batch->posted > 0 ? ends_of(engine, batch, connection, 1) : Py_NewRef(Py_None);
}

static PyObject *run_batch(struct engine *engine, PyObject *connection, PyObject *works,
                           int64_t deadline, int64_t slice)
{
    struct batch batch;
    PyObject *result = NULL;
    int filled;
    if (begin_batch(&batch, works) < 0) {
        explain(works);
        return NULL;
    }
    filled =
        fill_batch(&batch, engine->next_number, engine->count, engine->room, slice != POST_ONLY);
    if (filled > 0 && engine->channel)
        result = run_filled(engine, &batch, connection, deadline, slice);
    else if (filled >= 0)
        result = Py_NewRef(Py_None);
    else
        explain(works);
    end_batch(&batch);
    return result;
}

/* Tries to take the lock of the connection. Returns 1; 0 if it is taken; -1 on an error. */
static int take_lock(struct engine *engine)
{
    PyObject *taken = PyObject_Call(engine->acquire, not_blocking, NULL);
    int result = taken ? taken == Py_True : -1;
    Py_XDECREF(taken);
    return result;
}

static PyObject *let_go(struct engine *engine, PyObject *result)
{
    PyObject *type, *value, *traceback, *released;
    PyErr_Fetch(&type, &value, &traceback);
    released = PyObject_CallNoArgs(engine->release);
    if (released)
        PyErr_Restore(type, value, traceback);
    else
        Py_CLEAR(result);
    Py_XDECREF(released);
    return result;
}

/* Also stores the result in a list, in case a signal is served before the caller has it. */
static PyObject *keep_in(PyObject *box, PyObject *result)
{
    if (result && PyList_Append(box, result) < 0)
        Py_CLEAR(result);
    return result;
}

/* run(connection, works, deadline, slice, box=None): see the class in _engine.py. */
static PyObject *run(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct engine *engine = (struct engine *)self;
    int64_t deadline, slice;
    PyObject *works, *result = NULL;
    int locked = 1;
    if (count != 4 && count != 5) {
        PyErr_SetString(PyExc_TypeError, "run() takes 4 or 5 arguments");
        return NULL;
    }
    if (read_duration(arguments[2], &deadline) < 0)
        return NULL;
    slice = PyLong_AsLongLong(arguments[3]);
    works = PyErr_Occurred() ? NULL : PySequence_Tuple(arguments[1]);
    if (!works)
        return NULL;
    if (slice != POST_ONLY)
        locked = engine->channel ? take_lock(engine) : 0;
    if (locked > 0 && engine->channel && PyTuple_Size(works) > 0)
        result = run_batch(engine, arguments[0], works, deadline, slice);
    else if (locked >= 0)
        result = Py_NewRef(Py_None);
    if (locked > 0 && slice != POST_ONLY)
        result = let_go(engine, result);
    Py_DECREF(works);
    return count == 5 ? keep_in(arguments[4], result) : result;
}

/* Appends a complete request to the list where the program finds it. */
static int announce(struct engine *engine, PyObject *request)
{
    PyObject *seen = PyObject_GetAttr(request, names[N_SEEN]);
    PyObject *callbacks = PyObject_GetAttr(request, names[N_CALLBACKS]), *added;
    int result = seen && callbacks ? 0 : -1;
    if (result == 0 && seen != Py_True) {
        added = PyObject_CallFunctionObjArgs(engine->unseen, request, NULL);
        result = added ? 0 : -1;
        Py_XDECREF(added);
    }
    if (result == 0 && PyTuple_Check(callbacks) && PyTuple_Size(callbacks) > 0) {
        added = PyObject_CallFunctionObjArgs(engine->called, request, NULL);
        result = added ? 0 : -1;
        Py_XDECREF(added);
    }
    Py_XDECREF(seen);
    Py_XDECREF(callbacks);
    return result;
}

/* Gives a request its completion, unless it has one, and releases its memory. */
static int complete(struct engine *engine, PyObject *request, const struct sluice_completion *c)
{
    PyObject *work = PyObject_GetAttr(request, names[N_WORK]), *user, *completion;
    int result = -1;
    if (!work || work == Py_None) {
        Py_XDECREF(work);
        return work ? 0 : -1;
    }
    user = PyObject_GetAttr(work, names[N_USER]);
    completion = user ? new_completion(c, user) : NULL;
    if (completion && PyObject_SetAttr(request, names[N_COMPLETION], completion) == 0 &&
        PyObject_SetAttr(request, names[N_WORK], Py_None) == 0)
        result = announce(engine, request);
    Py_DECREF(work);
    Py_XDECREF(user);
    Py_XDECREF(completion);
    return result;
}

/* Gives one completion of the library to its request, if that is known. */
static int take(struct engine *engine, const struct sluice_completion *c)
{
    PyObject *number = PyLong_FromUnsignedLongLong(c->user_data);
    PyObject *request = number ? PyDict_GetItemWithError(engine->posted, number) : NULL;
    int result = PyErr_Occurred() ? -1 : 0;
    if (request) {
        Py_INCREF(request);
        engine->count[c->opcode == SLUICE_OP_RECEIVE]--;
        result = PyDict_DelItem(engine->posted, number);
        if (complete(engine, request, c) < 0)
            result = -1;
        Py_DECREF(request);
    }
    Py_XDECREF(number);
    return result;
}

/*
 * look(most): takes all available completions, or about that many if that is not 0. Returns how
 * many, or a negative errno.
 */
static PyObject *look(PyObject *self, PyObject *wanted)
{
    struct engine *engine = (struct engine *)self;
    struct sluice_completion taken[POLL_MOST];
    PyThreadState *thread;
    int i, count, failed = 0;
    long total = 0, most = PyLong_AsLong(wanted);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    do {
        if (!engine->channel)
            return PyLong_FromLong(-EBADF);
        thread = PyEval_SaveThread();
        count = engine->poll(engine->channel, taken, POLL_MOST);
        PyEval_RestoreThread(thread);
        if (count < 0)
            return PyLong_FromLong(count);
        for (i = 0; i < count; i++)
            failed |= take(engine, &taken[i]) < 0;
        total += count;
    } while (count == POLL_MOST && !failed && (most == 0 || total < most));
    return failed ? NULL : PyLong_FromLong(total);
}

/* next(timeout): waits for one completion. Returns 1 if one was taken, or a negative errno. */
static PyObject *next(PyObject *self, PyObject *timeout)
{
    struct engine *engine = (struct engine *)self;
    struct sluice_completion taken;
    PyThreadState *thread;
    int64_t wanted = PyLong_AsLongLong(timeout);
    int result;
    if (wanted == -1 && PyErr_Occurred())
        return NULL;
    if (!engine->channel)
        return PyLong_FromLong(-EBADF);
    thread = PyEval_SaveThread();
    result = engine->next(engine->channel, wanted, &taken);
    PyEval_RestoreThread(thread);
    if (result < 0)
        return PyLong_FromLong(result);
    return take(engine, &taken) < 0 ? NULL : PyLong_FromLong(1);
}

/* end(): the channel is closed, or is about to be. */
static PyObject *end(PyObject *self, PyObject *unused)
{
    (void)unused;
    ((struct engine *)self)->channel = NULL;
    Py_RETURN_NONE;
}

static int visit(PyObject *self, visitproc visit, void *arg)
{
    struct engine *engine = (struct engine *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(engine->kept);
    Py_VISIT(engine->posted);
    Py_VISIT(engine->unseen);
    Py_VISIT(engine->called);
    Py_VISIT(engine->acquire);
    Py_VISIT(engine->release);
    return 0;
}

static int clear(PyObject *self)
{
    struct engine *engine = (struct engine *)self;
    engine->channel = NULL;
    Py_CLEAR(engine->kept);
    Py_CLEAR(engine->posted);
    Py_CLEAR(engine->unseen);
    Py_CLEAR(engine->called);
    Py_CLEAR(engine->acquire);
    Py_CLEAR(engine->release);
    return 0;
}

static void deallocate(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(self);
    clear(self);
    release(self);
    Py_DECREF(type);
}

/*
 * Engine(addresses, number, kept, posted, unseen, called, acquire, release). The addresses are
 * those of the channel, post, poll, next, wait, and the arrays count and room; number is user_data
 * of the first request.
 */
static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    unsigned long long at[7], number;
    PyObject *objects[6];
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct engine *engine;
    int i;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "(KKKKKKK)KOO!OOOO", &at[0], &at[1], &at[2], &at[3], &at[4],
                          &at[5], &at[6], &number, &objects[0], &PyDict_Type, &objects[1],
                          &objects[2], &objects[3], &objects[4], &objects[5]))
        return NULL;
    engine = (struct engine *)allocate(type, 0);
    if (!engine)
        return NULL;
    engine->channel = (void *)(uintptr_t)at[0];
    engine->post = (post_function)(uintptr_t)at[1];
    engine->poll = (poll_function)(uintptr_t)at[2];
    engine->next = (next_function)(uintptr_t)at[3];
    engine->wait = (wait_function)(uintptr_t)at[4];
    engine->count = (int64_t *)(uintptr_t)at[5];
    engine->room = (int64_t *)(uintptr_t)at[6];
    engine->next_number = number;
    for (i = 0; i < 6; i++)
        Py_INCREF(objects[i]);
    engine->kept = objects[0];
    engine->posted = objects[1];
    engine->unseen = objects[2];
    engine->called = objects[3];
    engine->acquire = objects[4];
    engine->release = objects[5];
    return (PyObject *)engine;
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL},
    {"look", look, METH_O, NULL},
    {"next", next, METH_O, NULL},
    {"end", end, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, make},    {Py_tp_methods, methods},    {Py_tp_traverse, visit},
    {Py_tp_clear, clear}, {Py_tp_dealloc, deallocate}, {0, NULL},
};

static PyType_Spec spec = {
    .name = "sluice._fast.Engine",
    .basicsize = sizeof(struct engine),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

/* set_up(Completion, Request, nanoseconds, _explain): what this module uses of the package. */
static PyObject *set_up(PyObject *self, PyObject *arguments)
{
    PyObject *completion, *request, *nanoseconds, *explanation;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "O!O!OO", &PyType_Type, &completion, &PyType_Type, &request,
                          &nanoseconds, &explanation))
        return NULL;
    completion_type = (PyTypeObject *)Py_NewRef(completion);
    request_type = (PyTypeObject *)Py_NewRef(request);
    to_nanoseconds = Py_NewRef(nanoseconds);
    explain_works = Py_NewRef(explanation);
    new_completion_object = (newfunc)PyType_GetSlot(completion_type, Py_tp_new);
    new_request = (newfunc)PyType_GetSlot(request_type, Py_tp_new);
    Py_RETURN_NONE;
}

/* completions(address, works): returns a list of Completions from the structs at the address. */
static PyObject *completions(PyObject *self, PyObject *arguments)
{
    PyObject *works, *list, *user, *each;
    const struct sluice_completion *structs;
    unsigned long long address;
    Py_ssize_t i, count;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "KO!", &address, &PyTuple_Type, &works))
        return NULL;
    structs = (const struct sluice_completion *)(uintptr_t)address;
    count = PyTuple_Size(works);
    list = PyList_New(count);
    for (i = 0; list && i < count; i++) {
        user = PyObject_GetAttr(PyTuple_GetItem(works, i), names[N_USER]);
        each = user ? new_completion(&structs[i], user) : NULL;
        Py_XDECREF(user);
        if (each)
            PyList_SetItem(list, i, each);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"completions", completions, METH_VARARGS, NULL},
    {"set_up", set_up, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    "sluice._fast",
    "The hot calls, in C.",
    -1,
    functions,
    NULL,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__fast(void);

PyMODINIT_FUNC PyInit__fast(void)
{
    PyObject *made = PyModule_Create(&module), *type = PyType_FromSpec(&spec);
    no_arguments = PyTuple_New(0);
    not_blocking = Py_BuildValue("(O)", Py_False);
    if (!made || !type || !no_arguments || !not_blocking || make_names() < 0 ||
        PyModule_AddObjectRef(made, "Engine", type) < 0)
        Py_CLEAR(made);
    Py_XDECREF(type);
    return made;
}
