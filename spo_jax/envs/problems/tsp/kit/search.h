/* The local search of the kit of the TSP. dist[a][b] is the way from a to b. Where all ways are as
 * long as the ways back, what is turned round stays as long as it is, and nothing is summed up. */

#include "../../kit_queue.h"

typedef struct {
    List tour;
    Queue queue;
    int *place;    /* [N]: of each node in the tour, or -1 */
    double *forth; /* [count + 1]: from the first node to each, and all round; NULL: not needed */
    double *back;  /* [count + 1]: the same the other way */
    int *spare;    /* [2, count] */
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
    s->moves = most_moves(s->moves, s->tour.count);
    s->place = places_of(c, &s->tour, c->m->n);
    return s->place != NULL && queue_new(c, &s->queue, &list, c->m->n);
}

/* Sums up the tour, where that is needed. */
static void sum_ways(const Matrix *m, Search *s)
{
    int n = s->tour.count;
    if (s->forth == NULL)
        return;
    spend(2 * (long long)n);
    s->forth[0] = s->back[0] = 0.0;
    for (int i = 0; i < n; i++) {
        int node = s->tour.nodes[i], next = s->tour.nodes[i + 1 < n ? i + 1 : 0];
        s->forth[i + 1] = s->forth[i] + edge(m, node, next);
        s->back[i + 1] = s->back[i] + edge(m, next, node);
    }
}

/* Turns round the tour from index `low` to `high`. */
static void turn(Search *s, int low, int high)
{
    int *tour = s->tour.nodes;
    spend(high > low ? high - low : 0);
    for (; low < high; low++, high--) {
        int node = tour[low];
        tour[low] = tour[high];
        tour[high] = node;
        s->place[tour[low]] = low;
        s->place[node] = high;
    }
}

static void queue_ends(Queue *q, const int *ends, int count)
{
    for (int i = 0; i < count; i++)
        queue_add(q, ends[i]);
}

/* Reverses a part of the tour, or all but it, where that gains at `a`; whether it did. */
static bool two_opt_move(Matrix *m, Search *s, int a)
{
    int n = s->tour.count, *tour = s->tour.nodes, i = s->place[a], count;
    for (int step = 1; step >= -1; step -= 2) {
        const uint16_t *near = near_by(m, step, a, s->near, &count);
        int b = tour[(i + step + n) % n];
        for (int k = 0; k < count; k++) {
            int c = near[k], j = s->place[c];
            spend(4);
            if (way(m, step, a, c) >= way(m, step, a, b))
                break;
            if (j < 0)
                continue;
            int d = tour[(j + step + n) % n];
            double old = way(m, step, a, b) + way(m, step, c, d), margin = MARGIN * old;
            int low = (i < j ? i : j) + (step == 1), high = (i < j ? j : i) - (step == -1);
            int first = i < j ? 1 : -1; /* the way from a to c, if low to high is turned */
            double turned = 0.0;
            if (s->forth != NULL) {
                turned = (s->back[high] - s->back[low]) - (s->forth[high] - s->forth[low]);
                if (turned != 0.0)
                    margin = MARGIN * (old + fabs(s->forth[n]));
            }
            bool all = !(old - way(m, first, a, c) - way(m, first, b, d) - turned > margin);
            if (all) {
                if (s->forth == NULL)
                    continue;
                double again = way(m, -step, a, b) + way(m, -step, c, d);
                turned = s->back[n] - s->forth[n] - turned - (again - old);
                margin = MARGIN * (turned != 0.0 ? old + fabs(s->forth[n]) : old);
                if (!(old - way(m, -first, a, c) - way(m, -first, b, d) - turned > margin))
                    continue;
                turn(s, 0, n - 1);
                turn(s, n - 1 - high, n - 1 - low);
            } else {
                turn(s, low, high);
            }
            sum_ways(m, s);
            queue_ends(&s->queue, (const int[]){a, b, c, d}, 4);
            return true;
        }
    }
    return false;
}

