/* Time windows of the kit of the VRPTW: with TIMED 0 nothing has any. */

/* Late is what is late by more than this share of when the depot closes: half of what rules allow,
 * since sums of the same times come in another order here. */
static const double ROUNDING = 5e-13;

typedef struct {
    const double *ready, *service; /* [N] */
    double *due;    /* [N], later by what rounding explains */
    double *leaves; /* [N] when a vehicle can leave each stop of a route; inf: it is late there */
    double *latest; /* [N] until when it must arrive there to be late nowhere; -inf: it is late */
    int *stops;     /* [N] room for a route */
} Times;

/* One number of each node, at least `least`. */
static bool take_floats(Call *c, PyObject *given, int least, double **out)
{
    PyObject *items = snapshot(given);
    if (items == NULL)
        return false;
    int count = (int)PyTuple_Size(items);
    *out = zeros_for(c, (size_t)count + 1, sizeof(double));
    bool fine = *out != NULL;
    spend(count);
    for (int i = 0; fine && i < count; i++)
        fine = take_number(PyTuple_GetItem(items, i), 0, -1e300, 1e300, &(*out)[i]);
    Py_DECREF(items);
    return fine && (count >= least || refuse("a node has no time"));
}

/* ready, due and service, where there are time windows. */
static bool take_times(Call *c, PyObject **a, Times *t)
{
    double *ready, *service;
    size_t n = (size_t)c->m->n;
    *t = (Times){0};
    if (!TIMED)
        return true;
    if (!take_floats(c, a[0], c->m->n, &ready) || !take_floats(c, a[1], c->m->n, &t->due) ||
        !take_floats(c, a[2], c->m->n, &service))
        return false;
    t->leaves = room_for(c, n + 1, sizeof(double));
    t->latest = room_for(c, n + 1, sizeof(double));
    t->stops = room_for(c, n, sizeof(int));
    if (t->leaves == NULL || t->latest == NULL || t->stops == NULL)
        return false;
    double late = ROUNDING * t->due[0];
    for (size_t i = 0; i < n; i++)
        t->due[i] += late;
    t->ready = ready;
    t->service = service;
    t->leaves[0] = ready[0];
    t->latest[0] = t->due[0];
    return true;
}

/* When a vehicle that leaves a stop at `clock` has served the next one; inf: it is late there. */
static inline double served(const Matrix *m, const Times *t, double clock, int stop, int node)
{
    double at = clock + edge(m, stop, node);
    if (at < t->ready[node])
        at = t->ready[node];
    return at > t->due[node] ? HUGE_VAL : at + t->service[node];
}

/* Notes when a vehicle can leave the stops of a route, and until when it must arrive there. */
static void time_route(const Matrix *m, const Times *t, const int *nodes, int count)
{
    double clock = t->ready[0], latest = t->due[0];
    spend(4 * (long long)count);
    for (int i = 0; i < count; i++)
        clock = t->leaves[nodes[i]] = served(m, t, clock, i > 0 ? nodes[i - 1] : 0, nodes[i]);
    for (int i = count - 1; i >= 0; i--) {
        int node = nodes[i];
        latest = latest - edge(m, node, i + 1 < count ? nodes[i + 1] : 0) - t->service[node];
        if (latest > t->due[node])
            latest = t->due[node];
        if (latest < t->ready[node])
            latest = -HUGE_VAL;
        t->latest[node] = latest;
    }
}

/* Whether what comes before `stop` on its route and what comes after `next` on its own can be one
 * route, with these two nodes. */
static inline bool joins(const Matrix *m, const Times *t, int stop, int next)
{
    return t->leaves[stop] + edge(m, stop, next) <= t->latest[next];
}

/* Whether they can with `count` nodes between them. */
static bool joins_by(const Matrix *m, const Times *t, int stop, const int *nodes, int count,
                     int next)
{
    double clock = t->leaves[stop];
    spend(2 * (long long)count);
    for (int i = 0; i < count; stop = nodes[i++])
        clock = served(m, t, clock, stop, nodes[i]);
    return clock + edge(m, stop, next) <= t->latest[next];
}

#if TIMED
/* When service begins at each customer of the routes, [N], be it late or not. a: ready, service. */
static bool take_begins(Call *c, PyObject **a, const Routes *routes, double **begin)
{
    double *ready, *service;
    *begin = room_for(c, (size_t)c->m->n, sizeof(double));
    if (!take_floats(c, a[0], c->m->n, &ready) || !take_floats(c, a[1], c->m->n, &service) ||
        *begin == NULL)
        return false;
    spend(2 * (long long)routes->total);
    for (int r = 0; r < routes->count; r++) {
        double clock = ready[0];
        int stop = 0;
        for (int i = routes->start[r]; i < routes->start[r + 1]; i++) {
            int node = routes->nodes[i];
            clock += edge(c->m, stop, node);
            if (clock < ready[node])
                clock = ready[node];
            (*begin)[node] = clock;
            clock += service[node];
            stop = node;
        }
    }
    return true;
}
#endif
