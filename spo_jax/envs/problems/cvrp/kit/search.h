/* The local search of the kit of the CVRP. dist[a][b] is the way from a to b. Where all ways are as
 * long as the ways back, what is turned round stays as long as it is, and nothing is summed up. */

#include "../../kit_queue.h"

typedef struct {
    const Matrix *m;
    Routes routes;
    Times times;
    Queue queue;
    const int64_t *demands;
    int64_t capacity;
    int64_t *room; /* [count] */
    int *home;     /* [N] the route of each customer, or -1 */
    int *place;    /* [N] its index there */
    int *spare;    /* [2, total] */
    double *forth; /* [N + 2]: of a route, up to each stop and the depot; NULL: not needed */
    double *back;  /* [N + 2]: the same the other way */
    long long near, moves, length;
} Search;

/* Notes where the customers of a route are, and when. */
static void note_places(Search *s, int r)
{
    spend(2 * (long long)length_of(&s->routes, r));
    if (TIMED)
        time_route(s->m, &s->times, s->routes.nodes + s->routes.start[r],
                   length_of(&s->routes, r));
    for (int i = s->routes.start[r]; i < s->routes.start[r + 1]; i++) {
        s->home[s->routes.nodes[i]] = r;
        s->place[s->routes.nodes[i]] = i - s->routes.start[r];
    }
}

/* The rest of a search whose routes are taken; seen [N] marks their customers. */
static bool take_search(Call *c, const unsigned char *seen, PyObject *customers,
                        PyObject **options, Search *s)
{
    size_t n = (size_t)c->m->n;
    unsigned char *twice = zeros_for(c, n, 1);
    List list;
    if (twice == NULL || !take_list(c, customers, 0, &list) ||
        !mark_nodes(twice, list.nodes, list.count, 0, c->m->n) ||
        !take_count(options[0], 10, 0, &s->near) || !take_count(options[1], 1000, 0, &s->moves) ||
        !make_near(c->m))
        return false;
    for (int i = 0; i < list.count; i++)
        if (!seen[list.nodes[i]])
            return refuse("a customer is not in the routes");
    s->m = c->m;
    s->moves = most_moves(s->moves, s->routes.total);
    s->home = homes_of(c, &s->routes, c->m->n);
    s->place = zeros_for(c, n, sizeof(int));
    s->spare = room_for(c, 2 * (size_t)s->routes.total, sizeof(int));
    if (s->home == NULL || s->place == NULL || s->spare == NULL)
        return false;
    for (int r = 0; r < s->routes.count; r++)
        note_places(s, r);
    return queue_new(c, &s->queue, &list, c->m->n);
}

/* As take_search, with demands and capacity. */
static bool take_loaded_search(Call *c, PyObject **a, PyObject **options, Search *s)
{
    Problem x;
    if (!take_problem(c, a, &x))
        return false;
    s->routes = x.routes;
    s->times = x.times;
    s->demands = x.demands;
    s->capacity = x.capacity;
    s->room = room_for(c, (size_t)x.routes.count, sizeof(int64_t));
    if (s->room == NULL)
        return false;
    for (int r = 0; r < x.routes.count; r++)
        s->room[r] = x.capacity - load_of(x.demands, x.routes.nodes + x.routes.start[r],
                                          length_of(&x.routes, r));
    return take_search(c, x.seen, a[ROUTES + 1], options, s);
}

/* The stop at an index of a route: the depot before the first and after the last. */
static inline int stop_at(const Search *s, int r, int i)
{
    return i < 0 || i >= length_of(&s->routes, r) ? 0 : s->routes.nodes[s->routes.start[r] + i];
}

static void queue_ends(Queue *q, const int *ends, int count)
{
    for (int i = 0; i < count; i++)
        if (ends[i] != 0)
            queue_add(q, ends[i]);
}

/* Puts other customers on two routes, as many as before on both together. */
static void set_routes(Search *s, int r, const int *one, int one_length, int q, const int *two,
                       int two_length)
{
    if (r > q) {
        set_routes(s, q, two, two_length, r, one, one_length);
        return;
    }
    int *nodes = s->routes.nodes, *start = s->routes.start;
    int old = start[r + 1], end = start[r] + one_length, between = start[q] - old;
    memmove(nodes + end, nodes + old, (size_t)between * sizeof(int));
    memcpy(nodes + start[r], one, (size_t)one_length * sizeof(int));
    memcpy(nodes + end + between, two, (size_t)two_length * sizeof(int));
    for (int k = r + 1; k <= q; k++)
        start[k] += end - old;
    note_places(s, r);
    note_places(s, q);
}

