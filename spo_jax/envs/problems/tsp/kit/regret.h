/* Regret insertion of the kit of the TSP. For each waiting node its cheapest places are kept, or
 * with near the score of those beside its near nodes, until an insertion changes them. */

enum { SPARE = 5, MOST = 64 };

typedef struct {
    long long k;
    double weight, bound, noise;
    long long near;
    int room; /* of a waiting node's list of cheapest places */
} Regret;

/* What is known of a node that waits. */
typedef struct {
    int node;
    int count;     /* of `cheapest` or `close` */
    bool stale;    /* whether the score must be computed anew */
    double score;  /* without noise */
    double price;  /* of its cheapest place */
    int from;      /* with near: that place */
    double reach;  /* with near: a node farther away is none of the near ones */
    Pair *cheapest; /* [room]: the cheapest places of all, by price */
    int *close;    /* [near]: its near nodes in the tour */
} Waiting;

static double score_of(const Pair *prices, long long count, const Regret *how)
{
    double score = 0.0;
    for (long long j = 1; j < how->k && j < count; j++)
        score += prices[j].key - prices[0].key;
    return score - how->weight * prices[0].key;
}

/* Adds a place to a node's list of cheapest ones, which drops its last where it is full. */
static inline void add_place(Waiting *w, int room, double price, int from)
{
    int i = w->count < room ? w->count++ : room - 1;
    for (; i > 0 && price < w->cheapest[i - 1].key; i--)
        w->cheapest[i] = w->cheapest[i - 1];
    w->cheapest[i] = (Pair){price, 0, from};
}

/* Finds the cheapest places of a node from the whole tour. */
static void scan_places(const Tour *t, Waiting *w, int room)
{
    const double *row = row_of(t->m, w->node), *column = column_of(t->m, w->node);
    w->count = 0;
    w->stale = true;
    spend(2 * (long long)t->count);
    double most = HUGE_VAL;
    for (int i = 0; i < t->count; i++) {
        int next = t->nodes[i + 1 < t->count ? i + 1 : 0];
        double price = column[t->nodes[i]] + row[next] - t->edges[i];
        if (w->count < room || price < most) {
            add_place(w, room, price, t->nodes[i]);
            most = w->cheapest[w->count - 1].key;
        }
    }
}

/* Keeps a node's list as node x is inserted between two others: one place goes, two come. All
 * places that are not in the list cost at least as much as its last, before and after. */
static void update_places(const Tour *t, Waiting *w, const Regret *how, int from, int x, int next)
{
    const Matrix *m = t->m; /* read along the rows of the three: the same for all that wait */
    const double fresh[2] = {
        row_of(m, from)[w->node] + column_of(m, x)[w->node] - edge(m, from, x),
        row_of(m, x)[w->node] + column_of(m, next)[w->node] - edge(m, x, next)};
    const int start[2] = {from, x};
    int places = t->count - 1; /* before */
    spend(6 + w->count);
    bool complete = w->count == places;
    for (int i = 0; i < w->count; i++)
        if (w->cheapest[i].node == from) {
            w->count--;
            memmove(&w->cheapest[i], &w->cheapest[i + 1], (size_t)(w->count - i) * sizeof(Pair));
            w->stale = w->stale || i < how->k;
            break;
        }
    for (int j = 0; j < 2; j++) {
        bool cheap = w->count > 0 && fresh[j] < w->cheapest[w->count - 1].key;
        if (!complete && !cheap)
            continue;
        if (w->count < how->k || fresh[j] < w->cheapest[how->k - 1].key)
            w->stale = true;
        complete = complete && w->count < how->room;
        if (cheap || w->count < how->room)
            add_place(w, how->room, fresh[j], start[j]);
    }
    if (w->count < how->k && w->count < t->count)
        scan_places(t, w, how->room);
}

/* The index of the first place of that price. */
static int place_of(const Tour *t, int node, double price)
{
    const double *row = row_of(t->m, node), *column = column_of(t->m, node);
    for (int i = 0; i < t->count; i++) {
        int next = t->nodes[i + 1 < t->count ? i + 1 : 0];
        if (column[t->nodes[i]] + row[next] - t->edges[i] == price) {
            spend(i);
            return i + 1;
        }
    }
    spend(t->count);
    return 0;
}

/* The score of a node from all its places: with near, or with a large k. `places` has twice the
 * room of near_places. */
static void score_anew(const Tour *t, Waiting *w, const Regret *how, Pair *places, int room)
{
    int found = 0;
    bool all = true;
    if (how->near > 0) {
        found = near_places(t, w->node, how->near, places, &all);
        w->count = all || directed(t->m) ? 0 : found / 2;
        for (int i = 0; i < w->count; i++)
            w->close[i] = places[2 * i].node;
        w->reach = w->count < how->near ? HUGE_VAL
                                        : row_of(t->m, w->node)[w->close[w->count - 1]];
    } else {
        const double *row = row_of(t->m, w->node), *column = column_of(t->m, w->node);
        for (; found < t->count; found++) {
            int next = t->nodes[found + 1 < t->count ? found + 1 : 0];
            places[found] = (Pair){column[t->nodes[found]] + row[next] - t->edges[found], found,
                                   t->nodes[found]};
        }
    }
    spend(2 * (long long)found);
    if (found == 0)
        places[found++] = (Pair){0.0, 0, -1};
    first_pairs(places, places + room, found, how->k < found ? (int)how->k : found);
    w->score = score_of(places, found, how);
    w->price = places[0].key;
    w->from = places[0].node;
    /* Each insertion changes all places; of near ones by direction it is not kept which. */
    w->stale = all || directed(t->m);
}

