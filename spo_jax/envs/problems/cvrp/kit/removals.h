/* The removals of the kit of the CVRP. */

/* (routes without the nodes marked in `gone`, those of them in the routes), both in order. */
static PyObject *without(Call *c, const Routes *routes, const unsigned char *gone)
{
    Routes rest = {.count = routes->count};
    rest.nodes = room_for(c, 2 * (size_t)routes->total, sizeof(int));
    rest.start = room_for(c, (size_t)routes->count + 1, sizeof(int));
    if (rest.nodes == NULL || rest.start == NULL)
        return NULL;
    int *removed = rest.nodes + routes->total, out = 0;
    spend(routes->total);
    for (int r = 0; r < routes->count; r++) {
        rest.start[r] = rest.total;
        for (int i = routes->start[r]; i < routes->start[r + 1]; i++)
            if (gone[routes->nodes[i]])
                removed[out++] = routes->nodes[i];
            else
                rest.nodes[rest.total++] = routes->nodes[i];
    }
    rest.start[rest.count] = rest.total;
    return pair_of(as_routes(&rest, false), as_list(removed, out));
}

/* As `without`, of a list of customers of the routes. */
static PyObject *without_nodes(Call *c, const Routes *routes, const int *nodes, int count)
{
    unsigned char *gone = zeros_for(c, (size_t)routes->top + 1, 1);
    if (gone == NULL)
        return NULL;
    for (int i = 0; i < count; i++)
        gone[nodes[i]] = 1;
    return without(c, routes, gone);
}

FUNCTION(remove_nodes, 2, 2, "routes", "customers")
{
    Routes routes;
    List nodes;
    unsigned char *seen;
    if (!take_routes(c, a[0], 0, &routes, &seen) || !take_list(c, a[1], 0, &nodes))
        return NULL;
    unsigned char *gone = zeros_for(c, (size_t)routes.top + 1, 1);
    if (gone == NULL)
        return NULL;
    for (int i = 0; i < nodes.count; i++)
        if (nodes.nodes[i] >= 0 && nodes.nodes[i] <= routes.top)
            gone[nodes.nodes[i]] = 1;
    return without(c, &routes, gone);
}

/* The arguments that the removals around a node share, and all customers by their distance to it,
 * [total]. */
typedef struct {
    Routes routes;
    unsigned char *seen;
    unsigned char *gone; /* [N] */
    int *order;
    int *home; /* [N] */
    int center;
    long long count;
} Around;

static bool take_around(Call *c, PyObject **a, Around *x)
{
    if (!take_solution(c, a[0], a[1], &x->routes, &x->seen) ||
        !take_node(a[2], 0, c->m->n, &x->center) || !take_count(a[3], 0, 0, &x->count))
        return false;
    x->gone = zeros_for(c, (size_t)c->m->n, 1);
    x->order = room_for(c, (size_t)x->routes.total, sizeof(int));
    x->home = homes_of(c, &x->routes, c->m->n);
    return x->gone != NULL && x->order != NULL && x->home != NULL;
}

FUNCTION(radial_removal, 4, 4, "dist", "routes", "center", "count")
{
    Around x;
    if (!take_around(c, a, &x))
        return NULL;
    int found = nearest_of(c, x.center, x.routes.nodes, x.routes.total, x.count, x.order);
    return found < 0 ? NULL : without_nodes(c, &x.routes, x.order, found);
}

FUNCTION(segment_removal, 3, 3, "routes", "center", "count")
{
    Routes routes;
    unsigned char *seen;
    int center, where = 0, r = 0;
    long long count;
    if (!take_routes(c, a[0], 0, &routes, &seen) ||
        !take_node(a[1], 0, MAX_NODES + 1, &center) || !take_count(a[2], 0, 0, &count))
        return NULL;
    while (where < routes.total && routes.nodes[where] != center)
        where++;
    if (where == routes.total) {
        refuse("center is not in the routes");
        return NULL;
    }
    while (routes.start[r + 1] <= where)
        r++;
    int length = length_of(&routes, r), size = count < length ? (int)count : length;
    int start = where - routes.start[r] - size / 2;
    start = start < 0 ? 0 : start;
    start = start < length - size ? start : length - size;
    return without_nodes(c, &routes, routes.nodes + routes.start[r] + start, size);
}

