/* Regret insertion of the kit of the CVRP. For each waiting customer the cheapest place in each
 * route is kept, with room or without. */

typedef struct {
    long long k, near;
    double weight, bound, noise, fresh;
} Regret;

/* What is known of a customer that waits. */
typedef struct {
    Place *places; /* [count] the cheapest place of each route: of all, or with near of some */
    int *close;    /* with near, [near]: its near customers in the routes */
    int node;
    int count;
    int close_count;
    double reach; /* with near: a customer farther away is none of the near ones */
    bool stale;   /* with near: whether the places must be found anew */
} Waiting;

/* Whether a place is one in time. */
static inline bool timely(const Plan *p, int from, int node, int next)
{
    return !TIMED || joins_by(p->m, &p->times, from, &node, 1, next);
}

/* The cheapest place of a node in a route, of those in time; at inf if there is none. */
static Place cheapest_in(const Plan *p, int r, int node)
{
    const double *row = row_of(p->m, node), *column = column_of(p->m, node);
    int next = p->head[r];
    spend(p->size[r] + 2);
    Place best = {column[0] + row[next] - p->enter[r], r, 0};
    if (!timely(p, 0, node, next))
        best.price = HUGE_VAL;
    while (next != 0) {
        int from = next;
        next = p->links.next[from];
        double price = column[from] + row[next] - p->links.after[from];
        if (price < best.price && timely(p, from, node, next)) {
            best.price = price;
            best.from = from;
        }
    }
    return best;
}

/* Keeps the cheapest place in route r as x comes between two of its stops. */
static void update_place(const Plan *p, Waiting *w, int r, int from, int x, int next)
{
    Place *place = &w->places[r];
    const Matrix *m = p->m; /* read along the rows of the three: the same for all that wait */
    if (TIMED) { /* each place of the route may have come to be late */
        *place = cheapest_in(p, r, w->node);
        return;
    }
    spend(6);
    double gone = from == 0 ? p->enter[r] : p->links.after[from];
    double one = row_of(m, from)[w->node] + column_of(m, x)[w->node] - gone;
    double two = row_of(m, x)[w->node] + column_of(m, next)[w->node] - p->links.after[x];
    if (place->from == from || one == place->price || two == place->price) {
        *place = cheapest_in(p, r, w->node);
        return;
    }
    if (one < place->price)
        *place = (Place){one, r, from};
    if (two < place->price)
        *place = (Place){two, r, x};
}

/* With near: finds the places of a node beside its near customers, the cheapest of each route, or
 * if it has none those in all routes, in `all`, [count of routes]. */
static const Place *find_places(const Plan *p, Waiting *w, long long near, Place *all)
{
    Place tries[2 * DEPTH];
    if (!w->stale)
        return w->places;
    int found = close_places(p, w->node, near, tries);
    w->count = 0;
    w->close_count = found / 2;
    /* Each insertion changes all places; of near ones by direction it is not kept which. */
    w->stale = found == 0 || directed(p->m);
    w->reach = HUGE_VAL;
    spend(2 * (long long)found);
    if (found == 0) {
        for (int r = 0; r < p->count; r++)
            all[r] = cheapest_in(p, r, w->node);
        w->count = p->count;
        return all;
    }
    for (int i = 0; i < found; i++) {
        int at_i = 0, r = tries[i].route, from = tries[i].from;
        if (!directed(p->m))
            w->close[i / 2] = tries[i & ~1].from;
        if (!timely(p, from, w->node, from == 0 ? p->head[r] : p->links.next[from]))
            continue;
        while (at_i < w->count && w->places[at_i].route != tries[i].route)
            at_i++;
        if (at_i == w->count)
            w->places[w->count++] = tries[i];
        else if (tries[i].price < w->places[at_i].price)
            w->places[at_i] = tries[i];
    }
    if (w->close_count == near && !directed(p->m))
        w->reach = row_of(p->m, w->node)[w->close[near - 1]];
    return w->places;
}

/* With near: whether a node's places change as x comes between two stops; in time, all places of its
 * route do. */
