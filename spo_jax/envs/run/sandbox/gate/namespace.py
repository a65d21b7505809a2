"""The objects behind the names that a program may use.

Programs get namespaces of ours with only the listed members, never a real module. The random
generator has both interfaces, `random.Random` and `numpy.random.Generator`, from one seed. Programs
cannot read its state or reseed it.
"""

import bisect
import builtins
import collections
import collections.abc
import copy
import functools
import heapq
import itertools
import math
import operator
import random
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from spo_jax.constants import KIT
from spo_jax.envs.run.sandbox.gate.names import (
    BUILTINS,
    FROZEN_DICT,
    FROZEN_SET,
    MODULES,
    RNG,
    RNG_MAKERS,
)


class Rng:
    """Random numbers for one rollout; see `make_rng`."""

    __slots__ = tuple(sorted(RNG | RNG_MAKERS))

    def __copy__(self) -> "Rng":
        return self

    def __deepcopy__(self, memo: dict) -> "Rng":
        return self

    def __hash__(self) -> int:
        return 0  # not its address

    def __repr__(self) -> str:
        return "rng"


class ArraysNeeded(BaseException):
    """A program classified as free of arrays drew more than a plain number."""


def make_rng(seed: int, *, arrays: bool = True) -> Rng:
    """A generator with both interfaces from one 64-bit seed.

    Scalars come from a Mersenne twister, arrays from a PCG64 made on first use. Where the
    interfaces
    disagree, the standard library wins: `randint` includes its upper end; `integers` does not.
    arrays: with False every NumPy draw that is no plain number raises ArraysNeeded.
    """
    core = random.Random(seed)
    unit = core.random

    @functools.cache
    def generator() -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(seed ^ 0x9E3779B97F4A7C15))

    def given(value: Any) -> Any:
        if arrays or type(value) in (int, float):
            return value
        raise ArraysNeeded

    def random_(size=None):
        return unit() if size is None else given(generator().random(size))

    def choice(seq, size=None, replace=True, p=None, axis=0, shuffle=True):
        if size is None and p is None:
            if type(seq) is int or isinstance(seq, np.integer):
                return int(unit() * seq)
            count = len(seq)
            if not count:
                raise IndexError("cannot choose from an empty sequence")
            return seq[int(unit() * count)]
        return given(generator().choice(seq, size, replace, p, axis, shuffle))

    def sample(population, k, *, counts=None):
        if counts is not None:
            return core.sample(population, k, counts=counts)
        if isinstance(population, set | frozenset | dict):
            raise TypeError("sample needs a sequence: sorted(...) makes one of a set")
        pool = list(population)
        count = len(pool)
        k = operator.index(k)
        if not 0 <= k <= count:
            raise ValueError("sample larger than population or negative")
        for i in range(k):
            j = i + int(unit() * (count - i))
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:k]

    def shuffle(x, axis=0):
        if type(x) is np.ndarray:
            generator().shuffle(x, axis)
            return
        for i in range(len(x) - 1, 0, -1):
            j = int(unit() * (i + 1))
            x[i], x[j] = x[j], x[i]

    def randint(a, b=None, size=None):
        if size is not None:
            low, high = (0, a) if b is None else (a, b)
            return given(generator().integers(low, high, size, endpoint=True))
        if b is None:
            raise TypeError("randint needs two bounds")
        a, b = operator.index(a), operator.index(b)
        if b < a:
            raise ValueError(f"empty range for randint ({a}, {b})")
        return a + int(unit() * (b - a + 1))

    def uniform(low=0.0, high=1.0, size=None):
        if size is None:
            return low + (high - low) * unit()
        return given(generator().uniform(low, high, size))

    def integers(low, high=None, size=None, dtype=np.int64, endpoint=False):
        if size is not None or isinstance(low, np.ndarray) or isinstance(high, np.ndarray):
            return given(generator().integers(low, high, size, dtype, endpoint))
        if high is None:
            low, high = 0, low
        count = operator.index(high) - operator.index(low) + bool(endpoint)
        if count <= 0:
            raise ValueError("low >= high")
        return operator.index(low) + int(unit() * count)

    ours = {
        "random": random_,
        "choice": choice,
        "sample": sample,
        "shuffle": shuffle,
        "randint": randint,
        "uniform": uniform,
        "integers": integers,
    }

    # Plain functions, not bound methods: copying one must not copy the generator behind it.
    def numpy_method(name: str) -> Any:
        return lambda *args, **kwargs: given(getattr(generator(), name)(*args, **kwargs))

    def standard_method(name: str) -> Any:
        return lambda *args, **kwargs: getattr(core, name)(*args, **kwargs)

    rng = Rng()
    for name in RNG_MAKERS:
        made = None if name == "seed" else rng
        object.__setattr__(rng, name, lambda *ignored, made=made, **named: made)
    for name in RNG:
        if name in ours:
            method = ours[name]
        elif name in _STANDARD:
            method = standard_method(name)
        else:
            method = numpy_method(name)
        object.__setattr__(rng, name, method)
    return rng