/* Whether the tour is as long the other way at each edge. */
static bool same_back(const Search *s)
{
    if (s->forth == NULL)
        return true;
    for (int i = 0; i <= s->tour.count; i++)
        if (s->forth[i] != s->back[i])
            return false;
    return true;
}

/* Lets two neighbouring stretches behind `a` change places where that gains; whether it did. */
static bool swap_move(Matrix *m, Search *s, int a)
{
    int n = s->tour.count, *tour = s->tour.nodes, i = s->place[a], count, others;
    int b = tour[(i + 1) % n];
    const uint16_t *near = near_of(m, a, s->near, &count);
    for (int k = 0; k < count; k++) {
        int c = near[k];
        spend(4);
        if (edge(m, a, c) >= edge(m, a, b))
            break;
        if (s->place[c] < 0)
            continue;
        int split = (s->place[c] - i - 1 + n) % n; /* nodes of the first stretch, from b to d */
        int d = tour[(s->place[c] - 1 + n) % n];
        double gain = edge(m, a, b) - edge(m, a, c) + edge(m, d, c);
        const uint16_t *nearest = near_of(m, d, s->near, &others);
        for (int l = 0; l < others; l++) {
            int f = nearest[l];
            spend(4);
            if (edge(m, d, f) >= gain)
                break;
            int end = s->place[f] < 0 ? 0 : (s->place[f] - i - 1 + n) % n;
            if (end <= split)
                continue;
            int e = tour[(s->place[f] - 1 + n) % n];
            double old = edge(m, a, b) + edge(m, d, c) + edge(m, e, f);
            if (!(old - edge(m, a, c) - edge(m, d, f) - edge(m, e, b) > MARGIN * old))
                continue;
            spend(3 * (long long)n);
            for (int w = 0; w < n; w++) {
                int from = w < end - split ? w + split : w < end ? w - (end - split) : w;
                s->spare[w] = tour[(i + 1 + from) % n];
            }
            memcpy(tour, s->spare, (size_t)n * sizeof(int));
            for (int w = 0; w < n; w++)
                s->place[tour[w]] = w;
            sum_ways(m, s);
            queue_ends(&s->queue, (const int[]){a, b, d, c, e, f}, 6);
            return true;
        }
    }
    return false;
}

/* Room for what the moves of 2-opt need where ways are not as long as the ways back. */
static bool take_ways(Call *c, Search *s)
{
    size_t count = (size_t)s->tour.count;
    if (!directed(c->m))
        return true;
    s->forth = room_for(c, count + 1, sizeof(double));
    s->back = room_for(c, count + 1, sizeof(double));
    s->spare = room_for(c, count, sizeof(int));
    if (s->forth == NULL || s->back == NULL || s->spare == NULL)
        return false;
    sum_ways(c->m, s);
    return true;
}

FUNCTION(two_opt, 3, 3, "dist", "tour", "nodes", "near", "moves")
{
    Search s = {0};
    if (!take_search(c, a[0], a[1], a[2], a + 3, &s) || !take_ways(c, &s))
        return NULL;
    while (s.queue.count > 0 && s.moves > 0) {
        int node = queue_take(&s.queue);
        s.moves -= two_opt_move(c->m, &s, node) ||
                   (!same_back(&s) && swap_move(c->m, &s, node));
    }
    return as_list(s.tour.nodes, s.tour.count);
}