static bool changes(const Plan *p, const Waiting *w, int from, int x, int next)
{
    if (column_of(p->m, x)[w->node] <= w->reach)
        return true;
    for (int i = 0; i < w->close_count; i++) {
        int other = w->close[i];
        if (TIMED ? p->links.home[other] == p->links.home[x] : other == from || other == next)
            return true;
    }
    return false;
}

/* The score of a node without noise, and its cheapest price, a route of its own included.
 * pairs: [2, room] of at least the number of routes. */
static double score_of(const Plan *p, const Waiting *w, const Place *places, const Regret *how,
                       Pair *pairs, int room, double *cheapest)
{
    int found = 0;
    spend(4 + 2 * (long long)w->count);
    for (int i = 0; i < w->count; i++)
        if (has_room(p, places[i].route, places[i].from, w->node, places[i].price)) {
            pairs[found] = (Pair){places[i].price, found, places[i].route};
            found++;
        }
    double own = freshness(p, how->fresh) * alone(p, w->node), score = 0.0;
    long long own_left = (how->k < p->count + 1 ? how->k : p->count + 1) - found;
    own_left = own_left > 0 ? own_left + 1 : 1;
    int sorted = how->k < found ? (int)how->k : found, used = 0;
    first_pairs(pairs, pairs + room, found, sorted);
    *cheapest = found > 0 && pairs[0].key <= own ? pairs[0].key : own;
    for (long long j = 0; j < how->k && (used < sorted || own_left > 0); j++) {
        double price = own;
        if (used < sorted && (own_left == 0 || pairs[used].key <= own))
            price = pairs[used++].key;
        else
            own_left--;
        if (j > 0)
            score += price - *cheapest;
    }
    return score - how->weight * *cheapest;
}

/* Makes room for one more route in the places of all that wait, [count]. */
static bool widen(Call *c, Waiting *waiting, int count, int routes, int *room)
{
    if (routes < *room)
        return true;
    *room = 2 * routes + 8;
    Place *places = room_for(c, (size_t)count * (size_t)*room, sizeof(Place));
    if (places == NULL)
        return false;
    for (int i = 0; i < count; i++, places += *room) {
        if (routes > 0)
            memcpy(places, waiting[i].places, (size_t)routes * sizeof(Place));
        waiting[i].places = places;
    }
    return true;
}

