"""The page of failures: how many, of which status, and for what reasons."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from spo_jax.runs.display.funnel import funnel
from spo_jax.runs.records import FailureRecord
from spo_jax.runs.report.figures import Figures
from spo_jax.runs.report.text import shortened
from spo_jax.runs.run import Run

MOST_REASONS = 40
MOST_TEXT = 4000  # characters of an answer


@dataclass(frozen=True)
class Kind:
    """Failures that differ in numbers only. rounds: in words. example: the last of them;
    names: of its programs that the run has.
    """

    status: str
    subject: str
    reason: str
    count: int
    share: str
    rounds: str
    example: FailureRecord
    names: tuple[str, ...]
    text: str


def page(run: Run, figures: Figures) -> dict[str, Any]:
    """What became of the answers; failures by round and status, and by reason."""
    named, told = run.game.named, run.game.told
    answers = {
        "heads": ("round", "role", "answers", "hold a program", "pass the gate", "copies",
                  "new programs", "new and valid"),
        "answers": [
            (r.round, named(r.role), r.answers, r.parsed, r.passed, r.copies, r.new, r.valid)
            for r in funnel(run)
        ],
    }  # fmt: skip
    if not run.failures:
        what = "so far" if run.status != "finished" else "in this run"
        return {**answers, "missing": f"No answer and no pair failed {what}."}
    rounds = np.arange(1, max(run.rounds, max(each.round for each in run.failures)) + 1)
    by_status: dict[str, Counter[int]] = defaultdict(Counter)
    kinds: dict[tuple[str, str, str], list[FailureRecord]] = defaultdict(list)
    for each in run.failures:
        by_status[each.status][each.round] += 1
        kinds[each.status, each.subject, alike(told(each.reason))].append(each)
    order = sorted(by_status, key=lambda status: (-by_status[status].total(), status))
    parts = {s: np.array([by_status[s][int(k)] for k in rounds], float) for s in order}
    ranked = sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0]))
    total = len(run.failures)
    found = [
        Kind(
            status, named(subject), told(same[-1].reason) if len(same) == 1 else reason, len(same),
            f"{len(same) / total:.0%}", _rounds(same[0].round, same[-1].round), same[-1],
            tuple(n for n in (same[-1].destroy, same[-1].repair) if n in run.index),
            shortened(same[-1].text, MOST_TEXT),
        )
        for (status, subject, reason), same in ranked[:MOST_REASONS]
    ]  # fmt: skip
    return {
        **answers,
        "total": total,
        "picture": figures.bars(rounds, parts, "Failures by round and status", "failures"),
        "kinds": found,
        "more": len(ranked) - len(found),
    }


def _rounds(first: int, last: int) -> str:
    return f"round {first}" if first == last else f"rounds {first} to {last}"


def alike(reason: str) -> str:
    """A reason with its numbers as #, so that failures of one kind are counted together."""
    return re.sub(r"\d+(\.\d+)?", "#", reason[:200])
