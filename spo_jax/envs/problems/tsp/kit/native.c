/* The kit of the travelling salesperson problem, compiled: see reference.py for what each does. */

#define FIRST 0
#include "../../kit.h"

/* A list of distinct nodes of the matrix, marked in `seen`, [n]. */
static bool take_nodes(Call *c, PyObject *given, int spare, unsigned char *seen, List *out)
{
    return take_list(c, given, spare, out) &&
           mark_nodes(seen, out->nodes, out->count, 0, c->m->n);
}

/* The matrix and a tour with room for `spare` more nodes; `seen` [n] has the tour's nodes. */
static bool take_tour(Call *c, PyObject *dist, PyObject *given, int spare, List *tour,
                      unsigned char **seen)
{
    if (!take_matrix(c, dist))
        return false;
    *seen = zeros_for(c, (size_t)c->m->n, 1);
    return *seen != NULL && take_nodes(c, given, spare, *seen, tour);
}

/* A tour of any nodes. */
static bool take_plain_tour(Call *c, PyObject *given, List *tour)
{
    if (!take_list(c, given, 0, tour))
        return false;
    unsigned char *seen = zeros_for(c, (size_t)tour->top + 1, 1);
    return seen != NULL && mark_nodes(seen, tour->nodes, tour->count, 0, tour->top + 1);
}

/* The place of each node of a tour, [highest node + 1], -1 for those outside. */
static int *places_of(Call *c, const List *tour, int size)
{
    int *place = room_for(c, (size_t)size, sizeof(int));
    for (int i = 0; place != NULL && i < size; i++)
        place[i] = -1;
    for (int i = 0; place != NULL && i < tour->count; i++)
        place[tour->nodes[i]] = i;
    return place;
}

/* --- looking ---------------------------------------------------------------------------------- */

FUNCTION(cost, 2, 2, "dist", "tour")
{
    List tour;
    unsigned char *seen;
    if (!take_tour(c, a[0], a[1], 0, &tour, &seen))
        return NULL;
    double length = 0.0;
    spend(tour.count);
    for (int i = 0; i < tour.count; i++)
        length += edge(c->m, tour.nodes[i > 0 ? i - 1 : tour.count - 1], tour.nodes[i]);
    return PyFloat_FromDouble(length);
}

static double saving(const Matrix *m, int last, int node, int next)
{
    return edge(m, last, node) + edge(m, node, next) - edge(m, last, next);
}

FUNCTION(savings, 2, 2, "dist", "tour")
{
    List tour;
    unsigned char *seen;
    if (!take_tour(c, a[0], a[1], 0, &tour, &seen))
        return NULL;
    PyObject *saved = PyList_New(tour.count);
    spend(ITEM * (long long)tour.count);
    for (int i = 0; saved != NULL && i < tour.count; i++) {
        int last = tour.nodes[i > 0 ? i - 1 : tour.count - 1];
        int next = tour.nodes[i + 1 < tour.count ? i + 1 : 0];
        PyObject *number = PyFloat_FromDouble(saving(c->m, last, tour.nodes[i], next));
        if (number == NULL)
            Py_CLEAR(saved);
        else
            PyList_SetItem(saved, i, number);
    }
    return saved;
}

/* --- removing --------------------------------------------------------------------------------- */

/* (tour without the nodes marked in `gone`, those of them in the tour), both in its order. */
static PyObject *without(Call *c, const List *tour, const unsigned char *gone)
{
    int *kept_nodes = room_for(c, 2 * (size_t)tour->count, sizeof(int));
    if (kept_nodes == NULL)
        return NULL;
    int *removed = kept_nodes + tour->count, left = 0, out = 0;
    spend(tour->count);
    for (int i = 0; i < tour->count; i++)
        if (gone[tour->nodes[i]])
            removed[out++] = tour->nodes[i];
        else
            kept_nodes[left++] = tour->nodes[i];
    return pair_of(as_list(kept_nodes, left), as_list(removed, out));
}

/* As `without`, of a list of nodes of the tour. */
static PyObject *without_nodes(Call *c, const List *tour, const int *nodes, int count)
{
    unsigned char *gone = zeros_for(c, (size_t)tour->top + 1, 1);
    if (gone == NULL)
        return NULL;
    for (int i = 0; i < count; i++)
        gone[nodes[i]] = 1;
    return without(c, tour, gone);
}

