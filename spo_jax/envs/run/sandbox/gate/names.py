"""The names that a program may use: builtins, modules with their members, and attributes.

Excluded: names that reach attributes by string (getattr, str.format, attrgetter,
methodcaller), make classes (type, namedtuple), open files, read unwritten memory
(numpy.empty is zeros; numpy.ndarray is for isinstance only), write to read-only arrays (a ufunc's
`at`), reveal identities (id), or keep state (numpy.mgrid[...] is a mutable constant).
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BUILTINS = _words(
    """
    abs all any bin bool callable chr complex dict divmod enumerate filter float frozenset hash hex
    int isinstance iter len list map max min next object ord pow print range repr reversed round
    set slice sorted str sum tuple zip
    ArithmeticError AssertionError AttributeError BaseException Exception FloatingPointError
    ImportError IndexError KeyError LookupError MemoryError NotImplementedError OverflowError
    RecursionError RuntimeError StopIteration TypeError ValueError ZeroDivisionError
    Ellipsis NotImplemented
    """
)

RNG = _words(
    """
    random choice choices sample shuffle randint randrange uniform gauss normalvariate
    lognormvariate expovariate betavariate gammavariate triangular paretovariate weibullvariate
    vonmisesvariate getrandbits
    integers permutation permuted normal standard_normal exponential standard_exponential gamma
    standard_gamma beta binomial poisson geometric lognormal laplace logistic gumbel pareto power
    rayleigh weibull multinomial dirichlet standard_t zipf chisquare
    """
)

_MATH = _words(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc
    exp exp2 expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf
    isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians
    remainder sin sinh sqrt tan tanh tau trunc ulp
    """
)

_LINALG = _words("norm inv det solve lstsq eig eigh eigvalsh svd qr pinv matrix_rank cholesky")

_NUMPY = _words(
    """
    array asarray ascontiguousarray zeros ones full empty zeros_like ones_like full_like empty_like
    arange linspace logspace geomspace eye identity diag diagonal diagflat tri tril triu
    tril_indices triu_indices diag_indices indices ix_ meshgrid copy fromiter
    argsort sort lexsort argmin argmax min max amin amax nanmin nanmax nanargmin nanargmax
    sum nansum mean nanmean median nanmedian std nanstd var nanvar average percentile
    nanpercentile quantile nanquantile ptp prod cumsum cumprod diff ediff1d gradient
    where nonzero flatnonzero argwhere count_nonzero select choose compress extract place putmask
    put copyto take take_along_axis put_along_axis searchsorted digitize bincount histogram
    unique concatenate stack hstack vstack dstack column_stack split array_split hsplit vsplit
    append insert delete repeat tile roll rollaxis moveaxis swapaxes transpose flip fliplr flipud
    rot90 reshape ravel squeeze expand_dims atleast_1d atleast_2d broadcast_to broadcast_arrays
    resize pad trim_zeros
    abs absolute fabs sqrt square cbrt exp exp2 expm1 log log2 log10 log1p power float_power
    sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh hypot degrees radians deg2rad rad2deg
    floor ceil rint round around fix trunc clip sign heaviside reciprocal negative positive
    add subtract multiply divide true_divide floor_divide mod remainder fmod divmod gcd lcm
    minimum maximum fmin fmax logical_and logical_or logical_not logical_xor bitwise_and bitwise_or
    bitwise_xor invert left_shift right_shift greater greater_equal less less_equal equal not_equal
    dot vdot inner outer matmul tensordot einsum kron cross trace convolve correlate interp cov
    corrcoef trapezoid
    isin intersect1d union1d setdiff1d setxor1d any all isnan isinf isfinite isclose allclose
    array_equal isscalar ndim shape size nan_to_num fill_diagonal apply_along_axis
    argpartition partition errstate linalg
    inf nan pi e newaxis ndarray generic integer signedinteger unsignedinteger floating number
    random bool_ int_ int8 int16 int32 int64 intp uint8 uint16 uint32 uint64 float16 float32 float64
    """
)

_ITERTOOLS = _words(
    """
    accumulate batched chain combinations combinations_with_replacement compress count cycle
    dropwhile filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee
    zip_longest
    """
)

_OPERATOR = _words(
    """
    abs add and_ concat contains countOf delitem eq floordiv ge getitem gt iadd index indexOf inv
    invert is_ is_not itemgetter le lshift lt mod mul ne neg not_ or_ pos pow rshift setitem sub
    truediv truth xor
    """
)

_ABC = _words(
    """
    Callable Collection Container Generator Hashable Iterable Iterator Mapping MutableMapping
    MutableSequence MutableSet Sequence
    """
)
_TYPING = _ABC | _words(
    """
    Any DefaultDict Deque Dict Final FrozenSet List Literal NoReturn Optional Set Tuple Type TypeVar
    Union
    """
)

# What makes or seeds a generator elsewhere: here it gives the rollout's own, or does nothing.
RNG_MAKERS = _words("Random seed default_rng RandomState Generator")
# What the gate puts around a set or a dict at the top of a program, which cannot name it.
FROZEN_SET, FROZEN_DICT = "__frozenset__", "__frozen_dict__"

MODULES: dict[str, frozenset[str]] = {
    "math": _MATH,
    "random": RNG | RNG_MAKERS,
    "numpy.random": RNG | RNG_MAKERS | _words("rand randn random_sample"),
    "numpy": _NUMPY,
    "numpy.linalg": _LINALG,
    "numpy.typing": _words("ArrayLike NDArray"),
    "heapq": _words("heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest"),
    "itertools": _ITERTOOLS,
    "functools": _words("cache cmp_to_key lru_cache partial reduce"),
    "collections": _words("ChainMap Counter OrderedDict abc defaultdict deque"),
    "collections.abc": _ABC | {"Set"},
    "bisect": _words("bisect bisect_left bisect_right insort insort_left insort_right"),
    "operator": _OPERATOR,
    "copy": _words("copy deepcopy"),
    "typing": _TYPING,
    "__future__": _words("annotations"),
}

ATTRIBUTES = (
    RNG
    | RNG_MAKERS
    | {"__getitem__"}  # x.__getitem__ is a key function that does what x[...] does
    | _LINALG
    | _words(
        """
        append extend insert remove pop index count sort reverse copy clear
        get items keys values setdefault update popitem fromkeys move_to_end
        add discard union intersection difference symmetric_difference issubset issuperset
        isdisjoint intersection_update difference_update symmetric_difference_update
        appendleft extendleft popleft rotate maxlen most_common elements total subtract
        default_factory new_child maps
        join split rsplit splitlines strip lstrip rstrip lower upper title capitalize startswith
        endswith find rfind replace zfill ljust rjust center isdigit isalpha isalnum isspace
        islower isupper partition rpartition swapcase
        bit_length bit_count conjugate real imag numerator denominator is_integer
        from_iterable start stop step
        shape size ndim T dtype itemsize nbytes
        sum min max mean std var prod ptp cumsum cumprod argmin argmax argsort argpartition
        astype tolist item reshape ravel flatten transpose swapaxes squeeze diagonal trace
        any all nonzero take put fill repeat searchsorted compress choose clip round dot flat
        reduce accumulate outer reduceat kind name eps tiny
        """
    )
)
