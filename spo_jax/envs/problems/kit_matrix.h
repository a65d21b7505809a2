/* Matrices, with the neighbour lists that are computed once for each. */

enum { TILE = 64 };

struct Matrix {
    size_t references;
    int n;
    Py_buffer view;       /* of the array whose memory `rows` is; its obj is NULL for one of ours */
    const double *rows;   /* [n, n] */
    double *columns;      /* its transpose, or NULL where they are equal */
    uint16_t *near;       /* [n, DEPTH] nearest others from each node, or NULL; ... */
    unsigned char *known; /* [n]: whether near has its row; ... */
                          /* where columns differ, [2 n] each: then those nearest to each node */
    Pair *pairs;          /* [2, n] for sorting */
    void *limits;         /* of what its problem makes, or NULL */
};

static void matrix_release(Matrix *m)
{
    if (--m->references > 0)
        return;
    Py_buffer view = m->view;
    if (view.obj == NULL)
        free((void *)m->rows);
    free(m->columns);
    free(m->near);
    free(m->known);
    free(m->pairs);
    free(m->limits);
    free(m);
    if (view.obj != NULL)
        PyBuffer_Release(&view); /* last: this may run Python code */
}

/* A matrix of n rows, which `rows` has, or for which there is room in *room; NULL and an exception
 * if there is none. */
static Matrix *matrix_new(Py_ssize_t n, const double *rows, double **room)
{
    if (n > MAX_NODES) {
        refuse("dist has too many nodes");
        return NULL;
    }
    Matrix *m = calloc(1, sizeof(Matrix));
    if (m != NULL) {
        m->references = 1;
        m->n = (int)n;
        m->rows = rows;
        if (rows == NULL)
            m->rows = *room = malloc((size_t)n * (size_t)n * sizeof(double) + 1);
    }
    if (m == NULL || m->rows == NULL) {
        free(m);
        PyErr_NoMemory();
        return NULL;
    }
    return m;
}

