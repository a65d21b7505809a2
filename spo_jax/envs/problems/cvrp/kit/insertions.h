/* The insertions of the kit of the CVRP. A place is a route and the stop that it comes after, where
 * 0 stands for the depot. */

typedef struct {
    int *next;     /* [N] the customer after each, 0 after the last of a route */
    int *last;     /* [N] the customer before each, 0 before the first */
    int *home;     /* [N] the route of each, -1 for those that are in none */
    double *after; /* [N] from each customer to the next stop */
} Links;

/* Routes that grow, none of them empty: linked lists. */
typedef struct {
    Matrix *m;
    Links links;
    int *head;     /* [count] the first customer of each route */
    int *size;     /* [count] */
    double *enter; /* [count] from the depot to it */
    int64_t *room; /* [count] */
    double *length, *stay; /* [count]: see measured; NULL without limits */
    Times times;
    const Limits *limits;
    const int64_t *demands;
    int64_t capacity;
    int count;
} Plan;

static void insert_stop(Plan *p, int r, int from, int node)
{
    Links *l = &p->links;
    int next = from == 0 ? p->head[r] : l->next[from];
    if (from == 0) {
        p->head[r] = node;
        p->enter[r] = edge(p->m, 0, node);
    } else {
        l->next[from] = node;
        l->after[from] = edge(p->m, from, node);
    }
    if (next != 0)
        l->last[next] = node;
    l->last[node] = from;
    l->next[node] = next;
    l->after[node] = edge(p->m, node, next);
    l->home[node] = r;
    p->size[r]++;
    p->room[r] -= p->demands[node];
}

/* As `measured`, where there are limits, and as `time_route`. */
static void measure_route(Plan *p, int r)
{
    int node = p->head[r];
    if (TIMED) {
        int *stops = p->times.stops, count = 0;
        for (int stop = node; stop != 0; stop = p->links.next[stop])
            stops[count++] = stop;
        time_route(p->m, &p->times, stops, count);
    }
    if (p->limits == NULL)
        return;
    p->length[r] = p->enter[r];
    p->stay[r] = 0.0;
    spend(2 * (long long)p->size[r]);
    for (; node != 0; node = p->links.next[node]) {
        p->length[r] += p->links.after[node];
        p->stay[r] += p->limits->service[node];
    }
}

static void open_route(Plan *p, int node)
{
    int r = p->count++;
    p->head[r] = p->size[r] = 0;
    p->room[r] = p->capacity;
    insert_stop(p, r, 0, node);
    measure_route(p, r);
}

/* Whether a route can take a customer at a place with that price, behind the stop `from`. */
static inline bool has_room(const Plan *p, int r, int from, int node, double price)
{
    return p->room[r] >= p->demands[node] &&
           (!TIMED || joins_by(p->m, &p->times, from, &node, 1,
                               from == 0 ? p->head[r] : p->links.next[from])) &&
           (p->limits == NULL || within(p->limits, p->length[r] + price,
                                        p->stay[r] + p->limits->service[node]));
}

/* What the cost of a route of its own counts times: as if all vehicles are out, so BIG. */
static inline double freshness(const Plan *p, double fresh)
{
    bool full = p->limits != NULL && p->count >= p->limits->vehicles;
    return !full && fresh < BIG ? fresh : BIG;
}

static bool new_plan(Call *c, const Problem *from, int more, Plan *p)
{
    const Routes *routes = &from->routes;
    size_t n = (size_t)c->m->n, most = (size_t)routes->count + (size_t)more;
    *p = (Plan){.m = c->m, .demands = from->demands, .capacity = from->capacity,
                .times = from->times};
    p->limits = limits_of(c->m);
    if (p->limits != NULL) {
        p->length = room_for(c, most, sizeof(double));
        p->stay = room_for(c, most, sizeof(double));
        if (p->length == NULL || p->stay == NULL)
            return false;
    }
    int *stops = room_for(c, 3 * n, sizeof(int));
    p->links.after = room_for(c, n, sizeof(double));
    p->head = room_for(c, most, sizeof(int));
    p->size = room_for(c, most, sizeof(int));
    p->enter = room_for(c, most, sizeof(double));
    p->room = room_for(c, most, sizeof(int64_t));
    if (stops == NULL || p->links.after == NULL || p->head == NULL || p->size == NULL ||
        p->enter == NULL || p->room == NULL || !make_near(c->m))
        return false;
    p->links.next = stops;
    p->links.last = stops + n;
    p->links.home = stops + 2 * n;
    memset(p->links.home, 255, n * sizeof(int)); /* -1 */
    spend(4 * (long long)routes->total);
    for (int r = 0; r < routes->count; r++)
        for (int i = routes->start[r]; i < routes->start[r + 1]; i++)
            if (i == routes->start[r])
                open_route(p, routes->nodes[i]);
            else
                insert_stop(p, p->count - 1, routes->nodes[i - 1], routes->nodes[i]);
    for (int r = 0; r < p->count; r++)
        measure_route(p, r);
    return true;
}