FUNCTION(route_removal, 4, 4, "dist", "routes", "center", "count")
{
    Around x;
    if (!take_around(c, a, &x))
        return NULL;
    int total = x.routes.total, chosen = 0;
    unsigned char *seen = zeros_for(c, (size_t)x.routes.count, 1);
    if (seen == NULL || nearest_of(c, x.center, x.routes.nodes, total, total, x.order) < 0)
        return NULL;
    for (int i = 0; i < total; i++) {
        int r = x.home[x.order[i]], length = length_of(&x.routes, r);
        int *route = x.routes.nodes + x.routes.start[r];
        if (seen[r] || (chosen > 0 && x.count - chosen < length))
            continue;
        seen[r] = 1;
        if (x.count >= length) {
            for (int j = 0; j < length; j++)
                x.gone[route[j]] = 1;
            chosen += length;
        } else if (x.count > 0) {
            int *some = room_for(c, (size_t)length, sizeof(int));
            int found = some == NULL ? -1
                                     : nearest_of(c, x.center, route, length, x.count, some);
            if (found < 0)
                return NULL;
            for (int j = 0; j < found; j++)
                x.gone[some[j]] = 1;
            chosen += found;
        }
    }
    return without(c, &x.routes, x.gone);
}

FUNCTION(string_removal, 5, 7, "dist", "routes", "center", "count", "rng", "length", "gap")
{
    Around x;
    long long longest, gap;
    double u;
    c->rng = a[4];
    if (!take_around(c, a, &x) || !take_count(a[5], 10, 1, &longest) ||
        !take_count(a[6], 0, 0, &gap))
        return NULL;
    int total = x.routes.total, wanted = x.count < total ? (int)x.count : total, chosen = 0;
    unsigned char *cut = zeros_for(c, (size_t)x.routes.count, 1);
    if (cut == NULL || nearest_of(c, x.center, x.routes.nodes, total, total, x.order) < 0)
        return NULL;
    for (int i = 0; i < total && chosen < wanted; i++) {
        int node = x.order[i], r = x.home[node], length = length_of(&x.routes, r), where = 0;
        const int *route = x.routes.nodes + x.routes.start[r];
        if (cut[r])
            continue;
        cut[r] = 1;
        int most = length < wanted - chosen ? length : wanted - chosen;
        most = longest < most ? (int)longest : most;
        if (!draw(c, &u))
            return NULL;
        int size = 1 + (int)(u * most), skipped = 0, before_gap = size;
        if (gap > 0) {
            if (!draw(c, &u))
                return NULL;
            if (u < 0.5)
                skipped = gap < length - size ? (int)gap : length - size;
            if (!draw(c, &u))
                return NULL;
            before_gap = 1 + (int)(u * size);
        }
        while (route[where] != node)
            where++;
        int window = size + skipped;
        int low = where - window + 1 > 0 ? where - window + 1 : 0;
        int high = where < length - window ? where : length - window;
        if (!draw(c, &u))
            return NULL;
        int start = low + (int)(u * (high - low + 1));
        for (int j = 0; j < window; j++)
            if (j < before_gap || j >= before_gap + skipped)
                x.gone[route[start + j]] = 1;
        chosen += size;
    }
    return without(c, &x.routes, x.gone);
}

typedef struct {
    double power, by_demand, by_route, by_time, mean_demand;
    const int64_t *demands;
    const int *home;
    const double *begin; /* [N] when service begins, where by_time is not 0 */
} Related;

/* The distance of two nodes, and the time between them. */
static inline double apart(const double *row, const double *begin, double by_time, int node,
                           int other)
{
    return row[node] + by_time * fabs(begin[node] - begin[other]);
}

