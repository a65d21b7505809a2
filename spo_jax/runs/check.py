"""`spo check`: tries the parts of a problem of one's own, in the order in which a run needs them.

Each part is tried as commands use it, and the first that does not work ends the check with its
sentence. What a problem does not have and need not have is said at the end.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from spo_jax.envs import exports
from spo_jax.envs.files.textfiles import shown_cost
from spo_jax.envs.problem import Infeasible, Instance, Problem, Rules, rules_of
from spo_jax.envs.problems import get_problem
from spo_jax.envs.report.evaluation import evaluate
from spo_jax.envs.run.evaluator import require_lawful
from spo_jax.envs.run.jobs.onestep import Step, take_step
from spo_jax.envs.run.jobs.selfcheck import is_listed, require_sound
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.rollouts import Status
from spo_jax.errors import InputError
from spo_jax.program import DESTROY_REPAIR, ROLES, Pair, Program, load_pair, save_pair
from spo_jax.search.writing.grammar import GrammarGenerator
from spo_jax.search.writing.prompts import Templates

STEPS, SIZE = 20, 20
OPTIONAL = {  # what the base class says of each of these is what is missing
    "contract": ("destroy",),
    "grammar": ("destroy",),
    "read": ("",),
    "construct": (None,),
    "solve_reference": (None, ""),
    "draw": (None, None, None),
    "export": (),
}
_DESTROY = {
    False: '''def destroy({arguments}):
    """Take the last item out."""
    return {current}[:-1], {current}[-1:]
''',
    True: '''def destroy({arguments}):
    """Take the last item out of the first list that has one."""
    first = next(part for part in {current} if part)
    return {current}, [first.pop()]
''',
}
_REPAIR = {
    False: '''def repair({arguments}):
    """Put it back where it was."""
    return rest + removed
''',
    True: '''def repair({arguments}):
    """Put it at the end of the first list that has one."""
    next((part for part in rest if part), rest[0]).extend(removed)
    return rest
''',
}


class Tried(NamedTuple):
    """A part of a problem. works: None for one that it does not have and need not have."""

    works: bool | None
    name: str
    text: str


def check(name: str, pair: str | Path | None = None, size: int = SIZE) -> Iterator[Tried]:
    """Try the parts of a problem.

    Args:
        name: Its "package.module:NAME".
        pair: A pair file; by default the problem's `simple` or `pair`, or one that takes an item
            out of a list and puts it back.
        size: Of the instances.

    Yields:
        What was tried, in order.

    Raises:
        InputError: A part does not work, and why.
    """
    problem = get_problem(name)
    about = f"{problem.name}, of {problem.unit}"
    yield Tried(True, "problem", f"{about}; its cost is {_sense(problem)}")
    instance = _sampled(problem, size)
    yield Tried(True, "sample", f"{instance.name}, the same instance whatever the count")
    rules = rules_of(problem, instance.seen())
    require_sound(problem, instance, rules, lambda: random.Random(0))
    yield Tried(True, "rules", _start(problem, rules.cost(rules.start(random.Random(0)))))
    chosen, what = _pair(problem, rules, pair)
    with LocalEvaluator(problem, 1) as evaluator:
        require_lawful(evaluator, problem, chosen)
        rollouts = evaluator.run([chosen], [instance], (0,), STEPS)
        if failure := rollouts.failure(0):
            hint = "" if failure.status == Status.HOST_FAULT or pair else "; name one with --pair"
            why = f"{failure.status.label}: {problem.interface.game.told(failure.reason)}"
            raise InputError(f"problem {problem.name}: {what} fails ({why}){hint}")
        costs = [problem.turned(cost) for cost in rollouts.best_cost[0, 0, 0, [0, -1]]]
        moved = " to ".join(shown_cost(float(cost)) for cost in costs)
        yield Tried(True, "rollout", f"{STEPS} steps of {what}, from {moved}")
        solution = problem.decode(instance, rollouts.code_of(0, 0, 0))
        step = take_step(evaluator, chosen, instance, solution, 0)
    yield Tried(True, "step", _step(problem, step, size))
    report = evaluate(chosen, problem, [instance], steps=1, seeds=1, references="none").to_json()
    yield Tried(True, "report", f"{len(report)} bytes, with the solution")
    with TemporaryDirectory() as folder:
        yield _written(problem, instance, solution, Path(folder))
        yield _exported(problem, chosen, Path(folder))
    yield from _others(problem, instance, rules)


def _step(problem: Problem, step: Step, size: int) -> str:
    """What was handed on in a step, in words."""
    game = problem.interface.game
    if game == DESTROY_REPAIR:
        return f"takes out {len(step.removed)} of {size} {problem.unit}"
    return f"{game.leader.function} hands on {' and '.join(game.handed)}"


def _sense(problem: Problem) -> str:
    return "maximised" if problem.maximise else "minimised"


def _sampled(problem: Problem, size: int) -> Instance:
    """An instance that does not depend on how many are drawn. Raises InputError."""
    one, several = (problem.sample(size, count, 0) for count in (1, 2))
    for found, count in ((one, 1), (several, 2)):
        if len(found) != count or not all(isinstance(each, Instance) for each in found):
            raise InputError(
                f"problem {problem.name}: sample({size}, {count}, 0) returned no {count} Instances"
            )
    if one[0].digest != several[0].digest:
        raise InputError(
            f"problem {problem.name}: sample draws another first instance where the count is 2: "
            "seed each by its number"
        )
    if several[0].digest == several[1].digest:
        raise InputError(
            f"problem {problem.name}: sample draws the same instance twice: what tells them apart "
            "belongs into the fields of Instance or into extra"
        )
    for each in one:
        if each.problem != problem.name or each.size != size:
            raise InputError(
                f"problem {problem.name}: sample({size}, 1, 0) returned an instance of problem "
                f"{each.problem!r} and size {each.size}"
            )
    return one[0]


def _pair(problem: Problem, rules: Rules, pair: str | Path | None) -> tuple[Pair, str]:
    """The pair to try, and in words. Raises InputError where there is none."""
    if pair is not None:
        return load_pair(pair, problem.interface.game), f"the pair {pair}"
    if own := problem.simple or problem.pair:
        return load_pair(own, problem.interface.game), "the problem's own pair"
    start, game = rules.start(random.Random(0)), problem.interface.game
    if game != DESTROY_REPAIR:
        raise InputError(
            f"problem {problem.name}: its game is {' and '.join(game.functions)}, for which no "
            "trivial pair is known: name one with --pair FILE.py"
        )
    if not is_listed(start) or type(rules).destroyed is not Rules.destroyed:
        raise InputError(
            f"problem {problem.name}: its solutions or its destroyed are its own, so no trivial "
            "pair is known: name one with --pair FILE.py"
        )
    nested = bool(start) and type(start[0]) is list
    face = problem.interface
    texts = (_DESTROY[nested], _REPAIR[nested])
    programs = [
        Program.from_source(
            role, text.format(arguments=", ".join(face.parameters(role)), current=face.current)
        )
        for role, text in zip(ROLES, texts, strict=True)
    ]
    return Pair(*programs), "a pair that puts back what it takes out"


def _start(problem: Problem, own: float) -> str:
    """The start in words, and what is to be known of its cost."""
    text = f"a start, its code and what that decodes to, of {problem.word} {shown_cost(own)}"
    if own == 0:
        return f"{text}: J is no share of 0, but the improvement itself"
    if own < 0 and not problem.maximise:
        return f"{text}: if that is minus a profit, say maximise = True and leave out the minus"
    return text


def _written(problem: Problem, instance: Instance, solution: object, folder: Path) -> Tried:
    path = folder / f"solution{problem.solution_suffix}"
    problem.write(path, instance, solution)
    try:
        again = problem.read_solution(path, instance)
        if problem.cost(instance, again) == problem.cost(instance, solution):
            return Tried(True, "write", f"a solution of {path.stat().st_size} bytes, read again")
        why = "it costs something else when it is read"
    except (InputError, Infeasible) as error:
        why = str(error).replace(str(path), path.name)
    return Tried(None, "write", f"a solution is not read again ({why}): implement read_solution")


def _exported(problem: Problem, pair: Pair, folder: Path) -> Tried:
    ours = problem.interface.game == DESTROY_REPAIR  # --for takes no other game
    kinds = list(exports.PURPOSES) if ours and problem.offers("export") else []
    for kind in [None, *kinds]:
        tail = "" if kind is None else exports.tail(problem, pair, kind)
        path = folder / f"{kind}.py"
        save_pair(path, pair, "", problem.interface, problem.kit, tail)
        if load_pair(path).digest != pair.digest:
            raise InputError(f"problem {problem.name}: an exported pair is read as another one")
    return Tried(
        True, "pair-file", "written and read" + "".join(f", also for {kind}" for kind in kinds)
    )


def _others(problem: Problem, instance: Instance, rules: Rules) -> Iterator[Tried]:
    """The optional parts that there are, and what the others are for."""
    tries: dict[str, Callable[[], str]] = {
        "contract": lambda: _contract(problem),
        "grammar": lambda: _grammar(problem),
        "construct": lambda: _constructed(problem, instance, rules),
    }
    for part, given in OPTIONAL.items():
        if problem.offers(part):
            if part in tries:
                yield Tried(True, part, tries[part]())
            continue
        try:
            getattr(Problem, part)(problem, *given)
        except InputError as error:
            yield Tried(None, part, str(error).removeprefix(f"problem {problem.name} "))


def _contract(problem: Problem) -> str:
    Templates.read(None, problem, bool(problem.kit))
    return "prompts for a model"


def _grammar(problem: Problem) -> str:
    GrammarGenerator(problem)
    rng = random.Random(0)
    for role in ROLES:
        grammar = problem.grammar(role, False)
        _, source = grammar.render(grammar.sample(rng))
        Program.from_source(role, source)
    return "programs without a model, --generator grammar"


def _constructed(problem: Problem, instance: Instance, rules: Rules) -> str:
    try:
        cost = problem.cost(instance, rules.repaired(problem.construct(instance)))
    except Infeasible as error:
        raise InputError(f"problem {problem.name}: its construction is none ({error})") from None
    return f"a first solution of {problem.word} {shown_cost(cost)}"
