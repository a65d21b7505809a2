"""Credit schemes as JAX functions: compiled, mapped and padded, and those that JAX cannot trace."""

import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from spo_fakes import payoff_with

from spo_jax.errors import InputError
from spo_jax.search.credit import CREDITS, of_arrays
from spo_jax.search.credit.arrays import Reference, arrays_with
from spo_jax.search.credit.types import formula_of

FORMULAS = {name: formula_of(scheme) for name, scheme in CREDITS.items()}
NAN = math.nan


def rounds_of(*before, rows=4, slots=5, seed=0):
    """Rounds with all that a scheme may see, with gaps, ties and a round without a pair."""
    rng = np.random.default_rng(seed)

    def some(*shape):
        return rng.choice([NAN, -1.0, 0.25, *rng.normal(size=9)], size=(*before, *shape))

    utility = some(rows, slots)
    utility[(0,) * len(before)] = NAN
    return arrays_with(
        utility,
        scores=utility[..., None, None] + rng.normal(size=(*utility.shape, 3, 2)),
        source=rng.integers(6, size=utility.shape),
        failed=np.isnan(utility) & (rng.random(utility.shape) < 0.5),
        leader_baseline=some(rows), follower_baseline=some(rows, slots), parent=some(rows, slots),
        reference=Reference(some(rows), some(rows, slots), some()),
        other_utility=some(2, 3), other_source=rng.integers(-1, 7, size=(*before, 2, 3)),
        sources=8,
    )  # fmt: skip


def same(one, two, **near):
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        if near:
            np.testing.assert_allclose(a, b, **near)
        else:
            np.testing.assert_array_equal(a, b)


def test_all_that_ship_are_functions_of_arrays():
    assert all(FORMULAS.values())


@pytest.mark.long
@pytest.mark.parametrize("name", FORMULAS)
def test_compiled_and_mapped_it_is_the_plain_call(name):
    """Compiled, a product and a sum round once; so the plain call is near. A batch has the bits.

    It is mapped only as it is compiled: outside of that each operation is compiled by itself.
    """
    rounds, formula, top = rounds_of(3, 2), FORMULAS[name].function, 2
    compiled = FORMULAS[name](rounds, top)
    with jax.enable_x64(True):
        plain = formula(rounds, top)
        mapped = jax.jit(jax.vmap(jax.vmap(partial(formula, top=top))))(rounds)
    same(plain, compiled, rtol=1e-12, atol=1e-14)
    same(compiled, mapped)
    assert jax.tree.leaves(compiled)[0].dtype == np.float64
    assert not FORMULAS[name].untraced


@pytest.mark.long
@pytest.mark.parametrize(("place", "name"), list(enumerate(FORMULAS)))
def test_rows_that_fill_up_a_round_change_no_bit_and_compile_nothing(place, name):
    """The fewest and the most of 1 to 7 rows and one between, as each is compiled to compare."""
    formula, whole = FORMULAS[name], rounds_of(rows=8, seed=3)
    of_one = replace(whole, sources=48)
    formula.of_round(of_one, 2)
    before = formula.cache_size()
    for rows in (1, 2 + place % 5, 7):
        part = jax.tree.map(lambda x, n=rows: x[:n] if np.shape(x)[:1] == (8,) else x, of_one)
        found = formula.of_round(part, 2)
        assert formula.cache_size() == before
        with jax.enable_x64(True):
            same(found, jax.jit(formula.function, static_argnums=1)(part, 2))


def test_a_loop_compiles_nothing_after_its_first_round():
    formula = FORMULAS["two-way"]

    def play(rows, known):
        repairs = tuple(tuple(f"r{i}{j}" for j in range(4)) for i in range(rows))
        utility = np.arange(4.0 * rows).reshape(rows, 4)
        names = tuple(f"d{i}" for i in range(rows))
        CREDITS["two-way"](payoff_with(utility, names, repairs), top=2)

    play(3, 0)
    before = formula.cache_size()
    for rows in (1, 2, 5, 8):
        play(rows, rows)
    assert formula.cache_size() == before


def test_it_computes_in_float64_and_leaves_the_switch_alone():
    small = arrays_with(np.array([[1.0, 1.0 + 1e-12]]))
    leader, *_ = FORMULAS["max"](small, 2)
    assert float(np.asarray(leader)[0]) == 1.0 + 1e-12
    assert jnp.asarray(0.1).dtype == np.float32
    with pytest.raises(InputError, match="computes in float64"):
        jax.jit(partial(FORMULAS["max"].function, top=2))(small)


def in_jnp(rounds, top):
    best = jnp.max(rounds.utility, axis=-1, where=jnp.isfinite(rounds.utility), initial=-jnp.inf)
    return jnp.where(jnp.isfinite(best), best, jnp.nan), rounds.utility, None


def in_numpy(rounds, top):
    known = np.isfinite(rounds.utility)
    best = np.where(known, rounds.utility, -np.inf).max(axis=-1)
    best[~known.any(axis=-1)] = np.nan
    return best, rounds.utility, None


def test_a_formula_that_jax_cannot_trace_is_called_as_it_is():
    payoff = payoff_with([[0.5, NAN], [NAN, NAN]], ("d", "e"), (("a",), ("b", "c")))
    compiled, plain = of_arrays(in_jnp), of_arrays(in_numpy)
    for scheme in (compiled, plain):
        np.testing.assert_array_equal(scheme(payoff, top=2).leader, [0.5, NAN])
    assert compiled.formula.untraced == ""
    assert plain.formula.untraced == "JAX cannot trace it (TracerArrayConversionError)"
    rounds = rounds_of(3, 2)
    same(compiled.formula(rounds, 2), plain.formula(rounds, 2))


def test_what_is_wrong_with_a_formula_is_raised_once_and_as_it_is():
    def broken(rounds, top):
        raise ZeroDivisionError("mine")

    payoff = payoff_with([[0.5]], ("d",), (("a",),))
    with pytest.raises(ZeroDivisionError, match="mine"):
        of_arrays(broken)(payoff, top=2)