/* Sums up a route, where that is needed. */
static void sum_ways(const Matrix *m, Search *s, int r)
{
    int length = length_of(&s->routes, r);
    if (s->forth == NULL)
        return;
    spend(2 * (long long)length);
    s->forth[0] = s->back[0] = 0.0;
    for (int i = 0; i <= length; i++) {
        int last = stop_at(s, r, i - 1), stop = stop_at(s, r, i);
        s->forth[i + 1] = s->forth[i] + edge(m, last, stop);
        s->back[i + 1] = s->back[i] + edge(m, stop, last);
    }
}

/* Turns round a route from index `low` to `high`. */
static void turn(Search *s, int *route, int low, int high)
{
    spend(high > low ? high - low : 0);
    for (; low < high; low++, high--) {
        int node = route[low];
        route[low] = route[high];
        route[high] = node;
        s->place[route[low]] = low;
        s->place[node] = high;
    }
}

/* Reverses a part of a route, or all but it, where that gains at `a`; whether it did. */
static bool two_opt_move(Matrix *m, Search *s, int a)
{
    int r = s->home[a], i = s->place[a], count, *route = s->routes.nodes + s->routes.start[r];
    int length = length_of(&s->routes, r);
    sum_ways(m, s, r);
    for (int step = 1; step >= -1; step -= 2) {
        const uint16_t *near = near_by(m, step, a, s->near, &count);
        int b = stop_at(s, r, i + step);
        for (int k = 0; k < count; k++) {
            int c = near[k], j = s->place[c];
            spend(4);
            if (way(m, step, a, c) >= way(m, step, a, b))
                break;
            if (s->home[c] != r)
                continue;
            int d = stop_at(s, r, j + step);
            double old = way(m, step, a, b) + way(m, step, c, d), margin = MARGIN * old;
            int low = (i < j ? i : j) + (step == 1), high = (i < j ? j : i) - (step == -1);
            int first = i < j ? 1 : -1; /* the way from a to c, if low to high is turned */
            double turned = 0.0;
            if (s->forth != NULL) {
                turned = (s->back[high + 1] - s->back[low + 1]) -
                         (s->forth[high + 1] - s->forth[low + 1]);
                if (turned != 0.0)
                    margin = MARGIN * (old + fabs(s->forth[length + 1]));
            }
            for (int all = 0; all <= (TIMED || s->forth != NULL); all++) {
                if (all && s->forth != NULL) {
                    double again = way(m, -step, a, b) + way(m, -step, c, d);
                    turned = s->back[length + 1] - s->forth[length + 1] - turned - (again - old);
                    margin = MARGIN * (turned != 0.0 ? old + fabs(s->forth[length + 1]) : old);
                }
                int forward = all ? -first : first;
                if (!(old - way(m, forward, a, c) - way(m, forward, b, d) - turned > margin))
                    continue;
                turn(s, route, low, high);
                if (all)
                    turn(s, route, 0, length - 1);
                if (TIMED && !joins_by(m, &s->times, 0, route, length, 0)) {
                    if (all)
                        turn(s, route, 0, length - 1);
                    turn(s, route, low, high);
                    continue;
                }
                if (TIMED)
                    time_route(m, &s->times, route, length);
                queue_ends(&s->queue, (const int[]){a, b, c, d}, 4);
                return true;
            }
        }
    }
    return false;
}

