"""What makes a run's evaluator, by name."""

from contextlib import AbstractContextManager
from functools import partial
from inspect import getattr_static
from typing import Any

from spo_jax.envs.problem import Problem
from spo_jax.envs.run.evaluator import LOCAL, RAY, Evaluator, EvaluatorFactory
from spo_jax.errors import InputError
from spo_jax.registry import Registry, require_function, require_members


def get_evaluator(name: str, ray_address: str | None = None) -> EvaluatorFactory:
    """What makes a run's evaluator: "local", "ray", or a class or function "package.module:NAME".

    ray_address: see `spo_jax.envs.run.cluster.ray_fleet.RayFleet`; for "ray" alone.

    Raises InputError where nothing like that is found, and when what was made is no `Evaluator`;
    MissingExtra for "ray" without Ray.
    """
    if ray_address is not None and name != RAY:
        raise InputError(
            f"ray_address is given, but evaluator is {name}; use evaluator {RAY}, or leave it out"
        )
    if name == RAY:
        from spo_jax.envs.run.cluster.evaluator import ClusterEvaluator
        from spo_jax.envs.run.cluster.ray_fleet import RayFleet

        return partial(ClusterEvaluator, fleet=RayFleet(ray_address))
    return EVALUATORS[name]


def _own(name: str, make: Any) -> EvaluatorFactory:
    require_function(f"evaluator {name!r}", make, EvaluatorFactory.__call__)

    def checked(problem: Problem, workers: int = 1, **settings: Any) -> Any:
        made = make(problem, workers, **settings)
        managed = isinstance(made, AbstractContextManager)
        if not managed or getattr_static(made, "layers", None) is None:
            raise InputError(
                f"evaluator {name!r} made a {type(made).__name__}: an evaluator is a context "
                "manager and has layers, as spo_jax.envs.run.evaluator.Evaluator"
            )
        require_members(f"evaluator {name!r}", made, Evaluator)
        return made

    return checked


EVALUATORS: Registry[EvaluatorFactory] = Registry(
    "evaluator",
    {LOCAL: "spo_jax.envs.run.local:LocalEvaluator"},
    _own,
    others=(RAY,),
    call=False,
)
