/* What the compiled kits of several problems share: arguments, random numbers, sorting, matrices.
 *
 * A kit is called by hostile programs. So every argument is copied into memory of ours and checked
 * before it is used: what other Python code does to a list afterwards cannot be seen here. Such code
 * runs where items are read or numbers are drawn, and up to Python 3.11 where any container is made,
 * since the cyclic collector runs there. What a call allocates or holds hangs on its Call, and is
 * released at its end on every path.
 *
 * The results equal those of the reference in Python to the last bit: sums in the same order,
 * compiled without contraction (-ffp-contract=off), and the first wins among equals.
 *
 * Define FIRST, the first node that can be a neighbour, before this is included.
 */
#ifndef SPO_KIT_H
#define SPO_KIT_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH = 64,           /* the most neighbours of a node that any search looks at */
    MAX_NODES = 65535,    /* of a matrix; a node fits 16 bits */
    MAX_LENGTH = 1 << 20, /* of a list */
    MAX_ARGUMENTS = 16
};
static const double MARGIN = 1e-10; /* of the removed edges: gains below it may be rounding */

/* --- work ------------------------------------------------------------------------------------- */

/* What all calls of this process have done, in looks at a place of insertion: weights are of their
 * times. It depends on arguments and draws alone, so matrices and neighbour lists, which are kept
 * from call to call, do not count. */
static long long spent = 0;
enum { CALL = 150, ITEM = 6, DRAW = 20 };

static inline void spend(long long units)
{
    spent += units;
}

/* --- a call ----------------------------------------------------------------------------------- */

typedef struct Block {
    struct Block *next;
    double data[];
} Block;

typedef struct Matrix Matrix;

typedef struct {
    Matrix *m;        /* held */
    PyObject *rng;    /* borrowed from the caller; NULL stands for None */
    PyObject *random; /* held: its method, from the first draw on */
    Block *blocks;
} Call;

static void matrix_release(Matrix *m);

/* Room for `count` things, until the end of the call; NULL and an exception if there is none. */
static void *room_for(Call *c, size_t count, size_t size)
{
    Block *block = NULL;
    if (count <= (PY_SSIZE_T_MAX - sizeof(Block)) / size)
        block = malloc(sizeof(Block) + count * size);
    if (block == NULL)
        return PyErr_NoMemory();
    block->next = c->blocks;
    c->blocks = block;
    return block->data;
}

static void *zeros_for(Call *c, size_t count, size_t size)
{
    void *data = room_for(c, count, size);
    if (data != NULL)
        memset(data, 0, count * size);
    return data;
}

static void release(Call *c)
{
    while (c->blocks != NULL) {
        Block *next = c->blocks->next;
        free(c->blocks);
        c->blocks = next;
    }
    if (c->m != NULL)
        matrix_release(c->m);
    Py_XDECREF(c->random);
}

static bool refuse(const char *why)
{
    PyErr_SetString(PyExc_ValueError, why);
    return false;
}

/* The next number of the program's generator, from 0 to below 1. It runs Python code. */
static bool draw(Call *c, double *u)
{
    spend(DRAW);
    if (c->random == NULL) {
        c->random = PyObject_GetAttrString(c->rng == NULL ? Py_None : c->rng, "random");
        if (c->random == NULL)
            return false;
    }
    PyObject *drawn = PyObject_CallNoArgs(c->random);
    if (drawn == NULL)
        return false;
    bool exact = PyFloat_CheckExact(drawn);
    *u = exact ? PyFloat_AsDouble(drawn) : 0.0;
    Py_DECREF(drawn);
    if (!exact) {
        PyErr_SetString(PyExc_TypeError, "rng.random() is not a float");
        return false;
    }
    return (*u >= 0.0 && *u < 1.0) || refuse("rng.random() is not from 0 to below 1");
}

/* --- arguments -------------------------------------------------------------------------------- */