/* How little `node` is related to `other`. */
static double unrelated(const Related *how, const double *row, double mean, int node, int other)
{
    double far = how->by_time == 0.0 ? row[node] : apart(row, how->begin, how->by_time, node, other);
    double score = far / mean;
    if (how->by_demand != 0.0) {
        int64_t gap = how->demands[node] - how->demands[other];
        score += how->by_demand * ((double)(gap < 0 ? -gap : gap) / how->mean_demand);
    }
    if (how->by_route != 0.0 && how->home[node] != how->home[other])
        score += how->by_route;
    return score;
}

#if TIMED
FUNCTION(timely_removal, 6, 7, "dist", "ready", "service", "routes", "center", "count", "by_time")
{
    PyObject *around[] = {a[0], a[3], a[4], a[5]};
    Around x;
    double *begin, by_time;
    if (!take_around(c, around, &x) || !take_begins(c, a + 1, &x.routes, &begin) ||
        !take_number(a[6], 1.0, 0, 1e6, &by_time))
        return NULL;
    if (!x.seen[x.center]) {
        refuse("center is not in the routes");
        return NULL;
    }
    int total = x.routes.total, wanted = x.count < total ? (int)x.count : total;
    Pair *pairs = room_for(c, 2 * (size_t)total, sizeof(Pair));
    if (pairs == NULL)
        return NULL;
    const double *row = row_of(c->m, x.center);
    spend(2 * (long long)total);
    for (int i = 0; i < total; i++) {
        int node = x.routes.nodes[i];
        pairs[i] = (Pair){apart(row, begin, by_time, node, x.center), i, node};
    }
    first_pairs(pairs, pairs + total, total, wanted);
    for (int i = 0; i < wanted; i++)
        x.gone[pairs[i].node] = 1;
    return without(c, &x.routes, x.gone);
}

/* The arguments of related_removal before the routes. */
#define RELATED "dist", "demands", "ready", "service"
enum { RELATED_ROUTES = 4 };
#else
#define RELATED "dist", "demands"
enum { RELATED_ROUTES = 2 };
#endif

FUNCTION(related_removal, RELATED_ROUTES + 4, RELATED_ROUTES + (TIMED ? 8 : 7), RELATED, "routes",
         "center", "count", "rng", "power", "by_demand", "by_route"
#if TIMED
         , "by_time"
#endif
)
{
    PyObject **given = a + RELATED_ROUTES;
    PyObject *around[] = {a[0], given[0], given[1], given[2]};
    Around x;
    Related how = {0};
    int64_t *demands;
    int demand_count;
    double u;
    c->rng = given[3];
    if (!take_around(c, around, &x) || !take_demands(c, a[1], c->m->n, &demands, &demand_count) ||
        !take_float(given[4], 3.0, &how.power) ||
        !take_number(given[5], 0, -1e6, 1e6, &how.by_demand) ||
        !take_number(given[6], 0, -1e6, 1e6, &how.by_route))
        return NULL;
#if TIMED
    double *begin;
    if (!take_begins(c, a + 2, &x.routes, &begin) ||
        !take_number(given[7], 0, 0, 1e6, &how.by_time))
        return NULL;
    how.begin = begin;
#endif
    if (!x.seen[x.center]) {
        refuse("center is not in the routes");
        return NULL;
    }
    int total = x.routes.total, wanted = x.count < total ? (int)x.count : total, chosen = 1;
    Pair *pairs = room_for(c, 2 * (size_t)total, sizeof(Pair));
    if (pairs == NULL)
        return NULL;
    how.demands = demands;
    how.home = x.home;
    how.mean_demand = (double)load_of(demands, x.routes.nodes, total) / total;
    if (how.mean_demand == 0.0)
        how.mean_demand = 1.0;
    x.order[0] = x.center;
    x.gone[x.center] = 1;
    while (chosen < wanted) {
        int left = 0, rank;
        if (!draw(c, &u))
            return NULL;
        int other = x.order[(int)(u * chosen)];
        const double *row = row_of(c->m, other);
        double sum = 0.0;
        spend(3 * (long long)total);
        for (int i = 0; i < total; i++)
            sum += row[x.routes.nodes[i]];
        double mean = sum / total;
        if (mean == 0.0)
            mean = 1.0;
        for (int i = 0; i < total; i++) {
            int node = x.routes.nodes[i];
            if (!x.gone[node])
                pairs[left++] = (Pair){unrelated(&how, row, mean, node, other), i, node};
        }
        if (!draw_rank(c, left, how.power, &rank))
            return NULL;
        int node = ranked_pair(pairs, pairs + total, left, rank).node;
        x.gone[node] = 1;
        x.order[chosen++] = node;
    }
    return without(c, &x.routes, x.gone);
}

