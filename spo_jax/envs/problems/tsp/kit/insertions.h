/* The insertions of the kit of the TSP. A place is an edge, named by the node it starts from. */

/* A tour that grows: an array, or where `next` is set a ring that starts at `head`. Only the one
 * that is in use is kept. */
typedef struct {
    Matrix *m;
    int *nodes;    /* [count] */
    double *edges; /* [count]: from each node of the array to the next */
    int *next;     /* [N], or NULL; -1 for nodes that are not in the tour */
    int *last;     /* [N] */
    int head;
    int count;
} Tour;

static bool grow_tour(Call *c, Tour *t, const List *start, int more, bool ring)
{
    size_t room = (size_t)start->count + (size_t)more;
    *t = (Tour){.m = c->m, .count = start->count};
    spend(2 * (long long)start->count);
    if (!ring) {
        t->nodes = room_for(c, room, sizeof(int));
        t->edges = room_for(c, room, sizeof(double));
        if (t->nodes == NULL || t->edges == NULL)
            return false;
        memcpy(t->nodes, start->nodes, (size_t)start->count * sizeof(int));
        for (int i = 0; i < t->count; i++)
            t->edges[i] = edge(c->m, t->nodes[i], t->nodes[i + 1 < t->count ? i + 1 : 0]);
        return true;
    }
    t->next = room_for(c, (size_t)c->m->n, sizeof(int));
    t->last = room_for(c, (size_t)c->m->n, sizeof(int));
    if (t->next == NULL || t->last == NULL || !make_near(c->m))
        return false;
    memset(t->next, 255, (size_t)c->m->n * sizeof(int)); /* -1 */
    for (int i = 0; i < t->count; i++) {
        int node = start->nodes[i], next = start->nodes[i + 1 < t->count ? i + 1 : 0];
        t->next[node] = next;
        t->last[next] = node;
    }
    t->head = t->count > 0 ? start->nodes[0] : -1;
    return true;
}

/* Inserts `node` at an index of the array. */
static void insert_at(Tour *t, int index, int node)
{
    size_t behind = (size_t)(t->count - index);
    spend((long long)behind / 8);
    memmove(t->nodes + index + 1, t->nodes + index, behind * sizeof(int));
    memmove(t->edges + index + 1, t->edges + index, behind * sizeof(double));
    t->nodes[index] = node;
    t->count++;
    int last = index > 0 ? index - 1 : t->count - 1, next = index + 1 < t->count ? index + 1 : 0;
    t->edges[last] = edge(t->m, t->nodes[last], node);
    t->edges[index] = edge(t->m, node, t->nodes[next]);
}

/* Inserts `node` after another of the ring, or as its first. */
static void insert_after(Tour *t, int from, int node)
{
    if (t->count++ == 0) {
        t->head = t->next[node] = t->last[node] = node;
        return;
    }
    int next = t->next[from];
    t->next[from] = t->last[next] = node;
    t->next[node] = next;
    t->last[node] = from;
}

static PyObject *tour_list(Call *c, const Tour *t)
{
    if (t->next == NULL)
        return as_list(t->nodes, t->count);
    int *nodes = room_for(c, (size_t)t->count, sizeof(int)), node = t->head;
    for (int i = 0; nodes != NULL && i < t->count; i++, node = t->next[node])
        nodes[i] = node;
    return nodes == NULL ? NULL : as_list(nodes, t->count);
}

static inline double price_in(const Tour *t, int from, int node)
{
    int next = t->next[from];
    return column_of(t->m, node)[from] + row_of(t->m, node)[next] - edge(t->m, from, next);
}

/* Adds the place behind a node of the ring. */
static inline int add_try(const Tour *t, int from, int node, Pair *places, int found)
{
    places[found] = (Pair){price_in(t, from, node), found, from};
    return found + 1;
}

/* The places behind the nodes of the ring nearest to `node`, and before those nearest from it, by
 * turns. */
static int directed_places(const Tour *t, int node, long long near, Pair *places)
{
    int count, found = 0, from = 0, to = 0;
    const uint16_t *after = near_to(t->m, node, DEPTH, &count);
    const uint16_t *before = near_of(t->m, node, DEPTH, &count);
    for (long long k = 0; k < near; k++, from++, to++) {
        while (from < count && t->next[after[from]] < 0)
            from++;
        while (to < count && t->next[before[to]] < 0)
            to++;
        if (from < count)
            found = add_try(t, after[from], node, places, found);
        if (to < count)
            found = add_try(t, t->last[before[to]], node, places, found);
    }
    return found;
}

/* The places of `node` in the ring, in the order in which they are tried: those beside its near
 * nodes, or if it has none in the tour all of them. places [max(count, 2 * DEPTH)]; the place of
 * each is its number, the node what it starts from. *all says which it was. */