/* The arguments in the order of `names`, borrowed; NULL where none is given. */
static bool parse(const char *function, const char *const *names, int required, int positional,
                  PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out)
{
    if (nargs > positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional arguments but %zd were given",
                     function, positional, nargs);
        return false;
    }
    for (Py_ssize_t i = 0; i < nargs; i++)
        out[i] = args[i];
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_Size(kwnames);
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(kwnames, i);
        int at = 0;
        while (names[at] != NULL && PyUnicode_CompareWithASCIIString(name, names[at]) != 0)
            at++;
        if (names[at] == NULL || out[at] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got %s argument '%U'", function,
                         names[at] == NULL ? "an unexpected keyword" : "two values for", name);
            return false;
        }
        out[at] = args[nargs + i];
    }
    for (int i = 0; i < required; i++)
        if (out[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() misses the argument '%s'", function, names[i]);
            return false;
        }
    return true;
}

/* Defines the Python function NAME, whose body gets the arguments named, NULL where not given. */
#define FUNCTION(NAME, REQUIRED, POSITIONAL, ...)                                                 \
    static PyObject *NAME##_body(Call *c, PyObject **a);                                          \
    static PyObject *NAME(PyObject *module, PyObject *const *args, Py_ssize_t nargs,              \
                          PyObject *kwnames)                                                      \
    {                                                                                             \
        static const char *const names[] = {__VA_ARGS__, NULL};                                   \
        PyObject *a[MAX_ARGUMENTS] = {NULL};                                                      \
        (void)module;                                                                             \
        if (!parse(#NAME, names, REQUIRED, POSITIONAL, args, nargs, kwnames, a))                  \
            return NULL;                                                                          \
        Call c = {0};                                                                             \
        spend(CALL);                                                                              \
        PyObject *result = NAME##_body(&c, a);                                                    \
        release(&c);                                                                              \
        return result;                                                                            \
    }                                                                                             \
    static PyObject *NAME##_body(Call *c, PyObject **a)

#define METHOD(NAME) {#NAME, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL | METH_KEYWORDS, NULL}

/* An integer of any size, cut to 64 bits; `otherwise` where none is given. */
static bool take_integer(PyObject *given, long long otherwise, long long *out)
{
    int overflow = 0;
    if (given == NULL) {
        *out = otherwise;
        return true;
    }
    if (PyLong_Check(given)) {
        *out = PyLong_AsLongLongAndOverflow(given, &overflow);
    } else {
        PyObject *index = PyNumber_Index(given);
        if (index == NULL)
            return false;
        *out = PyLong_AsLongLongAndOverflow(index, &overflow);
        Py_DECREF(index);
    }
    if (overflow != 0)
        *out = overflow > 0 ? LLONG_MAX : LLONG_MIN;
    return overflow != 0 || *out != -1 || PyErr_Occurred() == NULL;
}

/* A count of at least `least`. */
static bool take_count(PyObject *given, long long otherwise, long long least, long long *out)
{
    return take_integer(given, otherwise, out) && (*out >= least || refuse("a count is too small"));
}

/* A float, or an integer as one; an integer beyond all floats is infinite. */
static bool take_float(PyObject *given, double otherwise, double *out)
{
    *out = given == NULL ? otherwise : PyFloat_AsDouble(given);
    if (*out != -1.0 || PyErr_Occurred() == NULL)
        return true;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError) || !PyLong_Check(given))
        return false;
    PyErr_Clear();
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(given, &overflow);
    *out = overflow > 0 ? HUGE_VAL : -HUGE_VAL;
    return true;
}

/* A number from `low` to `high`, so not NaN. */
static bool take_number(PyObject *given, double otherwise, double low, double high, double *out)
{
    return take_float(given, otherwise, out) &&
           ((low <= *out && *out <= high) || refuse("a number is out of range"));
}

/* A tuple of the first `length` items of a list. Where the collector is on, making it may shorten the
 * list: Python's own copy, which is quicker, would read behind its end then. */
static PyObject *copied(PyObject *list, Py_ssize_t length)
{
    PyObject *items = PyTuple_New(length);
    for (Py_ssize_t i = 0; items != NULL && i < length; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (item == NULL) { /* IndexError */
            Py_CLEAR(items);
            refuse("a list changed while it was read");
        } else {
            Py_INCREF(item);
            PyTuple_SetItem(items, i, item);
        }
    }
    return items;
}

/* A tuple of what is in `given` now: a new reference. Not of an iterator, which has no length and
 * would be empty afterwards. */
