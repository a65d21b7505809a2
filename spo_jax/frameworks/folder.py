"""The folder that another framework starts from: `spo task`."""

import shlex
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from spo_jax import presets
from spo_jax.constants import FRAMEWORKS, TASK_SETTINGS
from spo_jax.envs.files.specs import absolute
from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.envs.problem import Problem
from spo_jax.errors import InputError
from spo_jax.frameworks.brief import system_message
from spo_jax.frameworks.scoring import Scorer
from spo_jax.program import DESTROY_REPAIR, MAX_SOURCE, Pair, format_pair, load_pair, parse_tree
from spo_jax.runs.pairs import resolve

TASK = "task.toml"
START, END = "# EVOLVE-BLOCK-START", "# EVOLVE-BLOCK-END"


@dataclass(frozen=True)
class Framework:
    """Its files by their templates, the name of its first program, and its command.

    command: of the folder, as a shell takes it.
    """

    files: dict[str, str]
    first: str
    command: Callable[[str], str]


KINDS = {
    "openevolve": Framework(
        {"evaluator.py": "openevolve-evaluator.txt", "config.yaml": "openevolve-config.txt"},
        "initial_program.py",
        lambda folder: (
            f"openevolve-run {folder}/initial_program.py {folder}/evaluator.py "
            f"--config {folder}/config.yaml --primary-model MODEL"
        ),
    ),
    "shinka": Framework(
        {"evaluate.py": "shinka-evaluate.txt", "config.yaml": "shinka-config.txt"},
        "initial.py",
        lambda folder: (
            f"shinka_run --task-dir {folder} --config-fname config.yaml "
            f"--results_dir {folder}/results --num_generations 100 "
            "--set evo.llm_models='[\"MODEL\"]'"
        ),
    ),
}


def write_task(
    framework: str,
    problem: str | None = None,
    preset: str | None = None,
    *,
    out: str | Path,
    start: str | Path | None = None,
    **more: Any,
) -> str:
    """Write the files of a framework's task into a new folder; the command that starts it.

    framework: one of FRAMEWORKS. problem, preset, more: as `spo_jax.settings` has them; those of
    TASK_SETTINGS are kept in task.toml. start: the first pair, a pair file or a run; by default the
    trivial pair of the problem. Its score is not known yet: nothing is run.

    Raises InputError for wrong settings, a pair that cannot be read, a problem without a trivial
    pair where none is given, and a folder that has something in it.
    """
    if framework not in FRAMEWORKS:
        raise InputError(f"unknown framework {framework!r:.80}: use {', '.join(FRAMEWORKS)}")
    kind, folder = KINDS[framework], Path(out)
    scorer = Scorer(problem, preset, **more)
    config = scorer.config.replace(on=absolute(scorer.config.evaluation.on))
    if config.generator.prompts is not None:
        config = config.replace(prompts=str(Path(config.generator.prompts).resolve()))
    game = scorer.problem.interface.game
    if game != DESTROY_REPAIR:
        raise InputError(
            f"spo task writes a brief on destroy and repair, and the pairs of "
            f"{scorer.problem.name} are {' and '.join(game.functions)}: use spo discover"
        )
    pair = _first(scorer.problem, start)
    patience = 60 + round(4 * scorer.seconds)  # seconds by the wall clock, of a busy machine
    values = {
        "seed": str(config.seed),
        "longest": str(2 * MAX_SOURCE),
        "timeout": str(patience),
        "clock": f"{patience // 3600:02}:{patience // 60 % 60:02}:{patience % 60:02}",
        "task": repr(str(folder.resolve() / TASK)),
        "message": textwrap.indent(system_message(scorer), "    ").rstrip("\n"),
    }
    files = {name: _filled(template, values) for name, template in kind.files.items()}
    files[TASK] = presets.to_toml(config, only={"problem", "start", *TASK_SETTINGS})
    files[kind.first] = evolvable(scorer.problem, pair)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} is there and not an empty folder: choose another one")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
    for name, text in files.items():
        write_atomically(folder / name, text)
    return kind.command(shlex.quote(str(folder)))


def evolvable(problem: Problem, pair: Pair) -> str:
    """A pair file with all of its code between the markers of what may change.

    Markers in the programs, which may come from such a file, are left out.
    """
    text = format_pair(pair)
    behind = parse_tree(text).body[0].end_lineno  # the docstring tells of the pair as it is
    lines = [line for line in text.split("\n")[behind:] if line.strip() not in (START, END)]
    body = "\n".join(lines).strip("\n")
    about = (
        f"A destroy and a repair for {problem.name}: `spo evaluate` and `spo solve` read this file."
    )
    return f'"""{about}"""\n\n{START}\n\n{body}\n\n{END}\n'


def _first(problem: Problem, start: str | Path | None) -> Pair:
    if start is not None:
        return resolve(start, problem)[1]
    if not problem.simple:
        raise InputError(f"{problem.name} brings no trivial pair: give one with --start PAIR")
    return load_pair(Path(problem.simple))


def _filled(template: str, values: dict[str, str]) -> str:
    text = resources.files(__package__).joinpath(template).read_text("utf-8")
    return Template(text).substitute(values)
