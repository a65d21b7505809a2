/* The local search of the kit of the TSP. dist[a][b] is read as the reference reads it, so that a
 * matrix that is not symmetric gives the same too. */

#include "../../kit_queue.h"

typedef struct {
    List tour;
    Queue queue;
    int *place; /* [N]: of each node in the tour, or -1 */
    long long near, moves, length;
} Search;

static bool take_search(Call *c, PyObject *dist, PyObject *tour, PyObject *nodes,
                        PyObject **options, Search *s)
{
    unsigned char *seen, *twice;
    List list;
    if (!take_tour(c, dist, tour, 0, &s->tour, &seen) || !take_list(c, nodes, 0, &list) ||
        !take_count(options[0], 10, 0, &s->near) || !take_count(options[1], 1000, 0, &s->moves) ||
        !make_near(c->m))
        return false;
    twice = zeros_for(c, (size_t)c->m->n, 1);
    if (twice == NULL || !mark_nodes(twice, list.nodes, list.count, 0, c->m->n))
        return false;
    for (int i = 0; i < list.count; i++)
        if (!seen[list.nodes[i]])
            return refuse("a node is not in the tour");
    s->place = places_of(c, &s->tour, c->m->n);
    return s->place != NULL && queue_new(c, &s->queue, &list, c->m->n);
}

/* Reverses a part of the tour where that gains at `a`; whether it did. */
static bool two_opt_move(Matrix *m, Search *s, int a)
{
    int n = s->tour.count, *tour = s->tour.nodes, i = s->place[a], count;
    const uint16_t *near = near_of(m, a, s->near, &count);
    for (int step = 1; step >= -1; step -= 2) {
        int b = tour[(i + step + n) % n];
        for (int k = 0; k < count; k++) {
            int c = near[k], j = s->place[c];
            spend(4);
            if (edge(m, a, c) >= edge(m, a, b))
                break;
            if (j < 0)
                continue;
            int d = tour[(j + step + n) % n];
            double old = edge(m, a, b) + edge(m, c, d);
            if (!(old - edge(m, a, c) - edge(m, b, d) > MARGIN * old))
                continue;
            int low = (i < j ? i : j) + (step == 1), high = (i < j ? j : i) - (step == -1);
            spend(high > low ? high - low : 0);
            for (; low < high; low++, high--) {
                int node = tour[low];
                tour[low] = tour[high];
                tour[high] = node;
                s->place[tour[low]] = low;
                s->place[node] = high;
            }
            queue_add(&s->queue, a);
            queue_add(&s->queue, b);
            queue_add(&s->queue, c);
            queue_add(&s->queue, d);
            return true;
        }
    }
    return false;
}

FUNCTION(two_opt, 3, 3, "dist", "tour", "nodes", "near", "moves")
{
    Search s;
    if (!take_search(c, a[0], a[1], a[2], a + 3, &s))
        return NULL;
    while (s.queue.count > 0 && s.moves > 0)
        s.moves -= two_opt_move(c->m, &s, queue_take(&s.queue));
    return as_list(s.tour.nodes, s.tour.count);
}

/* The tour with the stretch of `size` nodes from index i on, forward or backward, put beside c.
 * spare: [2, count]. */
static void move_stretch(Search *s, int *spare, int i, int step, int size, int c, int side)
{
    int n = s->tour.count, *tour = s->tour.nodes, *rest = spare, *stretch = spare + n, left = 0;
    spend(3 * (long long)n);
    for (int k = 0; k < size; k++) {
        int at_k = (i + step * k % n + n) % n;
        stretch[k] = tour[at_k];
        s->place[tour[at_k]] = -1;
    }
    for (int k = 0; k < n; k++) {
        if (s->place[tour[k]] < 0)
            continue;
        if (tour[k] == c && side == -1)
            for (int j = size - 1; j >= 0; j--)
                rest[left++] = stretch[j];
        rest[left++] = tour[k];
        if (tour[k] == c && side == 1)
            for (int j = 0; j < size; j++)
                rest[left++] = stretch[j];
    }
    memcpy(tour, rest, (size_t)n * sizeof(int));
    for (int k = 0; k < n; k++)
        s->place[tour[k]] = k;
}

/* Whether the node at index j is in the stretch of `size` nodes from index i on. */
static inline bool inside(int j, int i, int step, int size, int n)
{
    int offset = step * (j - i);
    return (offset < 0 ? offset + n : offset) < size;
}

/* Moves a stretch from `a` on where that gains; whether it did. */
static bool or_opt_move(Matrix *m, Search *s, int *spare, int a)
{
    int n = s->tour.count, *tour = s->tour.nodes, i = s->place[a], count;
    int most = s->length < n - 3 ? (int)s->length : n - 3;
    const uint16_t *near = near_of(m, a, s->near, &count);
    for (int step = 1; step >= -1; step -= 2) {
        for (int size = 1; size <= most; size++) {
            int e = tour[(i + step * (size - 1) + n) % n];
            int p = tour[(i - step + n) % n], q = tour[(i + step * size + n) % n];
            double old = edge(m, p, a) + edge(m, e, q), saved = old - edge(m, p, q);
            for (int k = 0; k < count; k++) {
                int c = near[k], j = s->place[c];
                spend(4);
                if (edge(m, a, c) >= saved)
                    break;
                if (j < 0 || inside(j, i, step, size, n))
                    continue;
                for (int side = 1; side >= -1; side -= 2) {
                    int l = (j + side + n) % n, x = tour[l];
                    if (inside(l, i, step, size, n))
                        continue;
                    double paid = edge(m, c, a) + edge(m, e, x) - edge(m, c, x);
                    if (!(saved - paid > MARGIN * (old + edge(m, c, x))))
                        continue;
                    move_stretch(s, spare, i, step, size, c, side);
                    queue_add(&s->queue, a);
                    queue_add(&s->queue, e);
                    queue_add(&s->queue, p);
                    queue_add(&s->queue, q);
                    queue_add(&s->queue, c);
                    queue_add(&s->queue, x);
                    return true;
                }
            }
        }
    }
    return false;
}

FUNCTION(or_opt, 3, 3, "dist", "tour", "nodes", "length", "near", "moves")
{
    Search s;
    if (!take_search(c, a[0], a[1], a[2], a + 4, &s) || !take_count(a[3], 3, 1, &s.length))
        return NULL;
    int *spare = room_for(c, 2 * (size_t)s.tour.count, sizeof(int));
    if (spare == NULL)
        return NULL;
    while (s.queue.count > 0 && s.moves > 0)
        s.moves -= or_opt_move(c->m, &s, spare, queue_take(&s.queue));
    return as_list(s.tour.nodes, s.tour.count);
}