static PyObject *plan_routes(Call *c, const Plan *p)
{
    Routes routes = {.count = p->count};
    routes.start = room_for(c, (size_t)p->count + 1, sizeof(int));
    routes.nodes = room_for(c, (size_t)c->m->n, sizeof(int));
    if (routes.start == NULL || routes.nodes == NULL)
        return NULL;
    for (int r = 0; r < p->count; r++) {
        routes.start[r] = routes.total;
        for (int node = p->head[r]; node != 0; node = p->links.next[node])
            routes.nodes[routes.total++] = node;
    }
    routes.start[p->count] = routes.total;
    spend(routes.total);
    return as_routes(&routes, false);
}

static inline double alone(const Plan *p, int node)
{
    return edge(p->m, 0, node) + edge(p->m, node, 0);
}

static inline double price_after(const Plan *p, int r, int from, int node)
{
    int next = from == 0 ? p->head[r] : p->links.next[from];
    double gone = from == 0 ? p->enter[r] : p->links.after[from];
    return column_of(p->m, node)[from] + row_of(p->m, node)[next] - gone;
}

typedef struct {
    double price;
    int route;
    int from;
} Place;

/* The places behind the customers of the routes nearest to `node`, and before those nearest from
 * it, by turns. */
static int directed_places(const Plan *p, int node, long long near, Place *places)
{
    const Links *l = &p->links;
    int count, found = 0, from = 0, to = 0;
    const uint16_t *after = near_to(p->m, node, DEPTH, &count);
    const uint16_t *before = near_of(p->m, node, DEPTH, &count);
    for (long long k = 0; k < near; k++, from++, to++) {
        while (from < count && l->home[after[from]] < 0)
            from++;
        while (to < count && l->home[before[to]] < 0)
            to++;
        if (from < count) {
            int r = l->home[after[from]], stop = after[from];
            places[found++] = (Place){price_after(p, r, stop, node), r, stop};
        }
        if (to < count) {
            int r = l->home[before[to]], stop = l->last[before[to]];
            places[found++] = (Place){price_after(p, r, stop, node), r, stop};
        }
    }
    return found;
}

/* The places of `node` beside its near customers, in the order in which they are tried, [2 * near]
 * at most; none if no customer of the routes is one of its DEPTH nearest. */
static int close_places(const Plan *p, int node, long long near, Place *places)
{
    int count, found = 0;
    const uint16_t *close = near_of(p->m, node, DEPTH, &count);
    if (directed(p->m)) {
        found = directed_places(p, node, near, places);
        count = 0;
    }
    for (int i = 0; i < count && found < 2 * near; i++) {
        int other = close[i], r = p->links.home[other];
        if (r < 0)
            continue;
        int last = p->links.last[other];
        places[found++] = (Place){price_after(p, r, other, node), r, other};
        places[found++] = (Place){price_after(p, r, last, node), r, last};
    }
    spend(DEPTH / 8 + 3 * (long long)found);
    return found;
}

FUNCTION(best_position, ROUTES + 2, ROUTES + 2, GIVEN, "routes", "customer")
{
    Problem x;
    int node;
    if (!take_problem(c, a, &x) || !take_node(a[ROUTES + 1], FIRST, c->m->n, &node) ||
        !mark_nodes(x.seen, &node, 1, FIRST, c->m->n))
        return NULL;
    const Matrix *m = c->m;
    const Limits *limits = limits_of(m);
    double own = edge(m, 0, node) + edge(m, node, 0), best = own;
    double length_now = 0.0, stay = 0.0;
    int route = x.routes.count, index = 0, used = 0;
    for (int r = 0; r < x.routes.count; r++)
        used += length_of(&x.routes, r) > 0;
    if (limits != NULL && used >= limits->vehicles)
        best = HUGE_VAL;
    bool any = false; /* whether a place in a route is the best so far: a new one loses ties */
    for (int r = 0; r < x.routes.count; r++) {
        const int *nodes = x.routes.nodes + x.routes.start[r];
        int length = length_of(&x.routes, r);
        spend(length);
        if (length == 0 || x.capacity - load_of(x.demands, nodes, length) < x.demands[node])
            continue;
        if (limits != NULL)
            length_now = measured(m, nodes, length, &stay);
        if (TIMED)
            time_route(m, &x.times, nodes, length);
        for (int i = 0; i <= length; i++) {
            int from = i > 0 ? nodes[i - 1] : 0, next = i < length ? nodes[i] : 0;
            double price = edge(m, from, node) + edge(m, node, next) - edge(m, from, next);
            if ((price < best || (!any && price == best)) &&
                (!TIMED || joins_by(m, &x.times, from, &node, 1, next)) &&
                (limits == NULL ||
                 within(limits, length_now + price, stay + limits->service[node]))) {
                best = price;
                route = r;
                index = i;
                any = true;
            }
        }
    }
    return Py_BuildValue("(dii)", any ? best : own, route, index);
}