FUNCTION(remove_nodes, 2, 2, "tour", "nodes")
{
    List tour, nodes;
    if (!take_plain_tour(c, a[0], &tour) || !take_list(c, a[1], 0, &nodes))
        return NULL;
    unsigned char *gone = zeros_for(c, (size_t)tour.top + 1, 1);
    if (gone == NULL)
        return NULL;
    for (int i = 0; i < nodes.count; i++)
        if (nodes.nodes[i] >= 0 && nodes.nodes[i] <= tour.top)
            gone[nodes.nodes[i]] = 1;
    return without(c, &tour, gone);
}

FUNCTION(radial_removal, 4, 4, "dist", "tour", "center", "count")
{
    List tour;
    unsigned char *seen;
    int center;
    long long count;
    if (!take_tour(c, a[0], a[1], 0, &tour, &seen) ||
        !take_node(a[2], 0, c->m->n, &center) || !take_count(a[3], 0, 0, &count))
        return NULL;
    int *chosen = room_for(c, (size_t)tour.count, sizeof(int));
    int found = chosen == NULL ? -1
                               : nearest_of(c, center, tour.nodes, tour.count, count, chosen);
    return found < 0 ? NULL : without_nodes(c, &tour, chosen, found);
}

FUNCTION(segment_removal, 3, 3, "tour", "center", "count")
{
    List tour;
    int center, where = 0;
    long long count;
    if (!take_plain_tour(c, a[0], &tour) || !take_node(a[1], 0, MAX_NODES + 1, &center) ||
        !take_count(a[2], 0, 0, &count))
        return NULL;
    while (where < tour.count && tour.nodes[where] != center)
        where++;
    if (where == tour.count) {
        refuse("center is not in the tour");
        return NULL;
    }
    int size = count < tour.count ? (int)count : tour.count;
    int *chosen = room_for(c, (size_t)size, sizeof(int));
    if (chosen == NULL)
        return NULL;
    for (int i = 0; i < size; i++)
        chosen[i] = tour.nodes[(where - size / 2 + i + tour.count) % tour.count];
    return without_nodes(c, &tour, chosen, size);
}

FUNCTION(string_removal, 5, 6, "dist", "tour", "center", "count", "rng", "length")
{
    List tour;
    unsigned char *seen;
    int center, chosen = 0;
    long long count, length;
    double u;
    c->rng = a[4];
    if (!take_tour(c, a[0], a[1], 0, &tour, &seen) ||
        !take_node(a[2], 0, c->m->n, &center) || !take_count(a[3], 0, 0, &count) ||
        !take_count(a[5], 10, 1, &length))
        return NULL;
    int n = tour.count, wanted = count < n ? (int)count : n;
    int *order = room_for(c, (size_t)n, sizeof(int));
    int *place = places_of(c, &tour, c->m->n);
    unsigned char *gone = zeros_for(c, (size_t)c->m->n, 1);
    if (order == NULL || place == NULL || gone == NULL ||
        nearest_of(c, center, tour.nodes, n, n, order) < 0)
        return NULL;
    for (int i = 0; i < n && chosen < wanted; i++) {
        if (gone[order[i]])
            continue;
        int most = wanted - chosen;
        if (length < most)
            most = (int)length;
        if (!draw(c, &u))
            return NULL;
        int size = 1 + (int)(u * most);
        if (!draw(c, &u))
            return NULL;
        int start = place[order[i]] - (int)(u * size) + n;
        for (int j = 0; j < size; j++) {
            int node = tour.nodes[(start + j) % n];
            chosen += !gone[node];
            gone[node] = 1;
        }
    }
    return without(c, &tour, gone);
}

