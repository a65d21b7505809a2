"""What a run's requests to an endpoint will cost, before anyone is asked.

A rehearsal is the run itself with another writer, on instances of ten nodes or so and rollouts of
two steps: the grammar writes the programs, each in the format of the method that asks, and the
lengths of prompts and answers are counted. A long run is rehearsed in part: its further rounds are
taken to ask what the later half of the rehearsed ones did. How long a model's answers are no
rehearsal can know: there is a sum with answers as long as the grammar's programs, and one with all
of `max_new_tokens`, which a model that thinks may use up.
"""

import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import spo_jax
from common.cli import Context
from common.contenders import Contender
from common.runs import settings_of
from common.tables import markdown
from spo_jax.config import Settings
from spo_jax.constants import SPO
from spo_jax.errors import InputError
from spo_jax.generator import Generator
from spo_jax.program import ROLES, Completion, Prompt, Role, Usage
from spo_jax.search.method import method_of, rounds_of
from spo_jax.search.writing.grammar import GrammarGenerator
from spo_jax.seeding import derive

CHARACTERS = 3.5  # of a token, in English with Python
PAIRS = 400  # that a rehearsal of another method than SPO writes at most
PROGRAMS = 1000  # likewise of SPO, but two rounds at least
SMALL = {"steps": 2, "finalists": 0, "select": "utility", "update": "none"}  # settings of it
ENDPOINT = ("base_url", "model", "request_extra", "concurrency", "request_timeout", "retries")


class Rehearsal(Generator):
    """Answers any request, by the grammar's programs or a few sentences, and counts tokens."""

    writes_prose = True

    def __init__(self) -> None:
        self._grammar = GrammarGenerator()

    def generate(
        self, prompts: Sequence[Prompt], n: int, seed: int
    ) -> list[tuple[Completion, ...]]:
        return [
            self._answers(prompt, n, derive(seed, place)) for place, prompt in enumerate(prompts)
        ]

    def _answers(self, prompt: Prompt, n: int, seed: int) -> tuple[Completion, ...]:
        if re.search("reflection|thought|ranges", prompt.form):
            prose = "1: 2 to 9" if "ranges" in prompt.form else SENTENCE * 3
            return (Completion(prose, usage=_usage(prompt, prose)),) * n
        roles = ROLES if prompt.answer == "joint" else (prompt.role,)
        halves = {role: self._programs(prompt, role, n, seed) for role in roles}
        found = []
        for k in range(n):
            text = in_format(prompt, {role: each[k].text for role, each in halves.items()})
            derivation = halves[prompt.role][k].derivation
            found.append(Completion(text, derivation=derivation, usage=_usage(prompt, text)))
        return tuple(found)

    def _programs(self, prompt: Prompt, role: Role, n: int, seed: int) -> tuple[Completion, ...]:
        parents = sum(parent.role == role for parent in prompt.parents)
        asked = replace(prompt, role=role, form=FORMS[min(parents, 2)])
        return self._grammar.generate([asked], n, seed)[0]


FORMS = ("initialization", "mechanism-replacement", "shared-principle-crossover")  # by parents
SENTENCE = "Stay near what was removed, and look further away when nothing has improved for long. "


def in_format(prompt: Prompt, halves: Mapping[Role, str]) -> str:
    """The grammar's answer in the format that a prompt asks for. halves: its answers by role."""
    text = halves[prompt.role]
    if prompt.answer == "labels":
        return text
    codes = {role: each.partition("```python\n")[2].removesuffix("```")
             for role, each in halves.items()}  # fmt: skip
    if prompt.answer == "joint":
        return "```python\n" + "\n\n".join(codes.values()) + "```"
    code = codes[prompt.role]
    if named := re.search(r"Name the function (\w+)", prompt.text):
        code = code.replace(f"def {prompt.role}(", f"def {named[1]}(")
    thought = f"{{{text.partition(chr(10))[0]}}}\n" if prompt.answer == "braces" else ""
    return f"{thought}```python\n{code}```"


def _usage(prompt: Prompt, answer: str) -> Usage:
    count, answered = (math.ceil(len(text) / CHARACTERS) for text in (prompt.whole, answer))
    return Usage(count, answered)


@dataclass(frozen=True)
class Bill:
    """What one run of a method asks for: requests, and tokens of prompts and of answers.

    most: of answers, if each had `max_new_tokens`. prices: of a million tokens of either.
    """

    label: str
    requests: float
    prompt: float
    answers: float
    most: float
    prices: tuple[float, float]

    def cost(self, answers: float) -> float:
        return (self.prompt * self.prices[0] + answers * self.prices[1]) / 1e6