/* With near: whether a node's places change as x comes between two others. */
static bool changes(const Tour *t, const Waiting *w, int from, int x, int next)
{
    if (column_of(t->m, x)[w->node] <= w->reach)
        return true;
    for (int i = 0; i < w->count; i++)
        if (w->close[i] == from || w->close[i] == next)
            return true;
    return false;
}

static bool regret_room(Call *c, const Regret *how, Waiting *waiting, const List *nodes)
{
    size_t count = (size_t)nodes->count;
    Pair *cheapest = room_for(c, count * (size_t)how->room, sizeof(Pair));
    int *close = room_for(c, count * (size_t)how->near, sizeof(int));
    if (cheapest == NULL || close == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        waiting[i] = (Waiting){.node = nodes->nodes[i],
                               .stale = true,
                               .cheapest = cheapest + i * (size_t)how->room,
                               .close = close + i * (size_t)how->near};
    return true;
}

/* Inserts the nodes: (tour, added). */
static PyObject *insert_by_regret(Call *c, const List *tour, const List *nodes, Regret *how)
{
    Tour t;
    double added = 0.0, u;
    int room = tour->count + nodes->count + 2 * DEPTH;
    if (how->near > DEPTH)
        how->near = DEPTH;
    bool ring = how->near > 0, lists = !ring && how->k <= MOST;
    how->room = lists ? (int)how->k + SPARE : 0;
    Waiting *waiting = room_for(c, (size_t)nodes->count, sizeof(Waiting));
    int *order = room_for(c, (size_t)nodes->count, sizeof(int));
    Pair *places = lists ? NULL : room_for(c, 2 * (size_t)room, sizeof(Pair));
    if (waiting == NULL || order == NULL || (!lists && places == NULL) ||
        !grow_tour(c, &t, tour, nodes->count, ring) || !regret_room(c, how, waiting, nodes))
        return NULL;
    for (int i = 0; i < nodes->count; i++) {
        order[i] = i;
        if (lists)
            scan_places(&t, &waiting[i], how->room);
    }
    for (int left = nodes->count; left > 0; left--) {
        int chosen = -1;
        double best = 0.0;
        spend(2 * (long long)left);
        for (int i = 0; i < left; i++) {
            Waiting *w = &waiting[order[i]];
            if (w->stale && !lists) {
                score_anew(&t, w, how, places, room);
            } else if (w->stale) {
                const Pair none = {0.0, 0, -1}, *prices = w->count > 0 ? w->cheapest : &none;
                w->score = score_of(prices, w->count > 0 ? w->count : 1, how);
                w->price = prices[0].key;
                w->stale = false;
            }
            double score = w->score;
            if (how->noise != 0.0) {
                if (!draw(c, &u))
                    return NULL;
                score *= 1.0 + how->noise * u;
            }
            if (chosen < 0 || score > best) {
                best = score;
                chosen = i;
            }
        }
        Waiting *w = &waiting[order[chosen]];
        memmove(order + chosen, order + chosen + 1, (size_t)(left - 1 - chosen) * sizeof(int));
        int from, next;
        if (ring) {
            from = w->from;
            next = from < 0 ? -1 : t.next[from];
            insert_after(&t, from, w->node);
        } else {
            int index = t.count == 0 ? 0 : place_of(&t, w->node, w->price);
            insert_at(&t, index, w->node);
            from = t.nodes[index > 0 ? index - 1 : t.count - 1];
            next = t.nodes[index + 1 < t.count ? index + 1 : 0];
        }
        for (int i = 0; i < left - 1; i++) {
            Waiting *other = &waiting[order[i]];
            if (lists && t.count > 1)
                update_places(&t, other, how, from, w->node, next);
            else if (lists)
                scan_places(&t, other, how->room);
            else
                other->stale = other->stale || changes(&t, other, from, w->node, next);
        }
        added += w->price;
        if (added >= how->bound)
            return nothing();
    }
    return pair_of(tour_list(c, &t), PyFloat_FromDouble(added));
}

static PyObject *regret(Call *c, PyObject **a, PyObject **options, Regret *how)
{
    List tour, nodes;
    unsigned char *seen;
    c->rng = options[3];
    if (!take_tour(c, a[0], a[1], 0, &tour, &seen) || !take_nodes(c, a[2], 0, seen, &nodes) ||
        !take_number(options[0], HUGE_VAL, -HUGE_VAL, HUGE_VAL, &how->bound) ||
        !take_count(options[1], 0, 0, &how->near) ||
        !take_number(options[2], 0, 0, 1e6, &how->noise))
        return NULL;
    return insert_by_regret(c, &tour, &nodes, how);
}

FUNCTION(regret_insertion, 3, 3, "dist", "tour", "nodes", "k", "weight", "bound", "near", "noise",
         "rng")
{
    Regret how = {0};
    if (!take_count(a[3], 2, 1, &how.k) || !take_number(a[4], 0, -1e6, 1e6, &how.weight))
        return NULL;
    return regret(c, a, a + 5, &how);
}

FUNCTION(greedy_insertion, 3, 3, "dist", "tour", "nodes", "bound", "near", "noise", "rng")
{
    Regret how = {.k = 1, .weight = 1.0};
    return regret(c, a, a + 3, &how);
}