/* Checks the entries, transposes if need be. On failure the matrix is released. */
static Matrix *matrix_finish(Matrix *m)
{
    size_t n = (size_t)m->n;
    bool symmetric = true;
    for (size_t i = 0; i < n * n; i++)
        if (!(fabs(m->rows[i]) <= 1e300)) { /* so no sum is NaN */
            matrix_release(m);
            refuse("dist has a number that is not finite, or above 1e300");
            return NULL;
        }
    for (size_t top = 0; symmetric && top < n; top += TILE) /* by tiles, which fit the cache */
        for (size_t left = 0; symmetric && left <= top; left += TILE)
            for (size_t i = top; i < n && i < top + TILE; i++)
                for (size_t j = left; j < i && j < left + TILE; j++)
                    if (memcmp(&m->rows[i * n + j], &m->rows[j * n + i], sizeof(double)) != 0)
                        symmetric = false;
    if (symmetric)
        return m;
    m->columns = malloc(n * n * sizeof(double));
    if (m->columns == NULL) {
        matrix_release(m);
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            m->columns[j * n + i] = m->rows[i * n + j];
    return m;
}

/* A matrix of the rows of a tuple. `constant`: whether all of it is tuples and floats, which
 * nobody can change. Runs Python code where it is not. */
static Matrix *matrix_of_rows(PyObject *items, bool *constant)
{
    Py_ssize_t n = PyTuple_Size(items);
    double *rows = NULL;
    Matrix *m = matrix_new(n, NULL, &rows);
    for (Py_ssize_t i = 0; m != NULL && i < n; i++) {
        PyObject *given = PyTuple_GetItem(items, i);
        *constant = *constant && PyTuple_CheckExact(given);
        PyObject *row = snapshot(given);
        bool fine = row != NULL && (PyTuple_Size(row) == n || refuse("dist is not square"));
        for (Py_ssize_t j = 0; fine && j < n; j++) {
            PyObject *entry = PyTuple_GetItem(row, j);
            *constant = *constant && PyFloat_CheckExact(entry);
            fine = take_float(entry, 0.0, &rows[i * n + j]);
        }
        Py_XDECREF(row);
        if (!fine) {
            matrix_release(m);
            return NULL;
        }
    }
    return m == NULL ? NULL : matrix_finish(m);
}

/* A matrix of an array of floats; NULL without an exception if `given` is none. `stays`: whether an
 * array that can only be read never changes, so that its memory is the matrix's. */
static Matrix *matrix_of_array(PyObject *given, bool stays)
{
    Py_buffer view;
    if (!PyObject_CheckBuffer(given))
        return NULL;
    if (PyObject_GetBuffer(given, &view, PyBUF_RECORDS_RO) != 0) {
        PyErr_Clear();
        return NULL;
    }
    Matrix *m = NULL;
    if (view.ndim == 2 && view.itemsize == sizeof(double) && view.format != NULL &&
        strcmp(view.format, "d") == 0 && view.shape != NULL && view.strides != NULL &&
        view.shape[0] == view.shape[1] && view.suboffsets == NULL) {
        Py_ssize_t n = view.shape[0];
        if (stays && view.readonly && view.strides[1] == sizeof(double) &&
            view.strides[0] == n * (Py_ssize_t)sizeof(double)) {
            m = matrix_new(n, view.buf, NULL);
            if (m != NULL) {
                m->view = view;
                return matrix_finish(m);
            }
        }
        double *rows = NULL;
        if (PyErr_Occurred() == NULL)
            m = matrix_new(n, NULL, &rows);
        for (Py_ssize_t i = 0; m != NULL && i < n; i++) {
            const char *row = (const char *)view.buf + i * view.strides[0];
            for (Py_ssize_t j = 0; j < n; j++)
                memcpy(&rows[i * n + j], row + j * view.strides[1], sizeof(double));
        }
    }
    PyBuffer_Release(&view);
    return m == NULL ? NULL : matrix_finish(m);
}

/* Converts `given` anew. `stays`: see matrix_of_array. */
static Matrix *matrix_of(PyObject *given, bool stays, bool *constant)
{
    *constant = false;
    Matrix *m = matrix_of_array(given, stays);
    if (m != NULL || PyErr_Occurred() != NULL)
        return m;
    *constant = PyTuple_CheckExact(given);
    PyObject *items = snapshot(given);
    if (items == NULL)
        return NULL;
    m = matrix_of_rows(items, constant);
    Py_DECREF(items);
    return m;
}

static inline double edge(const Matrix *m, int i, int j)
{
    return m->rows[(size_t)i * (size_t)m->n + (size_t)j];
}

static inline const double *row_of(const Matrix *m, int i)
{
    return m->rows + (size_t)i * (size_t)m->n;
}

static inline const double *column_of(const Matrix *m, int i)
{
    return (m->columns != NULL ? m->columns : m->rows) + (size_t)i * (size_t)m->n;
}

/* Whether some way is not as long as the way back. */
static inline bool directed(const Matrix *m)
{
    return m->columns != NULL;
}

/* From i to j for a step of 1, from j to i for one of -1. */
static inline double way(const Matrix *m, int step, int i, int j)
{
    return step == 1 ? edge(m, i, j) : edge(m, j, i);
}

/* How many neighbour lists it has. */
static inline size_t lists_of(const Matrix *m)
{
    return directed(m) ? 2 * (size_t)m->n : (size_t)m->n;
}

/* Makes room for the neighbour lists. */
static bool make_near(Matrix *m)
{
    if (m->near != NULL)
        return true;
    size_t n = (size_t)m->n, lists = lists_of(m);
    uint16_t *near = malloc(lists * DEPTH * sizeof(uint16_t) + 1);
    unsigned char *known = calloc(lists + 1, 1);
    Pair *pairs = malloc(2 * n * sizeof(Pair) + 1);
    if (near == NULL || known == NULL || pairs == NULL) {
        free(near);
        free(known);
        free(pairs);
        PyErr_NoMemory();
        return false;
    }
    m->near = near;
    m->known = known;
    m->pairs = pairs;
    return true;
}

/* Matrices known by their objects, which are held, so that no other object has their address:
 * the last constant one at 0, until `forget`, then those that `prepare` pinned. */
enum { KEPT = 9 };
static struct {
    PyObject *object;
    Matrix *m;
} kept[KEPT];

static void keep(int at, PyObject *object, Matrix *m)
{
    PyObject *old_object = kept[at].object;
    Matrix *old = kept[at].m;
    Py_INCREF(object);
    m->references++;
    kept[at].object = object;
    kept[at].m = m;
    if (old != NULL)
        matrix_release(old);
    Py_XDECREF(old_object); /* last: this may run Python code */
}

/* The matrix of a call. */
static bool take_matrix(Call *c, PyObject *given)
{
    bool constant;
    for (int i = 0; i < KEPT; i++)
        if (kept[i].object == given) {
            c->m = kept[i].m;
            c->m->references++;
            return true;
        }
    c->m = matrix_of(given, false, &constant);
    if (c->m != NULL && constant)
        keep(0, given, c->m);
    return c->m != NULL;
}

/* Forgets what calls have left since `prepare`: the last constant matrix, and neighbour lists, whose
 * room stays. So a rollout pays for all that it uses, in whatever company it runs. */
static PyObject *forget(PyObject *module, PyObject *nothing_given)
{
    (void)module;
    (void)nothing_given;
    PyObject *object = kept[0].object;
    Matrix *m = kept[0].m;
    kept[0].object = NULL;
    kept[0].m = NULL;
    for (int i = 1; i < KEPT; i++)
        if (kept[i].m != NULL && kept[i].m->known != NULL)
            memset(kept[i].m->known, 0, lists_of(kept[i].m));
    if (m != NULL)
        matrix_release(m);
    Py_XDECREF(object);
    Py_RETURN_NONE;
}

/* Drops what `prepare` made of an object. */
static PyObject *release_matrix(PyObject *module, PyObject *object)
{
    (void)module;
    for (int i = 1; i < KEPT; i++)
        if (kept[i].object == object) {
            Matrix *m = kept[i].m;
            kept[i].object = NULL;
            kept[i].m = NULL;
            matrix_release(m);
            Py_DECREF(object);
        }
    Py_RETURN_NONE;
}

FUNCTION(prepare, 1, 1, "dist")
{
    static int next = 0;
    bool constant;
    c->m = matrix_of(a[0], true, &constant);
    if (c->m == NULL || !make_near(c->m)) /* no program's memory pays for the lists */
        return NULL;
    int place = 1 + next;
    for (int i = 1; i < KEPT; i++)
        if (kept[i].object == a[0])
            place = i;
    if (place == 1 + next)
        next = (next + 1) % (KEPT - 1);
    keep(place, a[0], c->m);
    Py_RETURN_NONE;
}

/* The list `at` of those kept: the nodes with the shortest ways in `lengths`, [n], shortest first,
 * [min(count, DEPTH, those there are)]. */
static const uint16_t *near_list(Matrix *m, size_t at, const double *lengths, int node,
                                 long long count, int *found)
{
    uint16_t *near = m->near + at * DEPTH;
    int others = m->n - FIRST - (node >= FIRST ? 1 : 0);
    int kept_here = others < DEPTH ? others : DEPTH;
    if (!m->known[at]) {
        const long long before_it = spent; /* a list is made once, by whichever call comes first */
        int i = 0;
        for (int other = FIRST; other < m->n; other++)
            if (other != node)
                m->pairs[i++] = (Pair){lengths[other], other, other};
        first_pairs(m->pairs, m->pairs + m->n, others, kept_here);
        for (i = 0; i < kept_here; i++)
            near[i] = (uint16_t)m->pairs[i].node;
        m->known[at] = 1;
        spent = before_it;
    }
    *found = count < kept_here ? (int)count : kept_here;
    return near;
}

/* The others nearest from `node`. */
static const uint16_t *near_of(Matrix *m, int node, long long count, int *found)
{
    return near_list(m, (size_t)node, row_of(m, node), node, count, found);
}

/* The others nearest to `node`: the same list where no way differs from the way back. */
static const uint16_t *near_to(Matrix *m, int node, long long count, int *found)
{
    size_t at = directed(m) ? (size_t)m->n + (size_t)node : (size_t)node;
    return near_list(m, at, column_of(m, node), node, count, found);
}

/* near_of for a step of 1, near_to for one of -1. */
static const uint16_t *near_by(Matrix *m, int step, int node, long long count, int *found)
{
    return step == 1 ? near_of(m, node, count, found) : near_to(m, node, count, found);
}

/* The `count` of nodes nearest to `node` in `out`, [those there are]; their number, or -1. */
static int nearest_of(Call *c, int node, const int *nodes, int length, long long count, int *out)
{
    Pair *pairs = room_for(c, 2 * (size_t)length, sizeof(Pair));
    if (pairs == NULL)
        return -1;
    const double *row = row_of(c->m, node);
    spend(length);
    for (int i = 0; i < length; i++)
        pairs[i] = (Pair){row[nodes[i]], i, nodes[i]};
    int wanted = count < length ? (int)count : length;
    first_pairs(pairs, pairs + length, length, wanted);
    for (int i = 0; i < wanted; i++)
        out[i] = pairs[i].node;
    return wanted;
}

FUNCTION(nearest, 4, 4, "dist", "node", "nodes", "count")
{
    int node;
    List list;
    long long count;
    if (!take_matrix(c, a[0]) || !take_node(a[1], 0, c->m->n, &node) ||
        !take_list(c, a[2], 0, &list) || !take_count(a[3], 0, 0, &count))
        return NULL;
    unsigned char *seen = zeros_for(c, (size_t)c->m->n, 1);
    if (seen == NULL || !mark_nodes(seen, list.nodes, list.count, 0, c->m->n))
        return NULL;
    int *out = room_for(c, (size_t)list.count, sizeof(int));
    int found = out == NULL ? -1 : nearest_of(c, node, list.nodes, list.count, count, out);
    return found < 0 ? NULL : as_list(out, found);
}

FUNCTION(neighbors, 2, 2, "dist", "k")
{
    long long k;
    if (!take_matrix(c, a[0]) || !take_count(a[1], 0, 0, &k) ||
        !make_near(c->m))
        return NULL;
    PyObject *all = PyTuple_New(c->m->n);
    for (int node = 0; all != NULL && node < c->m->n; node++) {
        int count;
        const uint16_t *near = near_of(c->m, node, k, &count);
        PyObject *row = PyTuple_New(count);
        spend(ITEM * (long long)count);
        for (int i = 0; row != NULL && i < count; i++) {
            PyObject *other = PyLong_FromLong(near[i]);
            if (other == NULL)
                Py_CLEAR(row);
            else
                PyTuple_SetItem(row, i, other);
        }
        if (row == NULL)
            Py_CLEAR(all);
        else
            PyTuple_SetItem(all, node, row);
    }
    return all;
}
