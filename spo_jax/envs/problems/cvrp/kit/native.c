/* The kit of the capacitated vehicle routing problem, compiled: see reference.py for what each
 * function does. That of the VRPTW is this one with TIMED 1: routes keep time windows, too. */

#define FIRST 1
#ifndef TIMED
#define TIMED 0
#endif
#include "../../kit.h"

/* The arguments that an insertion or a search has before the routes. */
#if TIMED
#define GIVEN "dist", "demands", "capacity", "ready", "due", "service"
enum { ROUTES = 6 };
#else
#define GIVEN "dist", "demands", "capacity"
enum { ROUTES = 3 };
#endif

static const double BIG = 1e6; /* what stands for inf as the factor of a new route */

/* --- routes and demands ----------------------------------------------------------------------- */

typedef struct {
    int *nodes; /* [total], one route after the other */
    int *start; /* [count + 1] */
    int count;
    int total;
    int top; /* the highest node, or 0 */
} Routes;

/* Routes of any nodes. */
static bool copy_routes(Call *c, PyObject *items, Routes *out)
{
    int most = 256;
    *out = (Routes){.count = (int)PyTuple_Size(items)};
    out->start = room_for(c, (size_t)out->count + 1, sizeof(int));
    out->nodes = room_for(c, (size_t)most, sizeof(int));
    if (out->start == NULL || out->nodes == NULL)
        return false;
    spend(5 * ITEM * (long long)out->count);
    for (int r = 0; r < out->count; r++) {
        PyObject *route = snapshot(PyTuple_GetItem(items, r));
        if (route == NULL)
            return false;
        out->start[r] = out->total;
        int end = out->total + (int)PyTuple_Size(route);
        bool fine = end <= MAX_NODES || refuse("the routes are too long");
        if (fine && end > most) {
            int *old = out->nodes;
            most = 2 * end;
            out->nodes = room_for(c, (size_t)most, sizeof(int));
            fine = out->nodes != NULL;
            if (fine)
                memcpy(out->nodes, old, (size_t)out->total * sizeof(int));
        }
        fine = fine && copy_nodes(route, out->nodes + out->total, &out->top);
        out->total = end;
        Py_DECREF(route);
        if (!fine)
            return false;
    }
    out->start[out->count] = out->total;
    return true;
}

/* Routes of distinct customers below `end`, or below any number if it is 0, marked in `seen`. */
static bool take_routes(Call *c, PyObject *given, int end, Routes *out, unsigned char **seen)
{
    PyObject *items = snapshot(given);
    bool fine = items != NULL && copy_routes(c, items, out);
    Py_XDECREF(items);
    if (!fine)
        return false;
    if (end == 0)
        end = out->top + 1;
    *seen = zeros_for(c, (size_t)end, 1);
    return *seen != NULL && mark_nodes(*seen, out->nodes, out->total, FIRST, end);
}

/* The matrix and routes of its customers, marked in `seen`, [N]. */
static bool take_solution(Call *c, PyObject *dist, PyObject *given, Routes *out,
                          unsigned char **seen)
{
    if (!take_matrix(c, dist))
        return false;
    if (c->m->n > 0)
        return take_routes(c, given, c->m->n, out, seen);
    return take_routes(c, given, 0, out, seen) &&
           (out->total == 0 || refuse("there is no such node"));
}

/* A list of customers, marked in `seen`. */
static bool take_customers(Call *c, PyObject *given, unsigned char *seen, List *out)
{
    return take_list(c, given, 0, out) &&
           mark_nodes(seen, out->nodes, out->count, FIRST, c->m->n);
}

static int length_of(const Routes *routes, int r)
{
    return routes->start[r + 1] - routes->start[r];
}

/* The route of each node, [size], -1 for those that are in none. */
static int *homes_of(Call *c, const Routes *routes, int size)
{
    int *home = room_for(c, (size_t)size, sizeof(int));
    for (int i = 0; home != NULL && i < size; i++)
        home[i] = -1;
    for (int r = 0; home != NULL && r < routes->count; r++)
        for (int i = routes->start[r]; i < routes->start[r + 1]; i++)
            home[routes->nodes[i]] = r;
    return home;
}

