"""What a recent GPU makes of a program: float32 products at default precision see 11 bits of
their operands (TF32), emulated by rounding them; the sums stay float32."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

BITS = 10  # of the mantissa, beside the leading one


def emulated(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as it would come out on such a card, in all its loops and gradients."""

    def run(*arguments: Any) -> Any:
        program, form = jax.make_jaxpr(function, return_shape=True)(*arguments)
        compute = jax.jit(core.jaxpr_as_fun(_rounded(program)))
        return jax.tree.unflatten(jax.tree.structure(form), compute(*jax.tree.leaves(arguments)))

    return run


def careless(program: Any) -> Callable[..., Any]:
    """A traced program, with all its products at default precision."""

    def open_(eqn: Any) -> Any:
        given = {**eqn.params, "precision": None}
        return eqn.replace(params=given) if _is_float32_product(eqn) else eqn

    return core.jaxpr_as_fun(_mapped(program, open_))


def products(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The precision of each of its products of float32 operands; None is the default."""
    found: list[Any] = []

    def look(eqn: Any) -> Any:
        if _is_float32_product(eqn):
            found.append(None if _is_default(eqn) else eqn.params["precision"])
        return eqn

    _mapped(jax.make_jaxpr(function)(*arguments), look)
    return found


def _rounded(program: Any) -> Any:
    return _mapped(program, lambda eqn: _rounding(eqn) if _cuts(eqn) else eqn)


def _is_float32_product(eqn: Any) -> bool:
    operands = [variable.aval.dtype for variable in eqn.invars]
    return eqn.primitive.name == "dot_general" and jnp.float32 in operands


def _is_default(eqn: Any) -> bool:
    precision = eqn.params["precision"]
    sides = precision if isinstance(precision, tuple) else (precision,)
    return any(side in (None, jax.lax.Precision.DEFAULT) for side in sides)


def _cuts(eqn: Any) -> bool:
    return _is_float32_product(eqn) and _is_default(eqn)


def _rounding(eqn: Any) -> Any:
    """The same product of rounded operands, as one equation."""

    def product(*operands: jax.Array) -> Any:
        short = [jax.lax.reduce_precision(x.astype(jnp.float32), 8, BITS) for x in operands]
        back = [x.astype(o.dtype) for x, o in zip(short, operands, strict=True)]
        return eqn.primitive.bind(*back, **eqn.params)

    given = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
    (call,) = jax.make_jaxpr(jax.jit(product))(*given).eqns
    return call.replace(invars=eqn.invars, outvars=eqn.outvars)


def _mapped(program: Any, change: Callable[[Any], Any]) -> Any:
    """A jaxpr with `change` applied to every equation, those inside of others included."""
    inner = getattr(program, "jaxpr", program)  # from JAX 0.11 on the program itself
    if inner is not program:
        return program.replace(jaxpr=_mapped(inner, change))
    return program.replace(eqns=[change(_inside(eqn, change)) for eqn in program.eqns])


def _inside(eqn: Any, change: Callable[[Any], Any]) -> Any:
    def deep(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(map(deep, value)) if type(value) in (tuple, list) else value
        is_program = isinstance(value, core.ClosedJaxpr | core.Jaxpr)
        return _mapped(value, change) if is_program else value

    return eqn.replace(params={name: deep(value) for name, value in eqn.params.items()})