static int near_places(const Tour *t, int node, long long near, Pair *places, bool *all)
{
    int count, found = 0;
    const uint16_t *close = near_of(t->m, node, DEPTH, &count);
    if (directed(t->m)) {
        found = directed_places(t, node, near, places);
        count = 0;
    }
    for (int i = 0; i < count && found < 2 * near; i++) {
        int other = close[i];
        if (t->next[other] < 0)
            continue;
        found = add_try(t, other, node, places, found);
        found = add_try(t, t->last[other], node, places, found);
    }
    spend(DEPTH / 8 + 2 * (long long)found);
    *all = found == 0;
    for (int from = t->head; *all && found < t->count; from = t->next[from]) {
        found = add_try(t, from, node, places, found);
        spend(1);
    }
    return found;
}

FUNCTION(best_position, 3, 3, "dist", "tour", "node")
{
    List tour;
    unsigned char *seen;
    int node, index = 0;
    double best = 0.0;
    if (!take_tour(c, a[0], a[1], 0, &tour, &seen) || !take_node(a[2], 0, c->m->n, &node) ||
        !mark_nodes(seen, &node, 1, 0, c->m->n))
        return NULL;
    spend(tour.count);
    for (int i = 0; i < tour.count; i++) {
        int from = tour.nodes[i], next = tour.nodes[i + 1 < tour.count ? i + 1 : 0];
        double price = edge(c->m, from, node) + edge(c->m, node, next) - edge(c->m, from, next);
        if (i == 0 || price < best) {
            best = price;
            index = i + 1;
        }
    }
    return pair_of(PyFloat_FromDouble(best), PyLong_FromLong(index));
}

typedef struct {
    double bound, blink, noise;
} Ordered;

/* Tries a place: 1 if it is taken so far, 0 if not, -1 on failure. */
static int try_place(Call *c, const Ordered *how, double price, bool first, double *best)
{
    double u, compared = price;
    if (how->noise != 0.0) {
        if (!draw(c, &u))
            return -1;
        compared = price * (1.0 + how->noise * u);
    }
    if (!first && !(compared < *best))
        return 0;
    if (how->blink != 0.0 && !first) {
        if (!draw(c, &u))
            return -1;
        if (u < how->blink)
            return 0;
    }
    *best = compared;
    return 1;
}

/* The index of the array at which `node` goes, or -1 on failure. */
static int ordered_place(Call *c, const Tour *t, const Ordered *how, int node, double *paid)
{
    const double *row = row_of(t->m, node), *column = column_of(t->m, node);
    bool exact = how->noise == 0.0;
    double best = HUGE_VAL, below = HUGE_VAL; /* a copy of best, for a register */
    int place = 0;
    *paid = 0.0;
    spend(t->count);
    for (int i = 0; i < t->count; i++) {
        int next = t->nodes[i + 1 < t->count ? i + 1 : 0];
        double price = column[t->nodes[i]] + row[next] - t->edges[i];
        if (exact && i > 0 && !(price < below))
            continue;
        int taken = try_place(c, how, price, i == 0, &best);
        if (taken < 0)
            return -1;
        if (!taken)
            continue;
        below = best;
        *paid = price;
        place = i + 1;
    }
    return place;
}

FUNCTION(ordered_insertion, 3, 3, "dist", "tour", "nodes", "bound", "near", "blink", "noise", "rng")
{
    List tour, nodes;
    unsigned char *seen;
    long long near;
    Ordered how;
    Tour t;
    double added = 0.0, paid;
    bool all;
    c->rng = a[7];
    if (!take_tour(c, a[0], a[1], 0, &tour, &seen) || !take_nodes(c, a[2], 0, seen, &nodes) ||
        !take_number(a[3], HUGE_VAL, -HUGE_VAL, HUGE_VAL, &how.bound) ||
        !take_count(a[4], 0, 0, &near) || !take_number(a[5], 0, 0, 1, &how.blink) ||
        !take_number(a[6], 0, 0, 1e6, &how.noise) ||
        !grow_tour(c, &t, &tour, nodes.count, near > 0))
        return NULL;
    if (near > DEPTH)
        near = DEPTH;
    Pair *places = NULL;
    if (near > 0) {
        places = room_for(c, (size_t)tour.count + (size_t)nodes.count + 2 * DEPTH, sizeof(Pair));
        if (places == NULL)
            return NULL;
    }
    for (int i = 0; i < nodes.count; i++) {
        int node = nodes.nodes[i];
        if (near == 0) {
            int index = ordered_place(c, &t, &how, node, &paid);
            if (index < 0)
                return NULL;
            insert_at(&t, index, node);
        } else {
            int found = near_places(&t, node, near, places, &all), from = -1;
            double best = 0.0;
            paid = 0.0;
            spend(found);
            for (int j = 0; j < found; j++) {
                int taken = try_place(c, &how, places[j].key, j == 0, &best);
                if (taken < 0)
                    return NULL;
                if (taken) {
                    paid = places[j].key;
                    from = places[j].node;
                }
            }
            insert_after(&t, from, node);
        }
        added += paid;
        if (added >= how.bound)
            return nothing();
    }
    return pair_of(tour_list(c, &t), PyFloat_FromDouble(added));
}

#include "regret.h"
