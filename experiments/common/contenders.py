"""The methods that are compared: those of the paper's Table 1 in its order, each with its look.

A method's colour, marker and line are the same in every figure: handcrafted methods are grey,
discovery methods have colours that colour-blind people distinguish (Okabe and Ito 2008), and SPO
has the strongest of them with the widest line.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spo_jax.envs.run.adaptive import PLAIN, Adaptation
from spo_jax.errors import InputError
from spo_jax.runs.pairs import is_shipped

HANDCRAFTED, DISCOVERY, OURS = "handcrafted", "discovery", "ours"
FAMILIES = (HANDCRAFTED, DISCOVERY, OURS)
BOTH = ("tsp", "cvrp")
EQUAL_PAIRS = " (equal pairs)"  # in the label of a row with another budget than its method's


@dataclass(frozen=True, eq=False)
class Contender:
    """A method that is compared.

    name: in files and on the command line. label: as in the paper's tables. family: one of
    FAMILIES. colour, marker, line, width: of its curve. problems: that it is for. One of these
    gives its results: baseline, a name of `spo baseline`; settings, of `spo discover`, besides the
    budget's; pair, a file or a run; operators, a file of G-LNS's, which a search by the numbers of
    `adaptation` draws. note: what a table with it must say.
    """

    name: str
    label: str
    family: str
    colour: str
    marker: str
    line: str = "-"
    width: float = 1.4
    problems: tuple[str, ...] = BOTH
    baseline: str | None = None
    settings: Mapping[str, Any] | None = None
    pair: Path | str | None = None
    operators: Path | None = None
    adaptation: Adaptation = PLAIN
    note: str = ""

    @property
    def discovered(self) -> bool:
        return self.settings is not None


def _by_hand(
    name: str, label: str, look: tuple[str, str, str], problems: Any = BOTH, note: str = ""
) -> Contender:
    return Contender(name, label, HANDCRAFTED, *look, problems=problems, baseline=name, note=note)


def _method(name: str, label: str, look: tuple[str, str, str], note: str = "") -> Contender:
    return Contender(name, label, DISCOVERY, *look, settings={"method": name}, note=note)


def _variant(
    name: str, label: str, look: tuple[str, str, str], note: str = "", **own: Any
) -> Contender:
    return Contender(name, label, OURS, *look, 1.8, settings=own, note=note)


SPO = Contender("spo", "SPO", OURS, "#D55E00", "o", "-", 2.8, settings={})
_TSP, _CVRP = ("tsp",), ("cvrp",)
EXAMPLE = "as its own examples run it; not in the paper"
_ALL = (
    _by_hand("nearest-neighbor", "NN", ("#A9A9A9", "x", ":"), _TSP),
    _by_hand("farthest-insertion", "FI", ("#8F8F8F", "+", ":"), _TSP),
    _by_hand("clarke-wright", "CW", ("#A9A9A9", "x", ":"), _CVRP),
    _by_hand("or-tools", "OR-Tools", ("#757575", "1", "-."), _CVRP),
    _by_hand("or-tools-default", "OR-Tools (default)", ("#9A9A9A", "1", ":"), _CVRP, EXAMPLE),
    _by_hand("2-opt", "2-opt", ("#757575", "2", "-."), _TSP),
    _by_hand("3-opt", "3-opt", ("#555555", "3", "-."), _TSP),
    _by_hand("local-search", "LS", ("#555555", "3", "-."), _CVRP),
    _by_hand("alns", "ALNS", ("#1A1A1A", "*", "--")),
    _by_hand("alns-example", "ALNS (example)", ("#3D3D3D", "*", ":"), BOTH, EXAMPLE),
    _method("eoh", "EoH", ("#0072B2", "s", "--")),
    _method("funsearch", "FunSearch", ("#009E73", "^", "-.")),
    _method("reevo", "ReEvo", ("#CC79A7", "v", ":")),
    _method("g-lns", "G-LNS", ("#E69F00", "D", "--"), "the paper ran its released operators"),
    _method("mcts-ahd", "MCTS-AHD", ("#332288", "<", "-."), "not in the paper"),
    _method("hsevo", "HSEvo", ("#999933", ">", ":"), "not in the paper"),
    _method("best-of-n", "Best-of-N", ("#56B4E9", "P", ":"), "not in the paper"),
    SPO,
)
CONTENDERS: dict[str, Contender] = {each.name: each for each in _ALL}

ABLATIONS = (  # Table 2, in its order
    SPO,
    _variant("spo-shared", "w/o Stackelberg Credit", ("#882255", "s", "--"), credit="shared"),
    _variant("spo-no-state", "w/o State Conditioning", ("#117733", "^", "-."), state=False),
)
SHARED_LEARNING = _variant(
    "spo-shared-learning", "w/o Stackelberg in learning", ("#AA4499", "D", "-."),
    "shared credit in the update alone; not in the paper", learning_credit="shared",
)  # fmt: skip
NEITHER = _variant(
    "spo-neither", "w/o either", ("#AA7744", "v", ":"), "not in the paper",
    credit="shared", state=False,
)  # fmt: skip

RELEASED = (  # of G-LNS: what a file of its authors' operators does, in two searches
    Contender(
        "g-lns-released-alns", "G-LNS (released, its ALNS)", DISCOVERY, "#5C3A00", "d", ":",
        adaptation=Adaptation(),
        note="its authors' operators in their adaptive search, annealing from T = 100",
    ),
    Contender(
        "g-lns-released", "G-LNS (released)", DISCOVERY, "#8C5A00", "d", "-.", adaptation=PLAIN,
        note="its authors' operators, drawn uniformly, in our LNS",
    ),
)  # fmt: skip


def add_arguments(parser: ArgumentParser) -> None:
    """--contenders, --pair, --glns and --also, which `asked` reads."""
    parser.add_argument(
        "--contenders", metavar="NAME,...", help=f"only these of {', '.join(CONTENDERS)}"
    )
    parser.add_argument("--pair", metavar="FILE", help="a pair or run for SPO, without discovery")
    parser.add_argument("--glns", metavar="FILE", help="released operators of G-LNS, as two rows")
    parser.add_argument(
        "--also", nargs="+", default=(), metavar="FILE",
        help="pairs or runs as rows of their own; shipped is the pair that ships",
    )  # fmt: skip


def asked(args: Namespace) -> list[Contender]:
    """The contenders of the command line, in the paper's order.

    Raises InputError for an unknown name, a file that does not exist, and a label used twice.
    """
    for path in filter(None, (*args.also, args.pair, args.glns)):
        if not Path(path).exists() and (path == args.glns or not is_shipped(path)):
            raise InputError(f"{path}: there is no such file")
    found = [each for each in CONTENDERS.values() if args.problem in each.problems]
    if args.contenders:
        wanted = [name.strip() for name in args.contenders.split(",")]
        known = [each.name for each in found]
        for name in wanted:
            if name not in known:
                raise InputError(
                    f"no contender {name!r} for {args.problem}: use {', '.join(known)}"
                )
        found = [each for each in found if each.name in wanted]
    if args.pair:
        if SPO not in found:
            raise InputError(f"--pair {args.pair} stands for spo: add spo to --contenders")
        own = Path(args.pair)
        found[found.index(SPO)] = replace(
            SPO, settings=None, pair=_given(args.pair), note=f"pair {own.name}"
        )
    if args.glns:
        place = sum(each.family != OURS for each in found)
        found[place:place] = [replace(each, operators=Path(args.glns)) for each in RELEASED]
    for name in args.also:
        path = Path(name)
        if path.stem in {each.label for each in (*CONTENDERS.values(), *found)}:
            raise InputError(f"--also {path}: another row has the label {path.stem}")
        found.append(Contender(
            f"given-{path.stem}", path.stem, OURS, "#7B3F9E", "h", "-", 2.0, pair=_given(name)
        ))  # fmt: skip
    return found


def _given(name: str) -> Path | str:
    """The path of a pair or a run; the name of the pair that ships stays a name."""
    return name if is_shipped(name) else Path(name)