typedef struct {
    double bound, blink, noise, fresh;
    double best, paid; /* of the best place so far */
    int route, from;   /* -1: none */
} Ordered;

/* Tries a place with room; false on failure. */
static bool try_place(Call *c, Ordered *how, double price, int route, int from)
{
    double u, compared = price;
    if (how->noise != 0.0) {
        if (!draw(c, &u))
            return false;
        compared = price * (1.0 + how->noise * u);
    }
    if (how->route >= 0) {
        if (!(compared < how->best))
            return true;
        if (how->blink != 0.0) {
            if (!draw(c, &u))
                return false;
            if (u < how->blink)
                return true;
        }
    }
    how->best = compared;
    how->paid = price;
    how->route = route;
    how->from = from;
    return true;
}

/* Tries all places of a node. */
static bool try_all(Call *c, const Plan *p, Ordered *how, int node)
{
    const double *row = row_of(p->m, node), *column = column_of(p->m, node);
    bool exact = how->noise == 0.0;
    for (int r = 0; r < p->count; r++) {
        if (p->room[r] < p->demands[node])
            continue;
        spend(2 * (long long)p->size[r] + 2);
        int from = 0, next = p->head[r];
        double gone = p->enter[r];
        for (;;) {
            double price = column[from] + row[next] - gone;
            if ((!exact || how->route < 0 || price < how->best) && has_room(p, r, from, node, price) &&
                !try_place(c, how, price, r, from))
                return false;
            if (next == 0)
                break;
            from = next;
            next = p->links.next[from];
            gone = p->links.after[from];
        }
    }
    return true;
}

FUNCTION(ordered_insertion, ROUTES + 2, ROUTES + 2, GIVEN, "routes", "customers", "bound", "near",
         "blink", "noise", "fresh", "rng")
{
    Problem x;
    List nodes;
    long long near;
    Ordered how;
    Plan p;
    Place places[2 * DEPTH];
    double added = 0.0;
    PyObject **options = a + ROUTES + 2;
    c->rng = options[5];
    if (!take_problem(c, a, &x) || !take_customers(c, a[ROUTES + 1], x.seen, &nodes) ||
        !take_number(options[0], HUGE_VAL, -HUGE_VAL, HUGE_VAL, &how.bound) ||
        !take_count(options[1], 0, 0, &near) || !take_number(options[2], 0, 0, 1, &how.blink) ||
        !take_number(options[3], 0, 0, 1e6, &how.noise) ||
        !take_number(options[4], 1, 0, HUGE_VAL, &how.fresh) || !new_plan(c, &x, nodes.count, &p))
        return NULL;
    near = near < DEPTH ? near : DEPTH;
    for (int i = 0; i < nodes.count; i++) {
        int node = nodes.nodes[i];
        int found = near > 0 ? close_places(&p, node, near, places) : 0;
        how.route = -1;
        spend(p.count + found);
        for (int j = 0; j < found; j++)
            if (has_room(&p, places[j].route, places[j].from, node, places[j].price) &&
                !try_place(c, &how, places[j].price, places[j].route, places[j].from))
                return NULL;
        if (found == 0 && !try_all(c, &p, &how, node))
            return NULL;
        if (how.route < 0 || freshness(&p, how.fresh) * alone(&p, node) < how.best) {
            how.paid = alone(&p, node);
            open_route(&p, node);
        } else {
            insert_stop(&p, how.route, how.from, node);
            measure_route(&p, how.route);
        }
        added += how.paid;
        if (added >= how.bound)
            return nothing();
    }
    return pair_of(plan_routes(c, &p), PyFloat_FromDouble(added));
}

#include "regret.h"
