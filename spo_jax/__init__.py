"""Discover destroy-and-repair programs for large neighbourhood search.

What is imported from here is the public API; `docs/api.md` shows it at work. Each name is loaded
when it is first asked for, so that `import spo_jax` takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spo_jax.envs.problem import Instance as Instance
    from spo_jax.envs.problem import Problem as Problem
    from spo_jax.envs.problems import get_problem as get_problem
    from spo_jax.envs.run.rollouts import Rollouts as Rollouts
    from spo_jax.envs.run.rollouts import Status as Status
    from spo_jax.errors import InputError as InputError
    from spo_jax.errors import SpoError as SpoError
    from spo_jax.frameworks.scoring import Score as Score
    from spo_jax.frameworks.scoring import Scorer as Scorer
    from spo_jax.program import Completion as Completion
    from spo_jax.program import Group as Group
    from spo_jax.program import Pair as Pair
    from spo_jax.program import Program as Program
    from spo_jax.program import Prompt as Prompt
    from spo_jax.program import load_pair as load_pair
    from spo_jax.program import save_pair as save_pair
    from spo_jax.runs.discover import discover as discover
    from spo_jax.runs.discover import settings as settings
    from spo_jax.runs.pairs import compare as compare
    from spo_jax.runs.pairs import evaluate as evaluate
    from spo_jax.runs.pairs import solve as solve
    from spo_jax.runs.report.write import report as report
    from spo_jax.runs.run import Run as Run
    from spo_jax.runs.run import load_run as load_run
    from spo_jax.search.credit import Credits as Credits
    from spo_jax.search.credit import Payoff as Payoff
    from spo_jax.search.population import Member as Member
    from spo_jax.search.rounds import Observer as Observer

__version__ = "0.2.0"

_MODULES = {
    "envs.problem": ("Instance", "Problem"),
    "envs.problems": ("get_problem",),
    "envs.run.rollouts": ("Rollouts", "Status"),
    "errors": ("InputError", "SpoError"),
    "program": ("Completion", "Group", "Pair", "Program", "Prompt", "load_pair", "save_pair"),
    "search.credit": ("Credits", "Payoff"),
    "frameworks.scoring": ("Score", "Scorer"),
    "search.population": ("Member",),
    "search.rounds": ("Observer",),
    "runs.discover": ("discover", "settings"),
    "runs.pairs": ("compare", "evaluate", "solve"),
    "runs.report.write": ("report",),
    "runs.run": ("Run", "load_run"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