/* The waiting customers, with what is known of them at the start. */
static Waiting *start_waiting(Call *c, const Plan *p, const Regret *how, const List *nodes,
                              int *room)
{
    size_t count = (size_t)nodes->count, near = (size_t)how->near;
    size_t most = directed(p->m) ? 2 * near : near; /* routes beside near customers */
    Waiting *waiting = room_for(c, count, sizeof(Waiting));
    Place *places = room_for(c, count * most, sizeof(Place));
    int *close = room_for(c, count * near, sizeof(int));
    if (waiting == NULL || places == NULL || close == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        waiting[i] = (Waiting){.node = nodes->nodes[i],
                               .stale = true,
                               .places = places + i * most,
                               .close = close + i * near};
    if (near > 0)
        return waiting;
    *room = 0;
    while (*room <= p->count)
        if (!widen(c, waiting, nodes->count, *room, room))
            return NULL;
    for (int i = 0; i < nodes->count; i++) {
        waiting[i].count = p->count;
        for (int r = 0; r < p->count; r++)
            waiting[i].places[r] = cheapest_in(p, r, waiting[i].node);
    }
    return waiting;
}

/* The place of that price in the first route that has one with room; route -1: a new one. */
static Place chosen_place(const Plan *p, const Waiting *w, const Place *places, double price)
{
    Place best = {alone(p, w->node), -1, 0};
    spend(w->count);
    for (int i = 0; i < w->count; i++)
        if (places[i].price == price &&
            has_room(p, places[i].route, places[i].from, w->node, price) &&
            (best.route < 0 || places[i].route < best.route))
            best = places[i];
    return best;
}

/* Inserts the customers: (routes, added). */
static PyObject *insert_by_regret(Call *c, const Problem *x, const List *nodes, Regret *how)
{
    Plan p;
    double added = 0.0, u;
    int room = 0, most = x->routes.count + nodes->count;
    how->near = how->near < DEPTH ? how->near : DEPTH;
    int *order = room_for(c, (size_t)nodes->count, sizeof(int));
    Pair *pairs = room_for(c, 2 * ((size_t)most + DEPTH), sizeof(Pair));
    Place *all = room_for(c, (size_t)most, sizeof(Place));
    if (order == NULL || pairs == NULL || all == NULL || !new_plan(c, x, nodes->count, &p))
        return NULL;
    Waiting *waiting = start_waiting(c, &p, how, nodes, &room);
    if (waiting == NULL)
        return NULL;
    for (int i = 0; i < nodes->count; i++)
        order[i] = i;
    for (int left = nodes->count; left > 0; left--) {
        int chosen = -1;
        double best = 0.0, paid = 0.0, cheapest;
        for (int i = 0; i < left; i++) {
            Waiting *w = &waiting[order[i]];
            const Place *places = how->near > 0 ? find_places(&p, w, how->near, all) : w->places;
            double score = score_of(&p, w, places, how, pairs, most + DEPTH, &cheapest);
            if (how->noise != 0.0) {
                if (!draw(c, &u))
                    return NULL;
                score *= 1.0 + how->noise * u;
            }
            if (chosen < 0 || score > best) {
                best = score;
                chosen = i;
                paid = cheapest;
            }
        }
        Waiting *w = &waiting[order[chosen]];
        const Place *places = how->near > 0 ? find_places(&p, w, how->near, all) : w->places;
        Place place = chosen_place(&p, w, places, paid);
        memmove(order + chosen, order + chosen + 1, (size_t)(left - 1 - chosen) * sizeof(int));
        bool opened = place.route < 0;
        if (opened) {
            open_route(&p, w->node);
            if (how->near == 0 && !widen(c, waiting, nodes->count, p.count - 1, &room))
                return NULL;
        } else {
            insert_stop(&p, place.route, place.from, w->node);
            measure_route(&p, place.route);
        }
        int next = p.links.next[w->node];
        for (int i = 0; i < left - 1; i++) {
            Waiting *other = &waiting[order[i]];
            if (how->near > 0)
                other->stale = other->stale || changes(&p, other, place.from, w->node, next);
            else if (!opened)
                update_place(&p, other, place.route, place.from, w->node, next);
            else
                other->places[other->count++] = cheapest_in(&p, p.count - 1, other->node);
        }
        added += place.price;
        if (added >= how->bound)
            return nothing();
    }
    return pair_of(plan_routes(c, &p), PyFloat_FromDouble(added));
}

static PyObject *regret(Call *c, PyObject **a, PyObject **options, Regret *how)
{
    Problem x;
    List nodes;
    c->rng = options[4];
    if (!take_problem(c, a, &x) || !take_customers(c, a[ROUTES + 1], x.seen, &nodes) ||
        !take_number(options[0], HUGE_VAL, -HUGE_VAL, HUGE_VAL, &how->bound) ||
        !take_count(options[1], 0, 0, &how->near) ||
        !take_number(options[2], 0, 0, 1e6, &how->noise) ||
        !take_number(options[3], 1, 0, HUGE_VAL, &how->fresh))
        return NULL;
    return insert_by_regret(c, &x, &nodes, how);
}

FUNCTION(regret_insertion, ROUTES + 2, ROUTES + 2, GIVEN, "routes", "customers", "k", "weight",
         "bound", "near", "noise", "fresh", "rng")
{
    Regret how = {0};
    PyObject **options = a + ROUTES + 2;
    if (!take_count(options[0], 2, 1, &how.k) ||
        !take_number(options[1], 0, -1e6, 1e6, &how.weight))
        return NULL;
    return regret(c, a, options + 2, &how);
}

FUNCTION(greedy_insertion, ROUTES + 2, ROUTES + 2, GIVEN, "routes", "customers", "bound", "near",
         "noise", "fresh", "rng")
{
    Regret how = {.k = 1, .weight = 1.0};
    return regret(c, a, a + ROUTES + 2, &how);
}
