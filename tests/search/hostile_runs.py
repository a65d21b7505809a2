"""Runs of fakes, written by somebody who would like to break out of a page."""

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import spo_fakes
from spo_fakes import CODE, Evaluator, small

from spo_jax.envs.problems import get_problem
from spo_jax.program import ROLES, Completion, Program
from spo_jax.runs.database.digests import seal
from spo_jax.runs.database.store import Store
from spo_jax.runs.database.tables import MEMBERS, PROGRAMS, ProgramRow, program_id
from spo_jax.runs.discovery.loop import discover
from spo_jax.runs.run import Run, load_run
from spo_jax.search.parts import Parts
from spo_jax.search.population import Member
from spo_jax.search.rounds import Failure

BAD = "<script>alert(1)</script><img src=x onerror=alert(2)>"
HIDDEN = "\u202eevil\u2066\u200b\x07"


class Hostile(spo_fakes.Generator):
    """Answers whose strategies and comments try to break out of the page."""

    def sample(self, prompt: Any, rng: Any) -> Completion:
        if rng.random() < self.broken:
            return Completion(f"no idea {BAD}{HIDDEN}")
        n = rng.randrange(self.numbers)
        code = (
            CODE[prompt.role].format(n=n) + f"# </pre></script>{BAD} \"' {{{{ 7 * 7 }}}} \u202e\n"
        )
        return Completion(f"STRATEGY: {BAD} number {n}.\nCODE:\n```python\n{code}```")


def made(path: Path, parts: dict[str, Any] | None = None, **changes: Any) -> Run:
    """A run of the fakes in a folder."""
    config = small(**changes)
    with Store.create(path, {"config": config.flat(), "preset": "smoke"}) as store:
        own = {"evaluator": Evaluator(), "generator": Hostile(broken=0.2)} | (parts or {})

        def commit(done: Any) -> None:
            bad = Failure("destroy", "crash", f"{BAD} line 7 {HIDDEN}", text=BAD)
            store.commit(replace(done, failures=(*done.failures, bad)))

        discover(Parts(config, get_problem("tsp"), **own), store.state(), commit)
    return load_run(path)


# --- runs that are too much -----------------------------------------------------------------------

ANSI = "\x1b[31mred\x1b]0;title\x07\x9b2J\x00\x08[/] [bold]"
LINES = 15_000  # as many short lines as a program can have


def lines_of(mark: str, count: int = LINES) -> str:
    """A program of short lines, no two alike, and none that another mark has."""
    return "".join(f"{mark}{k}\n" for k in range(count))


def heads(role: str, size: int = 60_000) -> str:
    """A text with the beginning of the program's function in each line, and no closing bracket."""
    return f"def {role}(\n" * (size // (len(role) + 6))


def overloaded(
    path: Path, generations: int, sources: Sequence[str], rounds: int = 3, parents: int = 200
) -> Run:
    """A run whose best pair has `generations` of ancestors, all of them in its populations, with
    `sources` in turn, strategies that hide and fake text, and as many parents as a row can hold.
    """
    made(path, rounds=2)
    with contextlib.closing(sqlite3.connect(path / "spo.sqlite")) as db:
        first = db.execute("SELECT * FROM rounds WHERE round = 2").fetchone()
        db.execute("DELETE FROM rounds WHERE round > 2")
        for k in range(3, rounds + 1):
            db.execute(f"INSERT INTO rounds VALUES ({', '.join('?' * len(first))})",
                       (k, *first[1:]))  # fmt: skip
        best = {}
        for role in ROLES:
            earlier: list[str] = []
            for n in range(generations):
                source, strategy = sources[n % len(sources)], f"{ANSI} {HIDDEN} {BAD} {n}"
                number = 1 + n * rounds // generations
                named = (*earlier[-1:], *earlier[: parents - 1])
                digest = f"{role}{n:028d}"
                program = Program(role, source, strategy, named, BAD[:20])
                name = f"{role[0].upper()}{number}.{n + 10_000}"
                key = program_id(program)
                PROGRAMS.insert(db, [ProgramRow(key, number, digest, program, name)])
                member = Member(program, 0.5, number)
                MEMBERS.insert(db, [member], round=number, role=role, rank=1000 + n)
                earlier.append(digest)
                best[role] = key
        db.execute("UPDATE rounds SET best_utility = 0.9, best_round = ?, best_destroy = ?,"
                   " best_repair = ? WHERE round = ?",
                   (rounds, best["destroy"], best["repair"], rounds))  # fmt: skip
        db.execute("DROP TABLE digests")
        seal(db)
        db.commit()
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"rounds": rounds}))
    return load_run(path)
