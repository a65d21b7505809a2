"""JAX functions that compute in float64, without a switch that changes the rest of the process.

The models of `spo_jax.rl` compute in float32 and bfloat16, so JAX's global setting stays as it is.
These functions run on the host, also beside a card: they are small, and their bits must not depend
on the machine's accelerator.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from typing import ParamSpec, TypeVar

import jax
import numpy as np

from spo_jax.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")


def jitted(static: Sequence[str] = ()) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Compiles a function of arrays, whose numbers are 64 bits wide inside.

    static: the names of arguments that are no arrays. What it returns are JAX arrays; with these
    JAX computes in float32 outside, and NumPy in float64. Under another transformation (`jax.jit`,
    `jax.vmap`) the caller opens the scope, `with jax.enable_x64(True)`; without it the function
    raises InputError.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        compiled = jax.jit(function, static_argnames=tuple(static))

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if jax.config.read("jax_enable_x64"):
                return compiled(*args, **kwargs)
            if any(isinstance(each, jax.core.Tracer) for each in jax.tree.leaves((args, kwargs))):
                raise InputError(
                    f"{function.__name__} is transformed by JAX and computes in float64: do it "
                    "within `with jax.enable_x64(True)`"
                )
            with _scope():
                return compiled(*args, **kwargs)

        call.cache_size = compiled._cache_size  # type: ignore[attr-defined]  # for tests of retraces
        return call

    return decorate


@contextmanager
def _scope() -> Iterator[None]:
    with jax.enable_x64(True), jax.default_device(_host()):
        yield


@cache
def _host() -> jax.Device:
    # Looking for the host's device starts a card's too; a run without a model leaves it its memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    return jax.local_devices(backend="cpu")[0]


def bucket(count: int, least: int = 8, factor: int = 2) -> int:
    """The least of 8, 16, 32 and so on that holds so many: few shapes are compiled."""
    found = least
    while found < count:
        found *= factor
    return found


def padded(values: np.ndarray, shape: Sequence[int], fill: float = math.nan) -> np.ndarray:
    """A copy of the array with `fill` after its own values, up to the shape."""
    found = np.full(tuple(shape), fill, values.dtype)
    found[tuple(map(slice, values.shape))] = values
    return found
