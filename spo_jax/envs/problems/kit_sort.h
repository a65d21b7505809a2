/* Sorting by distance or by savings, with ties in the order of the places. */

typedef struct {
    double key;
    int place; /* tells equal keys apart: the lower comes first */
    int node;
} Pair;

static inline bool before(const Pair *x, const Pair *y)
{
    return x->key < y->key || (x->key == y->key && x->place < y->place);
}

/* Sorts pairs [count]; `spare` has the same room. O(count log count). */
static void sort_pairs(Pair *pairs, Pair *spare, int count)
{
    enum { RUN = 12 };
    spend(RUN * (long long)count / 2);
    for (int low = 0; low < count; low += RUN) {
        int high = low + RUN < count ? low + RUN : count;
        for (int i = low + 1; i < high; i++) {
            Pair pair = pairs[i];
            int j = i;
            for (; j > low && before(&pair, &pairs[j - 1]); j--)
                pairs[j] = pairs[j - 1];
            pairs[j] = pair;
        }
    }
    Pair *from = pairs, *to = spare;
    for (int64_t width = RUN; width < count; width *= 2) {
        spend(2 * (long long)count);
        for (int64_t low = 0; low < count; low += 2 * width) {
            int middle = (int)(low + width < count ? low + width : count);
            int high = (int)(low + 2 * width < count ? low + 2 * width : count);
            int i = (int)low, j = middle;
            for (int k = (int)low; k < high; k++) {
                bool left = j >= high || (i < middle && before(&from[i], &from[j]));
                to[k] = left ? from[i++] : from[j++];
            }
        }
        Pair *other = from;
        from = to;
        to = other;
    }
    if (from != pairs)
        memcpy(pairs, from, (size_t)count * sizeof(Pair));
}

/* Brings the `wanted` first pairs to the front, in any order; the places differ. */
static void split_pairs(Pair *pairs, Pair *spare, int count, int wanted)
{
    int low = 0, high = count, steps = 0;
    while (high - low > 12 && low < wanted && wanted < high) {
        spend(2 * (long long)(high - low));
        if (++steps > 60) { /* an order made to be slow */
            sort_pairs(pairs + low, spare, high - low);
            return;
        }
        Pair a = pairs[low], b = pairs[low + (high - low) / 2], d = pairs[high - 1];
        Pair pivot = before(&a, &b) ? (before(&b, &d) ? b : before(&a, &d) ? d : a)
                                    : (before(&a, &d) ? a : before(&b, &d) ? d : b);
        int i = low, j = high - 1;
        while (i <= j) {
            while (before(&pairs[i], &pivot))
                i++;
            while (before(&pivot, &pairs[j]))
                j--;
            if (i <= j) {
                Pair other = pairs[i];
                pairs[i++] = pairs[j];
                pairs[j--] = other;
            }
        }
        if (wanted <= j + 1)
            high = j + 1;
        else if (wanted >= i)
            low = i;
        else
            return;
    }
    if (low < wanted && wanted < high)
        sort_pairs(pairs + low, spare, high - low);
}

/* Brings the `wanted` first pairs to the front, sorted; the others may be overwritten. */
static void first_pairs(Pair *pairs, Pair *spare, int count, int wanted)
{
    enum { FEW = 8 };
    if (wanted > 0 && wanted < count && wanted <= FEW) {
        spend(count);
        for (int i = 1; i < count; i++) {
            Pair pair = pairs[i];
            int j = i < wanted ? i : wanted;
            if (j == wanted && !before(&pair, &pairs[--j]))
                continue;
            for (; j > 0 && before(&pair, &pairs[j - 1]); j--)
                pairs[j] = pairs[j - 1];
            pairs[j] = pair;
        }
        return;
    }
    if (wanted >= count) {
        sort_pairs(pairs, spare, count);
        return;
    }
    split_pairs(pairs, spare, count, wanted);
    sort_pairs(pairs, spare, wanted);
}

/* The pair of rank `rank`, from 0. */
static Pair ranked_pair(Pair *pairs, Pair *spare, int count, int rank)
{
    split_pairs(pairs, spare, count, rank + 1);
    int last = 0;
    spend(rank);
    for (int i = 1; i <= rank; i++)
        if (before(&pairs[last], &pairs[i]))
            last = i;
    return pairs[last];
}

/* A place below `count` by one draw u: count * u ** power. */
static bool draw_rank(Call *c, int count, double power, int *rank)
{
    double u;
    if (!(power > 0))
        return refuse("power is not above 0");
    if (!draw(c, &u))
        return false;
    double place = count * pow(u, power);
    *rank = place < count - 1 ? (int)place : count - 1;
    return true;
}

/* --- worst removal ---------------------------------------------------------------------------- */

/* What is left of a sequence, as a linked list, and sorted by keys that change in a few places. */
typedef struct {
    Pair *pairs; /* [2, n]: sorted; the place is the index in the sequence */
    double *key; /* [n] */
    int *last;   /* [n] */
    int *next;
    int count;
} Ranked;

static bool ranked_new(Call *c, Ranked *all, int n)
{
    all->pairs = room_for(c, 2 * (size_t)n, sizeof(Pair));
    all->key = room_for(c, (size_t)n, sizeof(double));
    all->last = room_for(c, 2 * (size_t)n, sizeof(int));
    all->next = all->last == NULL ? NULL : all->last + n;
    all->count = 0;
    return all->pairs != NULL && all->key != NULL && all->last != NULL;
}

static void ranked_add(Ranked *all, int i, double key)
{
    all->key[i] = key;
    all->pairs[all->count++] = (Pair){key, i, i};
}

static void ranked_sort(Ranked *all)
{
    sort_pairs(all->pairs, all->pairs + all->count, all->count);
}

/* How many pairs come before that of index i with its key. */
static int ranked_find(const Ranked *all, int i, double key)
{
    Pair pair = {key, i, i};
    int low = 0, high = all->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (before(&all->pairs[middle], &pair))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Takes out the pair of a rank: its index. */
static int ranked_take(Ranked *all, int rank)
{
    int i = all->pairs[rank].place;
    all->count--;
    spend(2 + (all->count - rank) / 4);
    memmove(&all->pairs[rank], &all->pairs[rank + 1],
            (size_t)(all->count - rank) * sizeof(Pair));
    return i;
}

static void ranked_move(Ranked *all, int i, double key)
{
    ranked_take(all, ranked_find(all, i, all->key[i]));
    int rank = ranked_find(all, i, key);
    spend(20 + (all->count - rank) / 4);
    memmove(&all->pairs[rank + 1], &all->pairs[rank],
            (size_t)(all->count - rank) * sizeof(Pair));
    all->pairs[rank] = (Pair){key, i, i};
    all->key[i] = key;
    all->count++;
}