FUNCTION(related_removal, 5, 6, "dist", "tour", "center", "count", "rng", "power")
{
    List tour;
    unsigned char *seen;
    int center;
    long long count;
    double u, power;
    c->rng = a[4];
    if (!take_tour(c, a[0], a[1], 0, &tour, &seen) ||
        !take_node(a[2], 0, c->m->n, &center) || !take_count(a[3], 0, 0, &count) ||
        !take_float(a[5], 3.0, &power))
        return NULL;
    if (!seen[center]) {
        refuse("center is not in the tour");
        return NULL;
    }
    int wanted = count < tour.count ? (int)count : tour.count, chosen = 1;
    int *removed = room_for(c, (size_t)tour.count, sizeof(int));
    Pair *pairs = room_for(c, 2 * (size_t)tour.count, sizeof(Pair));
    unsigned char *gone = zeros_for(c, (size_t)c->m->n, 1);
    if (removed == NULL || pairs == NULL || gone == NULL)
        return NULL;
    removed[0] = center;
    gone[center] = 1;
    while (chosen < wanted) {
        int left = 0, rank;
        if (!draw(c, &u))
            return NULL;
        const double *row = row_of(c->m, removed[(int)(u * chosen)]);
        spend(tour.count);
        for (int i = 0; i < tour.count; i++)
            if (!gone[tour.nodes[i]])
                pairs[left++] = (Pair){row[tour.nodes[i]], i, tour.nodes[i]};
        if (!draw_rank(c, left, power, &rank))
            return NULL;
        int node = ranked_pair(pairs, pairs + tour.count, left, rank).node;
        gone[node] = 1;
        removed[chosen++] = node;
    }
    return without(c, &tour, gone);
}

FUNCTION(worst_removal, 4, 5, "dist", "tour", "count", "rng", "power")
{
    List tour;
    unsigned char *seen;
    long long count;
    double power;
    c->rng = a[3];
    if (!take_tour(c, a[0], a[1], 0, &tour, &seen) || !take_count(a[2], 0, 0, &count) ||
        !take_float(a[4], 3.0, &power))
        return NULL;
    int n = tour.count, wanted = count < n ? (int)count : n;
    unsigned char *gone = zeros_for(c, (size_t)c->m->n, 1);
    Ranked all;
    if (gone == NULL || !ranked_new(c, &all, n))
        return NULL;
    for (int i = 0; i < n; i++) {
        all.last[i] = i > 0 ? i - 1 : n - 1;
        all.next[i] = i + 1 < n ? i + 1 : 0;
    }
    spend(2 * (long long)n);
    for (int i = 0; i < n; i++)
        ranked_add(&all, i, -saving(c->m, tour.nodes[all.last[i]], tour.nodes[i],
                                    tour.nodes[all.next[i]]));
    ranked_sort(&all);
    for (int k = 0; k < wanted; k++) {
        int rank;
        if (!draw_rank(c, n - k, power, &rank))
            return NULL;
        int i = ranked_take(&all, rank), last = all.last[i], next = all.next[i];
        gone[tour.nodes[i]] = 1;
        all.next[last] = next;
        all.last[next] = last;
        if (last == i)
            break; /* it was the only one */
        ranked_move(&all, last, -saving(c->m, tour.nodes[all.last[last]], tour.nodes[last],
                                        tour.nodes[next]));
        if (next != last)
            ranked_move(&all, next, -saving(c->m, tour.nodes[last], tour.nodes[next],
                                            tour.nodes[all.next[next]]));
    }
    return without(c, &tour, gone);
}

FUNCTION(random_removal, 3, 3, "tour", "count", "rng")
{
    List tour;
    long long count;
    double u;
    c->rng = a[2];
    if (!take_plain_tour(c, a[0], &tour) || !take_count(a[1], 0, 0, &count))
        return NULL;
    int wanted = count < tour.count ? (int)count : tour.count;
    int *pool = room_for(c, (size_t)tour.count, sizeof(int));
    if (pool == NULL)
        return NULL;
    memcpy(pool, tour.nodes, (size_t)tour.count * sizeof(int));
    for (int i = 0; i < wanted; i++) {
        if (!draw(c, &u))
            return NULL;
        int j = i + (int)(u * (tour.count - i)), node = pool[i];
        pool[i] = pool[j];
        pool[j] = node;
    }
    return without_nodes(c, &tour, pool, wanted);
}

#include "insertions.h"
#include "search.h"

static PyMethodDef methods[] = {
    METHOD(best_position),
    METHOD(cost),
    FORGET_METHOD,
    RELEASE_METHOD,
    METHOD(greedy_insertion),
    METHOD(lin_kernighan),
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
    METHOD(savings),
    METHOD(segment_removal),
    METHOD(string_removal),
    METHOD(two_opt),
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
