"""Call everything of NumPy that a program can reach, over memory full of poison, and look for it.

`python poisoned.py zeroed|plain CALLS SEED` prints a line for each result that held poison, and at
last how many calls returned; CALLS are wanted of each function. A script of its own: it changes
NumPy's allocator.
"""

import ctypes
import random
import sys
import warnings
from collections.abc import Callable

import numpy as np

from spo_jax.envs.run.sandbox.gate.names import ATTRIBUTES, MODULES
from spo_jax.envs.run.sandbox.gate.namespace import make_rng
from spo_jax.envs.run.sandbox.memory import zero_array_memory

BYTE = 0x4B
POISON = bytes([BYTE]) * 4  # no input holds it
SIZES = [*range(8, 600, 8), *range(640, 5200, 160), 1 << 13, 1 << 15]
KINDS = ["bool", "int8", "int64", "float32", "float64", "complex128", "U3", "S5", "V8", "object"]
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def poison() -> None:
    """Fill and free blocks of all sizes: NumPy's cache, the C library's and Python's own."""
    arrays = [np.full(size, BYTE, np.uint8) for size in SIZES for _ in range(3)]
    del arrays
    blocks = [libc.malloc(size) for size in SIZES for _ in range(3)]
    for block, size in zip(blocks, (size for size in SIZES for _ in range(3)), strict=True):
        ctypes.memset(block, BYTE, size)
    for block in blocks:
        libc.free(block)
    small = [bytes([BYTE]) * size for size in range(1, 480, 8) for _ in range(4)]
    del small


def holds_poison(result: object, depth: int = 0) -> bool:
    if isinstance(result, tuple | list) and depth < 3:
        return any(holds_poison(each, depth + 1) for each in result)
    if isinstance(result, np.ndarray | np.generic):
        array = np.asarray(result)
        if array.dtype.hasobject:
            return any(holds_poison(each, depth + 1) for each in array.ravel().tolist())
        return POISON in np.ascontiguousarray(array).tobytes()
    return isinstance(result, bytes | str) and "K" * 4 in str(result)