/* The tour with the stretch of `size` nodes from index i on, forward or backward, put beside c. */
static void move_stretch(Search *s, int i, int step, int size, int c, int side)
{
    int n = s->tour.count, *tour = s->tour.nodes, *rest = s->spare, *stretch = rest + n, left = 0;
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
static bool or_opt_move(Matrix *m, Search *s, int a)
{
    int n = s->tour.count, *tour = s->tour.nodes, i = s->place[a], count;
    int most = s->length < n - 3 ? (int)s->length : n - 3;
    const uint16_t *near[2] = {near_to(m, a, s->near, &count), near_of(m, a, s->near, &count)};
    for (int step = 1; step >= -1; step -= 2) {
        double turned = 0.0; /* what the stretch gets longer by when it is turned round */
        for (int size = 1, last = a; size <= most; size++) {
            int e = tour[(i + step * (size - 1) + n) % n];
            int p = tour[(i - step + n) % n], q = tour[(i + step * size + n) % n];
            if (size > 1)
                turned += way(m, -step, last, e) - way(m, step, last, e);
            last = e;
            double old = way(m, step, p, a) + way(m, step, e, q);
            double saved = old - way(m, step, p, q);
            for (int k = 0; k < count; k++) {
                int c = -1, j = -1;
                bool fits = false, far = true; /* c and they are the same for both sides, mostly */
                spend(4);
                for (int side = 1; side >= -1; side -= 2) {
                    if (c != near[side == -1][k] || directed(m)) {
                        c = near[side == -1][k];
                        j = s->place[c];
                        bool this_far = way(m, side, c, a) >= saved;
                        far = far && this_far;
                        fits = !this_far && j >= 0 && !inside(j, i, step, size, n);
                    }
                    if (!fits)
                        continue;
                    int l = (j + side + n) % n, x = tour[l];
                    if (inside(l, i, step, size, n))
                        continue;
                    double gone = way(m, side, c, x);
                    double paid = way(m, side, c, a) + way(m, side, e, x) - gone;
                    if (side != step)
                        paid += turned;
                    if (!(saved - paid > MARGIN * (old + gone)))
                        continue;
                    move_stretch(s, i, step, size, c, side);
                    queue_ends(&s->queue, (const int[]){a, e, p, q, c, x}, 6);
                    return true;
                }
                if (far)
                    break;
            }
        }
    }
    return false;
}

FUNCTION(or_opt, 3, 3, "dist", "tour", "nodes", "length", "near", "moves")
{
    Search s = {0};
    if (!take_search(c, a[0], a[1], a[2], a + 4, &s) || !take_count(a[3], 3, 1, &s.length))
        return NULL;
    s.spare = room_for(c, 2 * (size_t)s.tour.count, sizeof(int));
    if (s.spare == NULL)
        return NULL;
    while (s.queue.count > 0 && s.moves > 0)
        s.moves -= or_opt_move(c->m, &s, queue_take(&s.queue));
    return as_list(s.tour.nodes, s.tour.count);
}

/* --- Lin and Kernighan's search, where no way differs from the way back ------------------------ */

enum { CHAIN = 30 };                  /* exchanges of a chain, at most */
static const int BREADTH[] = {5, 3}; /* ways that the first of them try; the others one */

typedef struct {
    Search *s;
    int first;           /* the node at which all exchanges begin */
    int added[CHAIN][2]; /* the edges put in so far */
} Chain;

typedef struct {
    int c, d;   /* the edge that goes, d on this side of c */
    double sum; /* gained so far, without the edge that closes the tour */
} Exchange;

/* Turns round the path that goes over the places from `low` to `high`, perhaps past the end of the
 * list; or all the rest, which is the same tour, where that is shorter. */
static void turn_path(Search *s, int low, int high)
{
    int n = s->tour.count, *tour = s->tour.nodes, size = high - low + (high < low ? n : 0) + 1;
    if (2 * size > n) {
        int end = low;
        low = high + 1 < n ? high + 1 : 0;
        high = end > 0 ? end - 1 : n - 1;
        size = n - size;
    }
    spend(size);
    for (int k = size / 2; k > 0; k--) {
        int node = tour[low];
        tour[low] = tour[high];
        tour[high] = node;
        s->place[tour[low]] = low;
        s->place[node] = high;
        low = low + 1 < n ? low + 1 : 0;
        high = high > 0 ? high - 1 : n - 1;
    }
}

/* Turns round the path from b, which is beside `first`, to d, on the side away from it. */
static void turn_from(Search *s, int first, int b, int d)
{
    int n = s->tour.count, i = s->place[first];
    if (s->tour.nodes[i + 1 < n ? i + 1 : 0] == b)
        turn_path(s, s->place[b], s->place[d]);
    else
        turn_path(s, s->place[d], s->place[b]);
}

static bool was_added(const Chain *chain, int level, int a, int b)
{
    for (int k = 0; k < level; k++)
        if ((chain->added[k][0] == a && chain->added[k][1] == b) ||
            (chain->added[k][0] == b && chain->added[k][1] == a))
            return true;
    return false;
}

/* The exchanges that take out the edge from `first` to b, the most promising ones first. */
static int exchanges(Matrix *m, const Chain *chain, int level, int b, double sum, int most,
                     Exchange *out)
{
    const Search *s = chain->s;
    int n = s->tour.count, *tour = s->tour.nodes, count, found = 0, i = s->place[chain->first];
    int step = tour[i + 1 < n ? i + 1 : 0] == b ? 1 : -1;
    const uint16_t *near = near_of(m, b, s->near, &count);
    for (int k = 0; k < count; k++) {
        int c = near[k], j = s->place[c];
        double rest = sum - edge(m, b, c);
        spend(4);
        if (!(rest > 0.0))
            break;
        if (j < 0 || c == chain->first)
            continue;
        j -= step;
        int d = tour[j < 0 ? n - 1 : j < n ? j : 0];
        if (d == b || was_added(chain, level, c, d))
            continue;
        Exchange new = {c, d, rest + edge(m, d, c)};
        int at = found < most ? found++ : most;
        for (; at > 0 && out[at - 1].sum < new.sum; at--)
            if (at < most)
                out[at] = out[at - 1];
        if (at < most)
            out[at] = new;
    }
    return found;
}

/* Exchanges from the edge of `first` and b on, as long as their sum stays above what they have
 * gained; how many exchanges stay in the tour. `best`: gained so far; `gone`: length taken out. */
static int chain_from(Matrix *m, Chain *chain, int level, int b, double sum, double best,
                      double gone)
{
    Exchange ways[5];
    Search *s = chain->s;
    int most = best > 0.0 || level > 1 ? 1 : BREADTH[level], first = chain->first;
    if (level == CHAIN)
        return 0;
    int count = exchanges(m, chain, level, b, sum, most, ways);
    for (int k = 0; k < count; k++) {
        int c = ways[k].c, d = ways[k].d;
        double gain = ways[k].sum - edge(m, d, first), out = gone + edge(m, d, c);
        chain->added[level][0] = b;
        chain->added[level][1] = c;
        turn_from(s, first, b, d);
        bool better = gain > best + MARGIN * out;
        int more = chain_from(m, chain, level + 1, d, ways[k].sum, better ? gain : best, out);
        if (better || more > 0) {
            queue_ends(&s->queue, (const int[]){b, c, d}, 3);
            return 1 + more;
        }
        turn_from(s, first, d, b);
    }
    return 0;
}

/* A chain of exchanges that gains, from an edge of `a`; whether there was one. */
static bool chain_move(Matrix *m, Search *s, int a)
{
    Chain chain = {.s = s, .first = a};
    for (int step = 1; step >= -1; step -= 2) {
        int n = s->tour.count, b = s->tour.nodes[(s->place[a] + step + n) % n];
        double old = edge(m, a, b);
        if (chain_from(m, &chain, 0, b, old, 0.0, old) > 0) {
            queue_add(&s->queue, a);
            return true;
        }
    }
    return false;
}

FUNCTION(lin_kernighan, 3, 3, "dist", "tour", "nodes", "near", "moves")
{
    Search s = {.length = 3};
    if (!take_search(c, a[0], a[1], a[2], a + 3, &s) || !take_ways(c, &s))
        return NULL;
    s.spare = room_for(c, 2 * (size_t)s.tour.count, sizeof(int));
    if (s.spare == NULL)
        return NULL;
    while (s.queue.count > 0 && s.moves > 0) {
        int node = queue_take(&s.queue);
        bool moved = directed(c->m) ? two_opt_move(c->m, &s, node) ||
                                          (!same_back(&s) && swap_move(c->m, &s, node))
                                    : s.tour.count > 4 && chain_move(c->m, &s, node);
        if (!moved && or_opt_move(c->m, &s, node)) {
            moved = true;
            sum_ways(c->m, &s);
        }
        s.moves -= moved;
    }
    return as_list(s.tour.nodes, s.tour.count);
}
