"""How many of a writer's answers become programs that run: parsed, through the gate, valid, new."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from spo_jax.envs.problem import Instance, Problem
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.errors import Rejection
from spo_jax.program import Completion, Pair, Program, Prompt, Role, parse_answer
from spo_jax.program.equivalence import canonical
from spo_jax.program.pairfile import load_pair
from spo_jax.search.writing.prompts import Templates
from spo_jax.seeding import python_rng

STEPS, SEEDS = 40, (0,)
LONGEST = 150  # characters of a reason
CONFIDENCE = 1.96  # standard errors of a 95% interval


@dataclass
class Cell:
    """The answers to one form and role: `parsed` of them hold a program, `gated` of these pass the
    gate, `valid` of these run.

    distinct: different programs among the valid. better: valid programs whose cost is below their
    first parent's. copies: valid programs that repeat a parent. cut: answers that ended at the
    longest length. reasons: why the others are not valid.
    """

    answers: int = 0
    parsed: int = 0
    gated: int = 0
    valid: int = 0
    distinct: int = 0
    better: int = 0
    copies: int = 0
    cut: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def refuse(self, stage: str, reason: str) -> None:
        self.reasons[f"{stage}: {reason}"[:LONGEST]] += 1

    def row(self) -> list[str]:
        shares = (self.parsed, self.gated, self.valid)
        return [
            str(self.answers),
            *(interval(each, self.answers) for each in shares),
            str(self.distinct),
            f"{self.copies / max(1, self.valid):.0%}",
            str(self.better),
            str(self.cut),
        ]


COLUMNS = ("answers", "parsed", "through the gate", "valid", "distinct", "copies", "better", "cut")


def interval(count: int, total: int) -> str:
    """A share in per cent with its 95% Wilson interval."""
    if not total:
        return "-"
    share, z = count / total, CONFIDENCE
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total**2)) / (1 + z * z / total)
    low, high = max(0.0, middle - half), min(1.0, middle + half)  # rounding may leave them
    return f"{share:.0%} ({low:.0%} to {high:.0%})"


@dataclass
class Bench:
    """What answers are judged with: an evaluator, instances of two sizes, plain partners."""

    problem: Problem
    evaluator: LocalEvaluator
    instances: Sequence[Instance]
    plain: Pair
    kit: bool = False

    @classmethod
    def of(cls, problem: Problem, evaluator: LocalEvaluator, kit: bool) -> "Bench":
        instances = [*problem.sample(30, 1, seed=5), *problem.sample(60, 1, seed=6)]
        return cls(problem, evaluator, instances, load_pair(Path(problem.simple)), kit)

    def parents(self, role: Role, count: int, seed: int) -> list[Program]:
        """Plain programs of the grammar, which writes in the format that is asked for."""
        rng, grammar = python_rng(seed, "parents", role), self.problem.grammar(role, self.kit)
        found: dict[str, Program] = {}
        while len(found) < count:
            strategy, source = grammar.novice().render(grammar.novice().sample(rng))
            program = Program.from_source(role, source, strategy)
            found.setdefault(program.digest, program)
        return list(found.values())

    def prompts(
        self, templates: Templates, role: Role, form: str, count: int, seed: int
    ) -> list[Prompt]:
        """`count` prompts of a form, each with other parents and another destroy to answer."""
        needed = templates.form(form).parents[0]
        pool = self.parents(role, max(1, needed * count), seed)
        destroys = self.parents("destroy", count, seed + 1)
        return [
            templates.render(
                self.problem.name, role, form, pool[p * needed : (p + 1) * needed],
                destroys[p] if role == "repair" else None,
            )
            for p in range(count)
        ]  # fmt: skip

    def cell(self, prompts: Sequence[Prompt], answers: Sequence[Sequence[Completion]]) -> Cell:
        """The funnel of some answers to each prompt."""
        cell = Cell()
        read: list[tuple[Prompt, Program]] = []
        for prompt, group in zip(prompts, answers, strict=True):
            for completion in group:
                cell.answers += 1
                cell.cut += completion.usage is not None and completion.usage.cut
                try:
                    program = parse_answer(prompt.answer, prompt.role, completion.text)
                except Rejection as error:
                    cell.refuse("parse", error.reason)
                    continue
                cell.parsed += 1
                read.append((prompt, program))
        verdicts = self.evaluator.check([program for _, program in read])
        gated = []
        for each, verdict in zip(read, verdicts, strict=True):
            if verdict is None:
                gated.append(each)
            else:
                cell.refuse("gate", verdict.reason)
        cell.gated = len(gated)
        costs = self.costs([self._pair(*each) for each in gated], cell)
        firsts = {p.text: p for p in prompts if p.parents}
        bests = self.costs([self._pair(p, p.parents[0]) for p in firsts.values()])
        before = dict(zip(firsts, bests, strict=True))
        seen = set()
        for (prompt, program), cost in zip(gated, costs, strict=True):
            if math.isfinite(cost):
                cell.valid += 1
                seen.add(program.digest)
                cell.better += cost < before.get(prompt.text, -math.inf)
                cell.copies += is_copy(program, prompt.parents)
        cell.distinct = len(seen)
        return cell

    def costs(self, pairs: Sequence[Pair], cell: Cell | None = None) -> list[float]:
        """The mean final cost of each pair, infinite where a rollout failed; `cell` has why."""
        if not pairs:
            return []
        found = self.evaluator.run(pairs, self.instances, SEEDS, STEPS)
        costs = np.where(found.status == 0, found.final_cost, np.inf).mean(axis=(1, 2))
        if cell is not None:
            for p in np.flatnonzero(np.isinf(costs)):
                where = tuple(np.argwhere(found.status[p] != 0)[0])
                cell.refuse("rollout", str(found.reason[(p, *where)]))
        return [float(cost) for cost in costs]

    def _pair(self, prompt: Prompt, program: Program) -> Pair:
        if program.role == "destroy":
            return Pair(program, self.plain.repair)
        return Pair(prompt.destroy or self.plain.destroy, program)


def is_copy(program: Program, parents: Sequence[Program]) -> bool:
    """Whether a program is one of its parents but for names, comments and layout."""
    own = canonical(program.source, program.role)
    return own is not None and own in [canonical(each.source, each.role) for each in parents]