def inputs(draw: random.Random) -> list[object]:
    """Fresh arguments of many kinds: empty axes, masks, structures, mixed types, wrong shapes."""
    shapes = [(), (0,), (1,), (3,), (7,), (50,), (0, 3), (3, 0), (3, 3), (4, 7), (2, 3, 4), (600,)]
    found: list[object] = []
    for _ in range(6):
        shape = draw.choice(shapes)
        kind = draw.choice(KINDS)
        values = np.arange(1, 1 + int(np.prod(shape)))
        found.append((values % 2 == 0 if kind == "bool" else values).astype(kind).reshape(shape))
    square = np.arange(9.0).reshape(3, 3) + np.eye(3)
    found += [square, square @ square.T, np.zeros((3, 3)), np.ones((0, 0)), np.full(3, np.nan)]
    record = np.zeros(3, [("a", "i1"), ("b", "f8")])
    spaced = {"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [1, 24], "itemsize": 64}
    found += [record, np.zeros(2, spaced), np.zeros(5)[::2], np.zeros((4, 4)).T]
    found += [0, 1, 2, 3, -1, 2.5, None, True, "empty", "raw", "clip", (2, 3), [1, 2, 0], [[1, 2]]]
    found += [slice(1, 3), "f4", "i8", ">f8", "U4", "V16", "T", object, (0, 40), ((1, 2), (0, 9))]
    return found


def keywords(draw: random.Random, things: list[object]) -> dict[str, object]:
    mask = draw.choice([np.zeros(3, bool), np.zeros((3, 3), bool), np.zeros(50, bool), False])
    pool: dict[str, object] = {
        "where": mask,
        "out": draw.choice([None, (None,), (None, None), np.zeros(3), np.zeros((3, 3), "f4")]),
        "axis": draw.choice([0, 1, -1, None, (0, 1)]),
        "mode": draw.choice(["empty", "clip", "wrap", "raise", "reduced", "raw", "r", "constant"]),
        "initial": 0.0,
        "keepdims": True,
        "dtype": draw.choice(["f4", "f8", "i8", "V12", "U7", "T", object, bool]),
        "casting": "unsafe",
        "order": draw.choice("CFAK"),
        "subok": draw.choice([True, False]),
        "full_matrices": draw.choice([True, False]),
        "compute_uv": False,
        "kind": "stable",
        "fill_value": 0,
        "shape": (2, 5),
        "axes": draw.choice([[(0,), (0,), ()], None]),
        "signature": draw.choice(["dd->d", "ff->f"]),
        "method": draw.choice(["linear", "nearest"]),
        "size": draw.choice([3, (2, 3), 0]),
        "return_index": True,
        "weights": draw.choice(things),
        "minlength": 40,
        "pad_width": 9,
    }
    names = draw.sample(sorted(pool), draw.choice([0, 0, 0, 1, 1, 2, 3]))
    return {name: pool[name] for name in names}


def reachable() -> list[tuple[str, object]]:
    found = [(f"numpy.{name}", getattr(np, name, None)) for name in sorted(MODULES["numpy"])]
    linalg = sorted(MODULES["numpy.linalg"])
    found += [(f"linalg.{name}", getattr(np.linalg, name, None)) for name in linalg]
    for name, function in list(found):
        if isinstance(function, np.ufunc):
            for method in ("reduce", "accumulate", "outer", "reduceat"):
                found.append((f"{name}.{method}", getattr(function, method)))
    for name in sorted(ATTRIBUTES):
        if callable(getattr(np.ndarray, name, None)):
            found.append((f"ndarray.{name}", getattr(np.ndarray, name)))
    rng = make_rng(3)
    names = "integers permutation permuted normal choice multinomial dirichlet shuffle random"
    found += [(f"rng.{name}", getattr(rng, name)) for name in names.split()]
    return [(name, f) for name, f in found if callable(f) and name != "numpy.errstate"]


def chosen() -> list[tuple[str, Callable[[], object]]]:
    """Calls that random arguments seldom make, with the paths most likely to skip an entry."""
    ones, square, gaps = np.ones(7), np.eye(4) + np.ones((4, 4)), np.zeros(7, bool)
    record = np.zeros(5, [("a", "i1"), ("b", "f8"), ("c", "U3")])
    nothing = np.zeros((3, 0))
    calls: list[Callable[[], object]] = [
        lambda: np.pad(ones, 30, mode="empty"),
        lambda: np.pad(square, ((1, 2), (3, 4)), "empty"),
        lambda: np.add(ones, 1, where=gaps),
        lambda: np.add(ones, 1, where=gaps, out=None),
        lambda: np.add(ones, 1, where=gaps, out=(None,)),
        lambda: np.divmod(ones, 1, where=gaps),
        lambda: np.frexp(ones, where=gaps) if hasattr(np, "frexp") else None,
        lambda: np.add.outer(ones, ones, where=False),
        lambda: np.add(ones, 1, where=gaps, dtype="f4", casting="unsafe"),
        lambda: np.add.reduce(np.ones((3, 7)), axis=0, where=gaps),
        lambda: np.mean(nothing, axis=1),
        lambda: np.median(nothing, axis=1),
        lambda: np.std(np.ones((3, 7)), axis=0, where=gaps),
        lambda: np.nanmedian(np.full((3, 4), np.nan), axis=0),
        lambda: np.add.reduceat(ones, [3, 1, 6, 6]),
        lambda: np.matmul(np.zeros((3, 0)), np.zeros((0, 4))),
        lambda: np.dot(np.zeros((3, 0)), np.zeros((0, 4))),
        lambda: np.einsum("ij,jk->ik", np.zeros((3, 0)), np.zeros((0, 4))),
        lambda: np.einsum("ii->i", square),
        lambda: np.tensordot(np.zeros((3, 0)), np.zeros((0, 4)), 1),
        lambda: np.inner(np.zeros((3, 0)), np.zeros((5, 0))),
        lambda: np.kron(square, ones),
        lambda: np.resize(ones, 50),
        lambda: np.resize(np.zeros(0), 50),
        lambda: np.choose(np.array([0, 1, 9]), [ones[:3], ones[:3]], mode="clip"),
        lambda: np.choose(np.array([0, 1]), [record[:2], record[:2]]),
        lambda: np.take(ones, [0, 20], mode="clip", out=np.zeros(2)),
        lambda: np.select([gaps], [ones]),
        lambda: np.compress([True, False, True], square, axis=0),
        lambda: np.insert(ones, [1, 2], 3),
        lambda: np.fromiter((k for k in range(70)), float),
        lambda: np.fromiter((k for k in range(3)), float, count=3),
        lambda: np.histogram(ones, bins=50),
        lambda: np.bincount([1, 2], minlength=60),
        lambda: np.interp([0.5, 9.0], ones.cumsum(), ones),
        lambda: np.convolve(ones, ones, "full"),
        lambda: np.correlate(ones, ones[:2], "same"),
        lambda: np.gradient(ones),
        lambda: np.cross([1, 2], [3, 4]) if np.__version__ < "2.3" else None,
        lambda: np.cross(square[:, :3], square[:, 1:]),
        lambda: np.unique(record, return_index=True, return_inverse=True, return_counts=True),
        lambda: np.concatenate([record, record]).tolist(),
        lambda: record.astype([("c", "U9"), ("b", "f4"), ("z", "V8")]),
        lambda: np.zeros(3, "V24").tolist(),
        lambda: np.empty(9, "V24").tolist(),
        lambda: np.empty((3, 9)),
        lambda: np.empty_like(square),
        lambda: np.empty_like(record).tolist(),
        lambda: np.array(["a", "bcd"]).astype("U40").tolist(),
        lambda: np.array(["a", "bcd"]).astype("S40").astype("V40").tolist(),
        lambda: np.linalg.lstsq(np.ones((2, 6)), np.ones(2)),
        lambda: np.linalg.lstsq(np.ones((6, 2)), np.ones(6)),
        lambda: np.linalg.lstsq(np.zeros((0, 3)), np.zeros(0)),
        lambda: np.linalg.lstsq(np.zeros((4, 3)), np.ones((4, 2))),
        lambda: np.linalg.svd(np.ones((2, 6))),
        lambda: np.linalg.svd(np.zeros((0, 6))),
        lambda: np.linalg.svd(np.full((3, 3), np.nan)),
        lambda: np.linalg.qr(np.ones((6, 2)), mode="complete"),
        lambda: np.linalg.qr(np.ones((2, 6)), mode="raw"),
        lambda: np.linalg.qr(np.zeros((0, 6)), mode="complete"),
        lambda: np.linalg.eig(np.zeros((3, 3))),
        lambda: np.linalg.eig(square),
        lambda: np.linalg.eigh(square),
        lambda: np.linalg.eigvalsh(square),
        lambda: np.linalg.cholesky(square @ square.T),
        lambda: np.linalg.inv(square),
        lambda: np.linalg.inv(np.zeros((0, 0))),
        lambda: np.linalg.solve(square, np.ones((4, 0))),
        lambda: np.linalg.pinv(np.zeros((0, 3))),
        lambda: np.linalg.det(np.zeros((5, 0, 0))),
        lambda: make_rng(1).permuted(ones, axis=0),
        lambda: make_rng(1).multinomial(0, [0.5, 0.5], size=7),
        lambda: make_rng(1).dirichlet([0.0001, 0.0001, 0.0001], 5),
        lambda: make_rng(1).integers(0, 2, 40, bool),
        lambda: make_rng(1).normal(size=(0, 9)),
        lambda: make_rng(1).choice(5, 0),
    ]
    return [(f"chosen {number}", call) for number, call in enumerate(calls)]


def main(allocator: str, calls: int, seed: int) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if allocator == "zeroed":
        assert zero_array_memory()
    draw = random.Random(seed)
    silent, total = [], 0
    for name, call in chosen():
        for _ in range(3):
            poison()
            try:
                result = call()
            except (np.linalg.LinAlgError, ValueError):
                continue  # LAPACK refuses NaN, an empty reduction has no value
            total += 1
            if holds_poison(result):
                print("POISON", name)
    functions = reachable()
    for name, function in functions:
        returned = 0
        for turn in range(12 * calls):
            if turn % 4 == 0:
                things = inputs(draw)
            arguments = [draw.choice(things) for _ in range(draw.choice([0, 1, 1, 2, 2, 3]))]
            named = keywords(draw, things)
            poison()
            try:
                result = function(*arguments, **named)
            except BaseException:
                continue
            if holds_poison(result) or holds_poison(list(arguments)):
                print("POISON", name, [getattr(a, "dtype", a) for a in arguments], list(named))
            returned += 1
            if returned == calls:
                break
        total += returned
        if not returned:
            silent.append(name)
    print(f"{total} calls returned, of {len(functions) - len(silent)} functions; none of {silent}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