FUNCTION(worst_removal, 4, 5, "dist", "routes", "count", "rng", "power")
{
    Routes routes;
    unsigned char *seen;
    long long count;
    double power;
    c->rng = a[3];
    if (!take_solution(c, a[0], a[1], &routes, &seen) || !take_count(a[2], 0, 0, &count) ||
        !take_float(a[4], 3.0, &power))
        return NULL;
    int total = routes.total, wanted = count < total ? (int)count : total;
    const int *nodes = routes.nodes;
    unsigned char *gone = zeros_for(c, (size_t)c->m->n, 1);
    Ranked all;
    if (gone == NULL || !ranked_new(c, &all, total))
        return NULL;
    for (int r = 0; r < routes.count; r++)
        for (int i = routes.start[r]; i < routes.start[r + 1]; i++) {
            all.last[i] = i > routes.start[r] ? i - 1 : -1; /* -1 is the depot */
            all.next[i] = i + 1 < routes.start[r + 1] ? i + 1 : -1;
            ranked_add(&all, i, -saving(c->m, all.last[i] < 0 ? 0 : nodes[all.last[i]], nodes[i],
                                        all.next[i] < 0 ? 0 : nodes[all.next[i]]));
        }
    spend(2 * (long long)total);
    ranked_sort(&all);
    for (int k = 0; k < wanted; k++) {
        int rank;
        if (!draw_rank(c, total - k, power, &rank))
            return NULL;
        int i = ranked_take(&all, rank);
        const int beside[2] = {all.last[i], all.next[i]};
        gone[nodes[i]] = 1;
        if (beside[0] >= 0)
            all.next[beside[0]] = beside[1];
        if (beside[1] >= 0)
            all.last[beside[1]] = beside[0];
        for (int j = 0; j < 2; j++) {
            int at_j = beside[j];
            if (at_j >= 0)
                ranked_move(&all, at_j,
                            -saving(c->m, all.last[at_j] < 0 ? 0 : nodes[all.last[at_j]],
                                    nodes[at_j], all.next[at_j] < 0 ? 0 : nodes[all.next[at_j]]));
        }
    }
    return without(c, &routes, gone);
}

FUNCTION(random_removal, 3, 3, "routes", "count", "rng")
{
    Routes routes;
    unsigned char *seen;
    long long count;
    double u;
    c->rng = a[2];
    if (!take_routes(c, a[0], 0, &routes, &seen) || !take_count(a[1], 0, 0, &count))
        return NULL;
    int total = routes.total, wanted = count < total ? (int)count : total;
    int *pool = room_for(c, (size_t)total, sizeof(int));
    if (pool == NULL)
        return NULL;
    memcpy(pool, routes.nodes, (size_t)total * sizeof(int));
    for (int i = 0; i < wanted; i++) {
        if (!draw(c, &u))
            return NULL;
        int j = i + (int)(u * (total - i)), node = pool[i];
        pool[i] = pool[j];
        pool[j] = node;
    }
    return without_nodes(c, &routes, pool, wanted);
}