/* Demands as an array of 64-bit integers has them; false without an exception if it is none. */
static bool copy_array(Call *c, PyObject *given, int64_t **out, int *count)
{
    Py_buffer view;
    if (!PyObject_CheckBuffer(given))
        return false;
    if (PyObject_GetBuffer(given, &view, PyBUF_RECORDS_RO) != 0) {
        PyErr_Clear();
        return false;
    }
    bool fits = view.ndim == 1 && view.itemsize == sizeof(int64_t) && view.format != NULL &&
                (strcmp(view.format, "l") == 0 || strcmp(view.format, "q") == 0) &&
                view.shape != NULL && view.strides != NULL && view.suboffsets == NULL &&
                view.shape[0] <= MAX_LENGTH;
    *out = fits ? room_for(c, (size_t)view.shape[0], sizeof(int64_t)) : NULL;
    fits = *out != NULL;
    if (fits) {
        *count = (int)view.shape[0];
        for (int i = 0; i < *count; i++)
            memcpy(&(*out)[i], (const char *)view.buf + i * view.strides[0], sizeof(int64_t));
    }
    PyBuffer_Release(&view);
    return fits;
}

/* At least `least` demands, whose sums are exact as floats. */
static bool take_demands(Call *c, PyObject *given, int least, int64_t **out, int *count)
{
    const int64_t most = (int64_t)1 << 53;
    int64_t total = 0;
    if (!copy_array(c, given, out, count)) {
        if (PyErr_Occurred() != NULL)
            return false;
        PyObject *items = snapshot(given);
        if (items == NULL)
            return false;
        *count = (int)PyTuple_Size(items);
        *out = room_for(c, (size_t)*count, sizeof(int64_t));
        bool fine = *out != NULL;
        for (int i = 0; fine && i < *count; i++) {
            long long demand = 0;
            fine = take_integer(PyTuple_GetItem(items, i), 0, &demand);
            (*out)[i] = demand;
        }
        Py_DECREF(items);
        if (!fine)
            return false;
    }
    spend(*count);
    for (int i = 0; i < *count; i++) {
        int64_t demand = (*out)[i];
        if (demand > most || demand < -most)
            return refuse("a demand is too large");
        total += demand < 0 ? -demand : demand;
        if (total > most)
            return refuse("the demands are too large");
    }
    return *count >= least || refuse("a node has no demand");
}

#include "times.h"

typedef struct {
    Routes routes;
    unsigned char *seen; /* [N] */
    int64_t *demands;    /* [at least N] */
    int64_t capacity;
    Times times;
} Problem;

/* What is GIVEN and the routes after it, the first arguments. */
static bool take_problem(Call *c, PyObject **a, Problem *p)
{
    const int64_t most = (int64_t)1 << 60;
    long long capacity;
    int count;
    if (!take_solution(c, a[0], a[ROUTES], &p->routes, &p->seen) ||
        !take_demands(c, a[1], c->m->n, &p->demands, &count) ||
        !take_integer(a[2], 0, &capacity) || !take_times(c, a + 3, &p->times))
        return false;
    p->capacity = capacity > most ? most : capacity < -most ? -most : capacity;
    return true;
}

static int64_t load_of(const int64_t *demands, const int *nodes, int count)
{
    int64_t load = 0;
    spend(count / 2);
    for (int i = 0; i < count; i++)
        load += demands[nodes[i]];
    return load;
}

/* --- limits of routes ------------------------------------------------------------------------- */

/* What bounds routes besides the capacity: a prepared matrix has them. */
typedef struct {
    double longest;     /* the most that a route may be long */
    double lasting;     /* the most that it may be long with the service times of its customers */
    long long vehicles; /* the most routes that are opened while there is room in others */
    double service[];   /* [N] */
} Limits;

static const Limits *limits_of(const Matrix *m)
{
    return m->limits;
}

/* How long a route is and, in *stay, how long its service takes. */
static double measured(const Matrix *m, const int *nodes, int count, double *stay)
{
    const Limits *l = limits_of(m);
    double length = 0.0;
    int last = 0;
    *stay = 0.0;
    spend(2 * (long long)count);
    for (int i = 0; i < count; i++) {
        length += edge(m, last, nodes[i]);
        *stay += l->service[nodes[i]];
        last = nodes[i];
    }
    return length + edge(m, last, 0);
}

