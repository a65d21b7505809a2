/* The exchange of two stretches of the kit of the VRPTW. */

/* Copies the stops of a route from index `low` to before `high`; their number. */
static int copy_stops(const Search *s, int r, int low, int high, int *out)
{
    memcpy(out, s->routes.nodes + s->routes.start[r] + low, (size_t)(high - low) * sizeof(int));
    return high - low;
}

/* Exchanges the stops from `low` to before `high` of two routes where both keep to what binds them;
 * whether it did. */
static bool exchange_stretches(Search *s, int r, int low, int high, int q, int low_q, int high_q)
{
    const int *mine = s->routes.nodes + s->routes.start[r] + low;
    const int *theirs = s->routes.nodes + s->routes.start[q] + low_q;
    int64_t more = load_of(s->demands, theirs, high_q - low_q) -
                   load_of(s->demands, mine, high - low);
    if (s->room[r] < more || s->room[q] < -more ||
        !joins_by(s->m, &s->times, stop_at(s, r, low - 1), theirs, high_q - low_q,
                  stop_at(s, r, high)) ||
        !joins_by(s->m, &s->times, stop_at(s, q, low_q - 1), mine, high - low,
                  stop_at(s, q, high_q)))
        return false;
    int *one = s->spare, count = copy_stops(s, r, 0, low, one), count_q = 0;
    count += copy_stops(s, q, low_q, high_q, one + count);
    count += copy_stops(s, r, high, length_of(&s->routes, r), one + count);
    int *two = s->spare + count;
    count_q += copy_stops(s, q, 0, low_q, two);
    count_q += copy_stops(s, r, low, high, two + count_q);
    count_q += copy_stops(s, q, high_q, length_of(&s->routes, q), two + count_q);
    spend(count + count_q);
    if (!may_grow(s->m, one, count, 0.0, 0.0) || !may_grow(s->m, two, count_q, 0.0, 0.0))
        return false;
    s->room[r] -= more;
    s->room[q] += more;
    set_routes(s, r, one, count, q, two, count_q);
    return true;
}

/* Exchanges a stretch from `a` on for one from behind a near customer on; whether that gained. */
static bool exchange_move(Matrix *m, Search *s, int a)
{
    int r = s->home[a], i = s->place[a], length = length_of(&s->routes, r), count;
    for (int step = 1; step >= -1; step -= 2) { /* stretches go forward or backward from there */
        const uint16_t *near = near_by(m, -step, a, s->near, &count);
        int p = stop_at(s, r, i - step), left = step == 1 ? length - i : i + 1;
        for (int size = 1; size <= left && size <= s->length; size++) {
            int e = stop_at(s, r, i + step * (size - 1)), after = stop_at(s, r, i + step * size);
            double mine = way(m, step, p, a) + way(m, step, e, after);
            for (int k = 0; k < count; k++) {
                int c = near[k], q = s->home[c], j = s->place[c];
                spend(4);
                if (way(m, step, c, a) >= mine)
                    break;
                if (q < 0 || q == r)
                    continue;
                int left_q = step == 1 ? length_of(&s->routes, q) - 1 - j : j;
                int d = stop_at(s, q, j + step);
                for (int size_q = 1; size_q <= left_q && size_q <= s->length; size_q++) {
                    int f = stop_at(s, q, j + step * size_q);
                    int y = stop_at(s, q, j + step * (size_q + 1));
                    double old = mine + (way(m, step, c, d) + way(m, step, f, y));
                    spend(3);
                    if (!(old - way(m, step, c, a) - way(m, step, e, y) - way(m, step, p, d) -
                              way(m, step, f, after) > MARGIN * old))
                        continue;
                    int low = step == 1 ? i : i - size + 1;
                    int low_q = step == 1 ? j + 1 : j - size_q;
                    if (!exchange_stretches(s, r, low, low + size, q, low_q, low_q + size_q))
                        continue;
                    queue_ends(&s->queue, (const int[]){a, e, p, after, c, d, f, y}, 8);
                    return true;
                }
            }
        }
    }
    return false;
}

FUNCTION(exchange, ROUTES + 2, ROUTES + 2, GIVEN, "routes", "customers", "length", "near", "moves")
{
    Search s = {0};
    if (!take_loaded_search(c, a, a + ROUTES + 3, &s) ||
        !take_count(a[ROUTES + 2], 2, 1, &s.length))
        return NULL;
    while (s.queue.count > 0 && s.moves > 0)
        s.moves -= exchange_move(c->m, &s, queue_take(&s.queue));
    return as_routes(&s.routes, true);
}
