"""Who is compared: the methods of the paper's Table 1 in its order, each with its look.

A contender's colour, marker and line are the same in every figure. Handcrafted methods are greys,
discovery methods have colours that colour-blind people tell apart (Okabe and Ito 2008), and SPO is
the strongest of them, with the widest line. How it is obtained is one of three things: a baseline
of `spo baseline`, a discovery with settings of `spo discover`, or the file of a pair.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spo_jax.errors import InputError

HANDCRAFTED, DISCOVERY, OURS = "handcrafted", "discovery", "ours"
FAMILIES = (HANDCRAFTED, DISCOVERY, OURS)


@dataclass(frozen=True, eq=False)
class Contender:
    """A method that is compared.

    name: in files and on the command line. label: as in the paper's tables. family: one of
    FAMILIES. colour, marker, line, width: of its curve, for matplotlib. problems: that it is for.
    One of these says how it is obtained: baseline, a name of spo_jax.envs.report.baselines;
    settings, what `spo discover` is told besides the budget; pair, a file that `spo evaluate`
    takes. note: what a table with it must say besides what a run says of its own method.
    """

    name: str
    label: str
    family: str
    colour: str
    marker: str
    line: str = "-"
    width: float = 1.4
    problems: tuple[str, ...] = ("tsp", "cvrp")
    baseline: str | None = None
    settings: Mapping[str, Any] | None = None
    pair: Path | None = None
    note: str = ""

    @property
    def discovered(self) -> bool:
        """Whether it takes a discovery run."""
        return self.settings is not None

    @property
    def searches(self) -> bool:
        """Whether its result gets better with steps, so that it has a curve and a seed."""
        return self.baseline in (None, "alns")


def _handcrafted(
    name: str, label: str, colour: str, marker: str, line: str, *problems: str
) -> Contender:
    return Contender(
        name, label, HANDCRAFTED, colour, marker, line, problems=problems or ("tsp", "cvrp"),
        baseline=name,
    )  # fmt: skip


def _method(
    name: str, label: str, colour: str, marker: str, line: str, note: str = ""
) -> Contender:
    return Contender(
        name, label, DISCOVERY, colour, marker, line, settings={"method": name}, note=note
    )


SPO = Contender("spo", "SPO", OURS, "#D55E00", "o", "-", 2.8, settings={})

_ALL = (
    _handcrafted("nearest-neighbor", "NN", "#A9A9A9", "x", ":", "tsp"),
    _handcrafted("farthest-insertion", "FI", "#8F8F8F", "+", ":", "tsp"),
    _handcrafted("clarke-wright", "CW", "#A9A9A9", "x", ":", "cvrp"),
    _handcrafted("or-tools", "OR-Tools", "#757575", "1", "-.", "cvrp"),
    _handcrafted("2-opt", "2-opt", "#757575", "2", "-.", "tsp"),
    _handcrafted("3-opt", "3-opt", "#555555", "3", "-.", "tsp"),
    _handcrafted("local-search", "LS", "#555555", "3", "-.", "cvrp"),
    _handcrafted("alns", "ALNS", "#1A1A1A", "*", "--"),
    _method("eoh", "EoH", "#0072B2", "s", "--"),
    _method("funsearch", "FunSearch", "#009E73", "^", "-."),
    _method("reevo", "ReEvo", "#CC79A7", "v", ":"),
    _method("g-lns", "G-LNS", "#E69F00", "D", "--", "the paper ran its released operators"),
    _method("best-of-n", "Best-of-N", "#56B4E9", "P", ":", "not in the paper"),
    SPO,
)  # fmt: skip

CONTENDERS: dict[str, Contender] = {each.name: each for each in _ALL}

NO_STACKELBERG = Contender(
    "spo-shared", "w/o Stackelberg Credit", OURS, "#882255", "s", "--", 1.8,
    settings={"credit": "shared"},
)  # fmt: skip
SHARED_LEARNING = Contender(
    "spo-shared-learning", "w/o Stackelberg in learning", OURS, "#AA4499", "D", "-.", 1.8,
    settings={"learning_credit": "shared"},
    note="shared credit teaches, and Stackelberg credit selects; not in the paper",
)  # fmt: skip
NO_STATE = Contender(
    "spo-no-state", "w/o State Conditioning", OURS, "#117733", "^", "-.", 1.8,
    settings={"state": False},
)  # fmt: skip
NEITHER = Contender(
    "spo-neither", "w/o either", OURS, "#AA7744", "v", ":", 1.8,
    settings={"credit": "shared", "state": False}, note="not in the paper",
)  # fmt: skip
ABLATIONS: dict[str, Contender] = {
    each.name: each for each in (SPO, NO_STACKELBERG, NO_STATE)
}  # Table 2, in its order


def released_glns(path: str | Path) -> Contender:
    """The operators that the authors of G-LNS released, from a file of the user's own."""
    return Contender(
        "g-lns-released", "G-LNS (released)", DISCOVERY, "#8C5A00", "d", "-.", pair=Path(path),
        note=f"its authors' operators from {Path(path).name}, drawn uniformly, in our LNS",
    )  # fmt: skip


def given(path: str | Path) -> Contender:
    """A pair or a finished run of the user's own, as a row under the name of its file."""
    path = Path(path)
    return Contender(
        f"given-{path.stem}", path.stem, OURS, "#7B3F9E", "h", "-", 2.0, pair=path,
        note=f"the pair of {path.name}, given",
    )  # fmt: skip


def contenders(problem: str, *more: Contender) -> list[Contender]:
    """Those of a problem in the paper's order; `more` stand after the last of their family."""
    found = [each for each in CONTENDERS.values() if problem in each.problems]
    for new in more:
        if problem in new.problems:
            places = [k for k, each in enumerate(found) if each.family == new.family]
            found.insert(1 + (places[-1] if places else len(found) - 1), new)
    return found


def asked(
    problem: str,
    names: str | None = None,
    *,
    pair: str | None = None,
    glns: str | None = None,
    also: Sequence[str] = (),
) -> list[Contender]:
    """The contenders of a problem that a command line asks for, in the paper's order.

    names: with commas between them, all by default. pair: a file or run folder whose pair stands
    for SPO's. glns, also: a file of G-LNS operators, and pairs, as rows of their own, whatever the
    names. Raises InputError for a name or a file that is not there, a pair of nobody's, and one of
    `also` that is called as another row is.
    """
    for option, path in (("--pair", pair), ("--glns", glns), *(("--also", each) for each in also)):
        if path is not None and not Path(path).exists():
            raise InputError(f"{option} {path}: there is no such file")
    own_rows = [released_glns(glns)] if glns is not None else []
    labels = {each.label for each in (*CONTENDERS.values(), *own_rows)}
    for path in also:
        own_rows.append(given(path))
        if own_rows[-1].label in labels:  # by which tables and tests know a row
            raise InputError(f"--also {path}: another row is called {own_rows[-1].label}, too")
        labels.add(own_rows[-1].label)
    found = contenders(problem, *own_rows)
    if names is not None:
        wanted = [name.strip() for name in names.split(",") if name.strip()]
        known = [each.name for each in found]
        for name in wanted:
            if name not in known:
                raise InputError(f"no contender {name!r} for {problem}: use {', '.join(known)}")
        found = [each for each in found if each.name in wanted or each in own_rows]
    if pair is not None:
        if SPO not in found:
            raise InputError(f"--pair {pair} is SPO's, and --contenders leaves out spo: add it")
        own = replace(
            SPO, settings=None, pair=Path(pair), note=f"the pair of {Path(pair).name}, given"
        )
        found = [own if each is SPO else each for each in found]
    return found