static inline bool within(const Limits *l, double length, double stay)
{
    return length <= l->longest && length + stay <= l->lasting;
}

/* Whether a route that got longer by that much and had more customers would keep the limits. */
static bool may_grow(const Matrix *m, const int *nodes, int count, double more, double service)
{
    double stay, length;
    if (limits_of(m) == NULL)
        return true;
    length = measured(m, nodes, count, &stay);
    return within(limits_of(m), length + more, stay + service);
}

/* Gives limits to a prepared matrix. It is no function of the kit: programs do not see it. */
FUNCTION(limit, 5, 5, "dist", "longest", "lasting", "vehicles", "service")
{
    double longest, lasting;
    long long vehicles;
    if (!take_matrix(c, a[0]) || !take_number(a[1], 0, 0, HUGE_VAL, &longest) ||
        !take_number(a[2], 0, 0, HUGE_VAL, &lasting) || !take_count(a[3], 0, 1, &vehicles))
        return NULL;
    PyObject *items = snapshot(a[4]);
    if (items == NULL)
        return NULL;
    size_t n = (size_t)c->m->n;
    Limits *limits = NULL;
    bool fine = PyTuple_Size(items) == c->m->n || refuse("a node has no service time");
    if (fine && (limits = malloc(sizeof(Limits) + n * sizeof(double))) == NULL) {
        PyErr_NoMemory();
        fine = false;
    }
    for (size_t i = 0; fine && i < n; i++)
        fine = take_number(PyTuple_GetItem(items, (Py_ssize_t)i), 0, 0, 1e300,
                           &limits->service[i]);
    Py_DECREF(items);
    if (!fine) {
        free(limits);
        return NULL;
    }
    limits->longest = longest;
    limits->lasting = lasting;
    limits->vehicles = vehicles;
    free(c->m->limits);
    c->m->limits = limits;
    Py_RETURN_NONE;
}

FUNCTION(slack, 2, 3, "dist", "routes", "customer")
{
    Routes routes;
    unsigned char *seen;
    int customer = 0;
    if (!take_solution(c, a[0], a[1], &routes, &seen) || !take_node(a[2], 0, c->m->n, &customer))
        return NULL;
    const Limits *limits = limits_of(c->m);
    PyObject *list = PyList_New(routes.count);
    spend(ITEM * (long long)routes.count);
    for (int r = 0; list != NULL && r < routes.count; r++) {
        double far = HUGE_VAL, stay;
        if (limits != NULL) {
            double length =
                measured(c->m, routes.nodes + routes.start[r], length_of(&routes, r), &stay);
            double late = limits->lasting - length - (stay + limits->service[customer]);
            far = limits->longest - length;
            far = late < far ? late : far;
        }
        PyObject *number = PyFloat_FromDouble(far);
        if (number == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, r, number);
    }
    return list;
}

FUNCTION(vehicles, 1, 1, "dist")
{
    if (!take_matrix(c, a[0]))
        return NULL;
    return PyLong_FromLongLong(limits_of(c->m) == NULL ? 1 << 30 : limits_of(c->m)->vehicles);
}

/* A list of lists. */
static PyObject *as_routes(const Routes *routes, bool drop_empty)
{
    PyObject *list = PyList_New(0);
    spend(5 * ITEM * (long long)routes->count);
    for (int r = 0; list != NULL && r < routes->count; r++) {
        int length = length_of(routes, r);
        if (drop_empty && length == 0)
            continue;
        PyObject *route = as_list(routes->nodes + routes->start[r], length);
        if (route == NULL || PyList_Append(list, route) != 0)
            Py_CLEAR(list);
        Py_XDECREF(route);
    }
    return list;
}

/* A list of lists of what each customer of the routes has in `of`, [N]. */
static PyObject *as_numbers(const Routes *routes, const double *of)
{
    PyObject *all = PyList_New(routes->count);
    spend(ITEM * (long long)routes->total);
    for (int r = 0; all != NULL && r < routes->count; r++) {
        int length = length_of(routes, r);
        PyObject *numbers = PyList_New(length);
        for (int i = 0; numbers != NULL && i < length; i++) {
            PyObject *number = PyFloat_FromDouble(of[routes->nodes[routes->start[r] + i]]);
            if (number == NULL)
                Py_CLEAR(numbers);
            else
                PyList_SetItem(numbers, i, number);
        }
        if (numbers == NULL)
            Py_CLEAR(all);
        else
            PyList_SetItem(all, r, numbers);
    }
    return all;
}

