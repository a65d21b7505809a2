"""Composes the page of a run and writes it."""

import base64
import contextlib
import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from spo_jax.envs.files.textfiles import write_atomically
from spo_jax.errors import InputError
from spo_jax.program import MAX_SOURCE
from spo_jax.runs.folders import MANIFEST
from spo_jax.runs.records import ProgramRecord, PromptRecord
from spo_jax.runs.report import (
    NAME,
    failures,
    genealogy,
    learning,
    pair,
    payoffs,
    progress,
    state,
)
from spo_jax.runs.report.figures import Figures, colours
from spo_jax.runs.report.genealogy import few
from spo_jax.runs.report.played import Played, play
from spo_jax.runs.report.text import number, packed, rounded, shown, template, visible
from spo_jax.runs.run import Run, load_run

MOST_PACKED = 4_000_000  # characters of packed programs and prompts
MOST_UNPACKED = 16 * MOST_PACKED  # and of what they hold
MOST_PAIRS = 12  # that the page lists of one program
MOST_PARENTS = 12
MOST_PROMPT = 4 * MAX_SOURCE  # characters of a prompt, which shows several programs
UNPLAYED = "The pair is played when the report is written after the last round, not after each."


def report(run: Run | str | Path, out: str | Path | None = None) -> Path:
    """Write a run as one HTML page that any browser opens offline.

    Args:
        run: A run, or its folder.
        out: The file, by default report.html in the run's folder, which is replaced; where that
            fails, an older one is removed.

    Returns:
        The path of the page.

    Raises:
        InputError: Something cannot be read or written.
    """
    folder = run.path if isinstance(run, Run) else Path(run)
    with none_older(folder if out is None else None):
        run = run if isinstance(run, Run) else load_run(run)
        return write(run, out, play(run))


def write(run: Run, out: str | Path | None, played: Played | str) -> Path:
    """As `report`, with the best pair at work, or why it is not shown."""
    path = run.path / NAME if out is None else Path(out)
    write_atomically(path, html(run, played))
    return path


def keep_page(run: Run | Path, remark: Callable[[str], None]) -> None:
    """The page of a run that is over, or of one that goes on in a folder, with a remark of it.

    A page that cannot be written does not end the run, whatever the reason: `report` raises it.
    Then there is none, since an older one would pass for it. Raises InputError where that of a run
    that is over cannot be removed.
    """
    try:
        if isinstance(run, Run):
            remark(f"Report: {report(run)}")
        else:
            with none_older(run):
                write(load_run(run), None, UNPLAYED)
    except InputError as error:
        if isinstance(run, Run) and (run.path / NAME).exists():
            raise
        remark(f"no {NAME}, because {error}")
    except Exception as error:
        remark(f"no {NAME}, because of a {type(error).__name__}: {error}; spo report shows where")


@contextlib.contextmanager
def none_older(folder: Path | None) -> Iterator[None]:
    """Where the page of a run's folder cannot be made, an older one is removed."""
    try:
        yield
    except Exception as error:
        if folder is not None and (folder / MANIFEST).is_file() and (folder / NAME).is_file():
            try:
                (folder / NAME).unlink()
            except OSError:
                raise InputError(f"{error}; {folder / NAME} is an older page") from error
        raise


def html(run: Run, played: Played | str) -> str:
    """The page: the same text for the same run."""
    figures = Figures()
    script = _asset("page.js")
    packs, left_out = _packs(run)
    best = pair.page(run, played, figures)
    frames = len(best.get("frames", ()))
    return template(__package__, "page.html").render(
        run=run,
        leads=run.game.leader,
        follows=run.game.follower,
        title=visible(run.path.name),
        method=run.config.search.method,
        meaning=run.meaning,
        facts=_facts(run),
        script=Markup(script),
        script_hash=_hash(script),
        style=Markup(_asset("page.css") + _bins() + _keyframes(frames)),
        packs=packs,
        left_out=left_out,
        progress=progress.page(run, figures),
        payoffs=payoffs.page(run),
        genealogy=genealogy.page(run),
        state=state.page(run, played, figures),
        failures=failures.page(run, figures),
        learning=learning.page(run, figures),
        pair=best,
    )