static PyObject *snapshot(PyObject *given)
{
    Py_ssize_t length = PyObject_Size(given);
    if (length < 0)
        return NULL;
    if (length > MAX_LENGTH) {
        refuse("a list is too long");
        return NULL;
    }
    bool careful = PyGC_IsEnabled() && PyList_CheckExact(given);
    PyObject *items = careful ? copied(given, length) : PySequence_Tuple(given);
    if (items != NULL && PyTuple_Size(items) > MAX_LENGTH) {
        Py_DECREF(items);
        refuse("a list is too long");
        return NULL;
    }
    return items;
}

/* Copies items into nodes; -1 stands for all that cannot be a node. */
static bool copy_nodes(PyObject *items, int *nodes, int *top)
{
    int count = (int)PyTuple_Size(items);
    spend(ITEM * (long long)count);
    for (int i = 0; i < count; i++) {
        long long node;
        if (!take_integer(PyTuple_GetItem(items, i), 0, &node))
            return false;
        nodes[i] = node < 0 || node > MAX_NODES ? -1 : (int)node;
        if (nodes[i] > *top)
            *top = nodes[i];
    }
    return true;
}

typedef struct {
    int *nodes;
    int count;
    int top; /* the highest node, or -1 */
} List;

/* A list of nodes, not checked. `spare`: how much longer it can get. */
static bool take_list(Call *c, PyObject *given, int spare, List *out)
{
    PyObject *items = snapshot(given);
    if (items == NULL)
        return false;
    out->count = (int)PyTuple_Size(items);
    out->top = -1;
    out->nodes = room_for(c, (size_t)out->count + (size_t)spare, sizeof(int));
    bool fine = out->nodes != NULL && copy_nodes(items, out->nodes, &out->top);
    Py_DECREF(items);
    return fine;
}

/* Marks the nodes in `seen`, [end]; refuses those marked before and those not from first to end. */
static bool mark_nodes(unsigned char *seen, const int *nodes, int count, int first, int end)
{
    for (int i = 0; i < count; i++) {
        if (nodes[i] < first || nodes[i] >= end)
            return refuse("there is no such node");
        if (seen[nodes[i]]++)
            return refuse("a node stands there twice");
    }
    return true;
}

/* A node from `first` to `end` - 1. */
static bool take_node(PyObject *given, int first, int end, int *out)
{
    long long node;
    if (!take_integer(given, 0, &node))
        return false;
    *out = (int)(node < first || node >= end ? -1 : node);
    return *out >= 0 || refuse("there is no such node");
}

/* --- results ---------------------------------------------------------------------------------- */

static PyObject *as_list(const int *nodes, int count)
{
    PyObject *list = PyList_New(count);
    spend(ITEM * (long long)count);
    for (int i = 0; list != NULL && i < count; i++) {
        PyObject *node = PyLong_FromLong(nodes[i]);
        if (node == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, i, node);
    }
    return list;
}

/* (first, second), whose references it takes; NULL if one of them is. */
static PyObject *pair_of(PyObject *first, PyObject *second)
{
    PyObject *pair = first == NULL || second == NULL ? NULL : PyTuple_Pack(2, first, second);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return pair;
}

/* (None, inf): an insertion that reached its bound. */
static PyObject *nothing(void)
{
    return Py_BuildValue("(Od)", Py_None, HUGE_VAL);
}

/* The units of work of all calls so far. It is no function of the kit: programs do not see it. */
static PyObject *work(PyObject *module, PyObject *nothing_given)
{
    (void)module;
    (void)nothing_given;
    return PyLong_FromLongLong(spent);
}


/* The digest of the C sources, which setup.py gives: see spo_jax/envs/kits.py. */
#ifndef KIT_SOURCES
#define KIT_SOURCES ""
#endif

static PyObject *kit_module(struct PyModuleDef *definition)
{
    PyObject *module = PyModule_Create(definition);
    if (module != NULL && PyModule_AddStringConstant(module, "SOURCES", KIT_SOURCES) < 0)
        Py_CLEAR(module);
    return module;
}

#include "kit_sort.h"
#include "kit_matrix.h"

/* What the harness calls, and no program sees. */
#define FORGET_METHOD {"forget", forget, METH_NOARGS, NULL}
#define RELEASE_METHOD {"release", release_matrix, METH_O, NULL}
#define WORK_METHOD {"work", work, METH_NOARGS, NULL}

#endif