FUNCTION(cost, 2, 2, "dist", "routes")
{
    Routes routes;
    unsigned char *seen;
    if (!take_solution(c, a[0], a[1], &routes, &seen))
        return NULL;
    double length = 0.0;
    if (c->m->n == 0 && routes.count > 0) {
        refuse("there is no depot");
        return NULL;
    }
    spend(2 * (long long)routes.total);
    for (int r = 0; r < routes.count; r++) {
        int last = 0;
        for (int i = routes.start[r]; i < routes.start[r + 1]; i++) {
            length += edge(c->m, last, routes.nodes[i]);
            last = routes.nodes[i];
        }
        length += edge(c->m, last, 0);
    }
    return PyFloat_FromDouble(length);
}

FUNCTION(loads, 2, 2, "demands", "routes")
{
    Routes routes;
    unsigned char *seen;
    int64_t *demands;
    int count;
    if (!take_demands(c, a[0], 0, &demands, &count) ||
        !take_routes(c, a[1], count, &routes, &seen))
        return NULL;
    if (count == 0 && routes.total > 0) {
        refuse("there is no such node");
        return NULL;
    }
    PyObject *list = PyList_New(routes.count);
    spend(ITEM * (long long)routes.count);
    for (int r = 0; list != NULL && r < routes.count; r++) {
        int64_t load = load_of(demands, routes.nodes + routes.start[r], length_of(&routes, r));
        PyObject *number = PyLong_FromLongLong(load);
        if (number == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, r, number);
    }
    return list;
}

static double saving(const Matrix *m, int last, int node, int next)
{
    return edge(m, last, node) + edge(m, node, next) - edge(m, last, next);
}

FUNCTION(savings, 2, 2, "dist", "routes")
{
    Routes routes;
    unsigned char *seen;
    if (!take_solution(c, a[0], a[1], &routes, &seen))
        return NULL;
    double *saved = room_for(c, (size_t)c->m->n, sizeof(double));
    for (int r = 0; saved != NULL && r < routes.count; r++) {
        const int *route = routes.nodes + routes.start[r];
        int length = length_of(&routes, r);
        for (int i = 0; i < length; i++)
            saved[route[i]] = saving(c->m, i > 0 ? route[i - 1] : 0, route[i],
                                     i + 1 < length ? route[i + 1] : 0);
    }
    return saved == NULL ? NULL : as_numbers(&routes, saved);
}

#if TIMED
FUNCTION(begins, 4, 4, "dist", "ready", "service", "routes")
{
    Routes routes;
    unsigned char *seen;
    double *begin = NULL;
    if (!take_solution(c, a[0], a[3], &routes, &seen) || !take_begins(c, a + 1, &routes, &begin))
        return NULL;
    return as_numbers(&routes, begin);
}
#endif

#include "removals.h"
#include "insertions.h"
#include "search.h"

static PyMethodDef methods[] = {
#if TIMED
    METHOD(begins),
    METHOD(exchange),
    METHOD(timely_removal),
#endif
    METHOD(best_position),
    METHOD(cost),
    FORGET_METHOD,
    RELEASE_METHOD,
    METHOD(greedy_insertion),
    METHOD(limit),
    METHOD(loads),
    METHOD(nearest),
    METHOD(neighbors),
    METHOD(or_opt),
    METHOD(ordered_insertion),
    METHOD(prepare),
    METHOD(radial_removal),
    METHOD(random_removal),
    METHOD(regret_insertion),
    METHOD(related_removal),
    {"remove", (PyCFunction)(void (*)(void))remove_nodes, METH_FASTCALL | METH_KEYWORDS, NULL},
    METHOD(route_removal),
    METHOD(savings),
    METHOD(segment_removal),
    METHOD(slack),
    METHOD(string_removal),
    METHOD(two_opt),
    METHOD(two_opt_star),
    METHOD(vehicles),
    WORK_METHOD,
    METHOD(worst_removal),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return kit_module(&definition);
}