def _facts(run: Run) -> list[tuple[str, str]]:
    best = run.best
    found = [
        ("problem", run.config.problem),
        ("method", run.config.search.method),
        ("preset", run.preset or "–"),
        ("seed", str(run.config.seed)),
        ("generator", run.config.generator.name),
        ("rounds", f"{run.progress}, {run.status}"),
        ("programs", f"{len(run.programs):,}"),
        ("pairs", f"{run.evaluated:,}"),
    ]
    if run.started:
        found.append(("started from", ", ".join(run.started)))
    if best is not None:
        names = " with ".join(filter(None, run.names(best.pair)))
        gap = run.gap(best.pair)
        gap_text = "" if math.isnan(gap) else f", gap {number(gap, 2)}%"
        found.append(("best pair", f"{names or 'unnamed'}, J {number(best.utility)}{gap_text}"))
    return found


# --- programs and prompts, packed by round --------------------------------------------------------


def _packs(run: Run) -> tuple[list[tuple[str, int, Markup]], list[str]]:
    """(kind, round, text) of what fits, the best pair's round and the last rounds first; in words,
    what does not.
    """
    asked = {(s.program): (s.round, s.role, s.prompt) for s in reversed(run.samples) if s.program}
    partners: dict[str, list[Any]] = defaultdict(list)
    ranked = sorted(run.pairs, key=lambda p: (math.isnan(p.utility), -p.utility))
    for each in ranked:
        for mine, other in ((each.destroy, each.repair), (each.repair, each.destroy)):
            if len(partners[mine]) < MOST_PAIRS:
                partners[mine].append([other, rounded(each.utility), each.status])

    def of_program(record: ProgramRecord) -> tuple[str, dict[str, Any]]:
        prompt = asked.get(record.name)
        return record.name, {
            "role": run.game.named(record.role),
            "round": record.round,
            "form": shown(record.form),
            "parents": [visible(name) for name in record.parents[:MOST_PARENTS]],
            "credit": rounded(record.credit),
            "strategy": shown(record.strategy),
            "source": shown(record.source),
            "pairs": partners.get(record.name, []),
            "prompt": None
            if prompt is None
            else [prompt[0], f"{run.game.named(prompt[1])} {prompt[2]}"],
        }

    def of_prompt(record: PromptRecord) -> tuple[str, str]:
        return f"{run.game.named(record.role)} {record.number}", shown(record.text, MOST_PROMPT)

    first = run.best.round if run.best else 0
    room, unpacked, found, left_out = MOST_PACKED, MOST_UNPACKED, [], []
    described: Callable[[Any], tuple[str, Any]]
    for kind, by_round, described in (
        ("programs", _by_round(run.programs), of_program),
        ("prompts", _by_round(run.prompts), of_prompt),
    ):
        missing = []
        for k in sorted(by_round, key=lambda k: (k != first, -k)):
            size = sum(map(_size, by_round[k]))
            text = ""
            if size <= unpacked:
                unpacked -= size
                text = packed(dict(map(described, by_round[k])))
            if text and len(text) <= room:
                room -= len(text)
                found.append((kind, k, Markup(text)))
            else:
                missing.append(k)
        if missing:
            rounds = few([str(k) for k in sorted(missing)])
            left_out.append(
                f"The {kind} of rounds {rounds} are left out to keep this file small; "
                f"spo_jax.load_run(...).{kind} has them."
            )
    return found, left_out


def _by_round(records: Iterable[Any]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for each in records:
        found[each.round].append(each)
    return found


def _size(record: ProgramRecord | PromptRecord) -> int:
    """Characters that a page holds of a record."""
    if isinstance(record, PromptRecord):
        return min(len(record.text), MOST_PROMPT)
    return sum(min(len(text), MAX_SOURCE) for text in (record.source, record.strategy))


# --- script and style -----------------------------------------------------------------------------


@cache
def _asset(name: str) -> str:
    text = (files(__package__) / name).read_text("utf-8")
    if "</" in text:  # it would end the element that holds it
        raise InputError(f"{name} of the report contains </")
    return text


def _bins() -> str:
    """The classes of the scale of values."""
    rules = []
    for k, (back, text) in enumerate(colours()):
        rules.append(f".q{k}{{background:{back};color:{text};fill:{back}}}")
    return "\n".join(rules)


def _keyframes(count: int) -> str:
    """Shows each of `count` pictures in turn, without a script."""
    if not count:
        return ""
    share = f"{100 / count - 0.001:.4f}%"  # never two of them at a time
    return f"@keyframes frame{{0%{{visibility:visible}}{share}{{visibility:hidden}}}}"


def _hash(text: str) -> str:
    """As a Content-Security-Policy names the only script that may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