def bill(contender: Contender, context: Context) -> Bill:
    """The bill of one run of a method.

    Raises InputError for settings that no run can have, and for a run whose length is in minutes.
    """
    own = settings_of(contender, context)
    preset = context.budget.presets[context.problem.name]
    whole = spo_jax.settings(context.problem.name, preset, **own)
    rounds = rounds_of(whole)
    if rounds is None:
        raise InputError("minutes is given, and only a run of so many rounds can be estimated")
    with tempfile.TemporaryDirectory() as folder:
        run = spo_jax.discover(
            settings=_rehearsed(whole, context, preset, own), path=Path(folder) / "run",
            verbose=False,
        )  # fmt: skip
        asked = [count.destroy_answers + count.repair_answers for count in run.counts]
        metrics = {name: np.asarray(values, float) for name, values in run.metrics.items()}
    by_round = {
        "requests": np.array(asked, float) + metrics.get("reflections", 0.0),
        "prompt": _of_all(metrics, "prompt_tokens"),
        "answers": _of_all(metrics, "tokens"),
    }
    sums = {name: whole_run(np.nan_to_num(values), rounds) for name, values in by_round.items()}
    most = sums["requests"] * whole.generator.max_new_tokens
    prices = whole.endpoint.prompt_price, whole.endpoint.completion_price
    return Bill(contender.label, **sums, most=most, prices=prices)


def _of_all(metrics: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """The sum by round over all that a model wrote."""
    known = [
        metrics[key] for what in (*ROLES, "reflection") if (key := f"{what}/{name}") in metrics
    ]
    return np.nansum(known, axis=0)


def whole_run(by_round: np.ndarray, rounds: int) -> float:
    """The sum over all rounds, where the first of them are known."""
    later = by_round[len(by_round) // 2 :]
    return float(by_round.sum() + (rounds - len(by_round)) * later.mean())


def _rehearsed(whole: Settings, context: Context, preset: str, own: Mapping[str, Any]) -> Settings:
    """The settings of a rehearsal: small, and cut to PAIRS or PROGRAMS."""
    kept = {name: value for name, value in own.items() if name not in ENDPOINT}
    on = [  # of sizes that differ, as none may be named twice; what is no such name stays as it is
        re.sub(r"^uniform:\d+(?=x\d+(@\d+)?$)", f"uniform:{10 + place}", spec)
        for place, spec in enumerate(whole.evaluation.on)
    ]
    small: dict[str, Any] = SMALL | ({"on": on} if on else {"size": 10})
    search = whole.search
    if search.method == SPO:
        each = search.group_forms * search.responses * (1 + search.repairs_per_destroy)
        small["rounds"] = min(search.rounds, max(2, PROGRAMS // each))
    else:
        small["pairs"] = min(search.nominal_pairs, PAIRS)
    method_of(whole)  # refuses what its settings cannot be
    if search.method == "g-lns":  # its searches have the steps of as many rollouts as before
        given = dict(search.method_settings)
        steps = int(given.get("iterations", 100)) * small["steps"] / whole.evaluation.steps
        small["method_settings"] = given | {"iterations": max(1, round(steps))}
    small |= {"generator": f"{__name__}:Rehearsal", "workers": context.workers}
    small["prompts_style"] = whole.generator.prompts_style  # which follows from the generator
    return spo_jax.settings(context.problem.name, preset, **(kept | small))


def table(bills: Sequence[Bill], runs: int) -> str:
    """The bills of all runs of each method, and their sum."""
    values = runs * np.array([
        (each.requests, each.prompt / 1e6, each.answers / 1e6, each.most / 1e6,
         each.cost(each.answers), each.cost(each.most))
        for each in bills
    ])  # fmt: skip
    names = [(each.label, str(runs)) for each in bills]
    rows = [
        [*name, f"{line[0]:,.0f}", *(f"{value:,.2f}" for value in line[1:])]
        for name, line in zip([*names, ("all", "")], [*values, values.sum(axis=0)], strict=True)
    ]
    heads = ["", "runs", "requests", "prompts, million tokens", "answers", "answers at most",
             "cost", "cost at most"]  # fmt: skip
    return markdown(heads, rows) + (
        f"\n\nFrom rehearsals: a token has {CHARACTERS} characters. Answers as long as the "
        "grammar's programs; at most: each of max_new_tokens, as of a model that thinks at length. "
        "Failed requests and lower prices for prompts that an endpoint has seen are not in it.\n"
    )
