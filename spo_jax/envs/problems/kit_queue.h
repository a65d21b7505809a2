/* The queue of a local search: nodes wait in it once. */

typedef struct {
    int *nodes;          /* [size], a ring */
    unsigned char *here; /* [size] */
    int size;
    int first;
    int count;
} Queue;

/* At most as many moves as no search of `size` nodes makes that gets anywhere: one that goes round in
 * circles, which negative distances allow, ends. */
static long long most_moves(long long moves, int size)
{
    long long most = 1000 + 100 * (long long)size;
    return moves < most ? moves : most;
}

/* A queue of the nodes of a list, which are distinct and below `size`. */
static bool queue_new(Call *c, Queue *q, const List *list, int size)
{
    *q = (Queue){.size = size};
    q->nodes = room_for(c, (size_t)size, sizeof(int));
    q->here = zeros_for(c, (size_t)size, 1);
    if (q->nodes == NULL || q->here == NULL)
        return false;
    for (int i = 0; i < list->count; i++) {
        q->nodes[q->count++] = list->nodes[i];
        q->here[list->nodes[i]] = 1;
    }
    return true;
}

static int queue_take(Queue *q)
{
    int node = q->nodes[q->first];
    q->first = q->first + 1 < q->size ? q->first + 1 : 0;
    q->count--;
    q->here[node] = 0;
    return node;
}

static void queue_add(Queue *q, int node)
{
    if (q->here[node])
        return;
    int end = q->first + q->count;
    q->nodes[end < q->size ? end : end - q->size] = node;
    q->count++;
    q->here[node] = 1;
}