#if TIMED
FUNCTION(two_opt, ROUTES + 2, ROUTES + 2, GIVEN, "routes", "customers", "near", "moves")
{
    Search s = {0};
    if (!take_loaded_search(c, a, a + ROUTES + 2, &s))
        return NULL;
#else
FUNCTION(two_opt, 3, 3, "dist", "routes", "customers", "near", "moves")
{
    Search s = {0};
    unsigned char *seen;
    if (!take_solution(c, a[0], a[1], &s.routes, &seen) || !take_search(c, seen, a[2], a + 3, &s))
        return NULL;
#endif
    if (directed(c->m)) {
        s.forth = room_for(c, (size_t)c->m->n + 2, sizeof(double));
        s.back = room_for(c, (size_t)c->m->n + 2, sizeof(double));
        if (s.forth == NULL || s.back == NULL)
            return NULL;
    }
    while (s.queue.count > 0 && s.moves > 0)
        s.moves -= two_opt_move(c->m, &s, queue_take(&s.queue));
    return as_routes(&s.routes, false);
}

typedef struct {
    int route, index, step, size;
} Stretch;

/* Whether the stop at an index of a route is in the stretch. */
static inline bool inside(const Stretch *x, int route, int index)
{
    int offset = x->step * (index - x->index);
    return route == x->route && offset >= 0 && offset < x->size;
}

/* Route r without the stretch and, if c is in it, with the stretch beside c; its new length. */
static int rebuild(const Search *s, int r, const Stretch *x, int c, int side, int *out)
{
    int length = 0;
    spend(3 * (long long)length_of(&s->routes, r));
    for (int i = 0; i < length_of(&s->routes, r); i++) {
        int node = stop_at(s, r, i);
        if (inside(x, r, i))
            continue;
        if (node == c && side == -1)
            for (int j = x->size - 1; j >= 0; j--)
                out[length++] = stop_at(s, x->route, x->index + x->step * j);
        out[length++] = node;
        if (node == c && side == 1)
            for (int j = 0; j < x->size; j++)
                out[length++] = stop_at(s, x->route, x->index + x->step * j);
    }
    return length;
}

/* Whether both routes are in time with the stretch between `c` and `y`, which come in that order for
 * side 1. */
static bool moves_in_time(const Search *s, const Stretch *x, int c, int y, int side)
{
    int r = x->route, end = x->index + x->step * (x->size - 1);
    if (s->home[c] == r)
        return joins_by(s->m, &s->times, 0, s->spare, rebuild(s, r, x, c, side, s->spare), 0);
    int low = x->step == 1 ? x->index : end, high = x->step == 1 ? end : x->index;
    if (!joins(s->m, &s->times, stop_at(s, r, low - 1), stop_at(s, r, high + 1)))
        return false;
    for (int i = 0; i < x->size; i++)
        s->spare[i] = stop_at(s, r, x->step * side == 1 ? low + i : high - i);
    return joins_by(s->m, &s->times, side == 1 ? c : y, s->spare, x->size, side == 1 ? y : c);
}

static void move_stretch(Search *s, const Stretch *x, int c, int side, int64_t need)
{
    int r = x->route, q = s->home[c];
    int one_length = rebuild(s, r, x, c, side, s->spare);
    if (r == q) {
        memcpy(s->routes.nodes + s->routes.start[r], s->spare, (size_t)one_length * sizeof(int));
        note_places(s, r);
        return;
    }
    int two_length = rebuild(s, q, x, c, side, s->spare + one_length);
    set_routes(s, r, s->spare, one_length, q, s->spare + one_length, two_length);
    s->room[r] += need;
    s->room[q] -= need;
}

/* Moves a stretch from `a` on where that gains; whether it did. */
static bool or_opt_move(Matrix *m, Search *s, int a)
{
    Stretch x = {.route = s->home[a], .index = s->place[a]};
    int r = x.route, length = length_of(&s->routes, r), count;
    int most = s->length < length ? (int)s->length : length;
    const uint16_t *near[2] = {near_to(m, a, s->near, &count), near_of(m, a, s->near, &count)};
    for (x.step = 1; x.step >= -1; x.step -= 2) {
        int64_t need = 0;
        double turned = 0.0; /* what the stretch gets longer by when it is turned round */
        double inner = 0.0, stay = 0.0; /* its length and its service */
        int before = a;
        for (x.size = 1; x.size <= most; x.size++) {
            int end = x.index + x.step * (x.size - 1);
            if (end < 0 || end >= length)
                break;
            int e = stop_at(s, r, end);
            int p = stop_at(s, r, x.index - x.step), q = stop_at(s, r, end + x.step);
            if (x.size > 1) {
                turned += way(m, -x.step, before, e) - way(m, x.step, before, e);
                inner += way(m, x.step, before, e);
            }
            before = e;
            need += s->demands[e];
            if (limits_of(m) != NULL)
                stay += limits_of(m)->service[e];
            double old = way(m, x.step, p, a) + way(m, x.step, e, q);
            double saved = old - way(m, x.step, p, q);
            for (int k = 0; k < count; k++) {
                int c = -1, other = -1, j = -1;
                bool fits = false, far = true; /* c and they are the same for both sides, mostly */
                spend(4);
                for (int side = 1; side >= -1; side -= 2) {
                    if (c != near[side == -1][k] || directed(m)) {
                        c = near[side == -1][k];
                        other = s->home[c];
                        j = s->place[c];
                        bool this_far = way(m, side, c, a) >= saved;
                        far = far && this_far;
                        fits = !this_far && other >= 0 && !inside(&x, other, j) &&
                               (other == r || s->room[other] >= need);
                    }
                    if (!fits)
                        continue;
                    int y = stop_at(s, other, j + side);
                    if (inside(&x, other, j + side))
                        continue;
                    double gone = way(m, side, c, y);
                    double paid = way(m, side, c, a) + way(m, side, e, y) - gone;
                    if (side != x.step)
                        paid += turned;
                    if (!(saved - paid > MARGIN * (old + gone)))
                        continue;
                    if (other != r &&
                        !may_grow(m, s->routes.nodes + s->routes.start[other],
                                  length_of(&s->routes, other), paid + inner, stay))
                        continue;
                    if (TIMED && !moves_in_time(s, &x, c, y, side))
                        continue;
                    move_stretch(s, &x, c, side, need);
                    queue_ends(&s->queue, (const int[]){a, e, p, q, c, y}, 6);
                    return true;
                }
                if (far)
                    break;
            }
        }
    }
    return false;
}

FUNCTION(or_opt, ROUTES + 2, ROUTES + 2, GIVEN, "routes", "customers", "length", "near", "moves")
{
    Search s = {0};
    if (!take_loaded_search(c, a, a + ROUTES + 3, &s) ||
        !take_count(a[ROUTES + 2], 3, 1, &s.length))
        return NULL;
    while (s.queue.count > 0 && s.moves > 0)
        s.moves -= or_opt_move(c->m, &s, queue_take(&s.queue));
    return as_routes(&s.routes, true);
}

/* Exchanges the ends of two routes where that gains at `a`; whether it did. */
static bool two_opt_star_move(Matrix *m, Search *s, int a)
{
    int r = s->home[a], i = s->place[a], count;
    for (int step = 1; step >= -1; step -= 2) { /* a keeps what is before it, or after it */
        const uint16_t *near = near_by(m, step, a, s->near, &count);
        int b = stop_at(s, r, i + step);
        for (int k = 0; k < count; k++) {
            int c = near[k], q = s->home[c], j = s->place[c];
            spend(4);
            if (way(m, step, a, c) >= way(m, step, a, b))
                break;
            if (q < 0 || q == r)
                continue;
            int d = stop_at(s, q, j - step);
            double old = way(m, step, a, b) + way(m, step, d, c);
            if (!(old - way(m, step, a, c) - way(m, step, d, b) > MARGIN * old))
                continue;
            if (TIMED && !(step == 1 ? joins(m, &s->times, a, c) && joins(m, &s->times, d, b)
                                     : joins(m, &s->times, c, a) && joins(m, &s->times, b, d)))
                continue;
            const int *mine = s->routes.nodes + s->routes.start[r];
            const int *theirs = s->routes.nodes + s->routes.start[q];
            int my_length = length_of(&s->routes, r), their_length = length_of(&s->routes, q);
            int my_cut = step == 1 ? i + 1 : i, their_cut = step == 1 ? j : j + 1;
            int64_t my_head = load_of(s->demands, mine, my_cut);
            int64_t their_head = load_of(s->demands, theirs, their_cut);
            int64_t my_tail = load_of(s->demands, mine + my_cut, my_length - my_cut);
            int64_t their_tail = load_of(s->demands, theirs + their_cut, their_length - their_cut);
            if (my_head + their_tail > s->capacity || their_head + my_tail > s->capacity)
                continue;
            /* step 1: mine up to a, theirs from c on; step -1: theirs up to c, mine from a on */
            int front_length = my_cut + their_length - their_cut;
            int other_length = their_cut + my_length - my_cut;
            int *front = s->spare, *other = s->spare + front_length;
            memcpy(front, mine, (size_t)my_cut * sizeof(int));
            memcpy(front + my_cut, theirs + their_cut,
                   (size_t)(their_length - their_cut) * sizeof(int));
            memcpy(other, theirs, (size_t)their_cut * sizeof(int));
            memcpy(other + their_cut, mine + my_cut, (size_t)(my_length - my_cut) * sizeof(int));
            if (!may_grow(m, front, front_length, 0.0, 0.0) ||
                !may_grow(m, other, other_length, 0.0, 0.0))
                continue;
            if (step == 1)
                set_routes(s, r, front, front_length, q, other, other_length);
            else
                set_routes(s, r, other, other_length, q, front, front_length);
            queue_ends(&s->queue, (const int[]){a, b, c, d}, 4);
            return true;
        }
    }
    return false;
}

FUNCTION(two_opt_star, ROUTES + 2, ROUTES + 2, GIVEN, "routes", "customers", "near", "moves")
{
    Search s = {0};
    if (!take_loaded_search(c, a, a + ROUTES + 2, &s))
        return NULL;
    while (s.queue.count > 0 && s.moves > 0)
        s.moves -= two_opt_star_move(c->m, &s, queue_take(&s.queue));
    return as_routes(&s.routes, true);
}

#if TIMED
#include "exchange.h"
#endif