_STANDARD = {name for name in RNG if hasattr(random.Random, name)}


class _Hint:
    """Replaces a name of `typing` that only annotations use."""

    __slots__ = ()

    def __getitem__(self, item: object) -> "_Hint":
        return self

    def __or__(self, other: object) -> "_Hint":
        return self

    __ror__ = __or__

    def __call__(self, *args: object, **kwargs: object) -> "_Hint":
        return self


_HINT = _Hint()
_CONCRETE = {"List": list, "Dict": dict, "Tuple": tuple, "Set": set, "FrozenSet": frozenset}
_CONCRETE |= {"Deque": collections.deque, "DefaultDict": collections.defaultdict}


def _typing_member(name: str) -> object:
    return _CONCRETE.get(name) or getattr(collections.abc, name, _HINT)


def _members(module: str, source: object) -> SimpleNamespace:
    """The listed members that this Python or NumPy has."""
    names = (n for n in sorted(MODULES[module]) if hasattr(source, n))
    return SimpleNamespace(**{name: getattr(source, name) for name in names})


def _numpy() -> SimpleNamespace:
    members = _members("numpy", np)
    members.linalg = _members("numpy.linalg", np.linalg)
    del members.random  # `make_globals` has the rollout's
    # Unwritten memory would make results depend on earlier rollouts.
    members.empty, members.empty_like = np.zeros, np.zeros_like
    # Floating-point warnings are off in a child; a real errstate could hold a callback.
    members.errstate = _NoErrstate
    return members


class _NoErrstate:
    def __init__(self, **ignored: object):
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


_NUMPY = _numpy()
_COLLECTIONS = _members("collections", collections)
_COLLECTIONS.abc = _members("collections.abc", collections.abc)
_SHIMS: dict[str, object] = {
    "math": _members("math", math),
    "numpy": _NUMPY,
    "numpy.linalg": _NUMPY.linalg,
    "numpy.typing": SimpleNamespace(ArrayLike=_HINT, NDArray=_HINT),
    "heapq": _members("heapq", heapq),
    "itertools": _members("itertools", itertools),
    "functools": _members("functools", functools),
    "collections": _COLLECTIONS,
    "collections.abc": _COLLECTIONS.abc,
    "bisect": _members("bisect", bisect),
    "operator": _members("operator", operator),
    "copy": _members("copy", copy),
    "typing": SimpleNamespace(**{n: _typing_member(n) for n in sorted(MODULES["typing"])}),
    "__future__": SimpleNamespace(annotations=None),
}


def make_globals(rng: Rng, kit: SimpleNamespace | None = None) -> dict[str, Any]:
    """A fresh module namespace whose `import random` is `rng`, and whose `import lns` is `kit`.

    `numpy.random` is `rng` too, with the names and the upper ends that NumPy's functions have.
    """
    own: dict[str, SimpleNamespace] = {}

    def import_(name, globals=None, locals=None, fromlist=(), level=0):
        if type(fromlist) is list:
            # NumPy's C code fetching a module of its own: an import statement passes a tuple or
            # None, and no program can name this function.
            return builtins.__import__(name, globals, locals, fromlist, level)
        if name == "random":
            return rng
        if level == 0 and name.partition(".")[0] == "numpy" and "numpy.random" not in own:
            own["numpy.random"] = _numpy_random(rng)
            own["numpy"] = SimpleNamespace(**vars(_NUMPY), random=own["numpy.random"])
        if level == 0 and name in own:
            return own[name] if fromlist else own["numpy"]
        shim = (kit if name == KIT else _SHIMS.get(name)) if level == 0 else None
        if shim is None:
            raise ImportError(f"module {name!r} is not available")
        first = name.split(".")[0]
        return shim if fromlist or "." not in name else own.get(first) or _SHIMS[first]

    return {"__builtins__": {**_BUILTINS, "__import__": import_}, "__name__": "program"}


def _numpy_random(rng: Rng) -> SimpleNamespace:
    members = {name: getattr(rng, name) for name in (*RNG, *RNG_MAKERS)}

    def rand(*size):
        return members["random"](size or None)

    def randn(*size):
        return members["normal"](size=size or None)

    own = {"randint": members["integers"], "rand": rand, "randn": randn}
    return SimpleNamespace(**members | own, random_sample=members["random"])


_BUILTINS = {name: getattr(builtins, name) for name in BUILTINS}
_BUILTINS |= {FROZEN_SET: frozenset, FROZEN_DICT: MappingProxyType}
_BUILTINS["print"] = lambda *args, **kwargs: None  # harmless, without output
