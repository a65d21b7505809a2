"""What the header of a TSPLIB or CVRPLIB file asks for, and what of it no reader of ours knows.

Constraints that the problem does not have are refused; other fields are named in a remark.
"""

import re
from collections.abc import Iterable, Sequence

from spo_jax.envs.files.textfiles import Document, shown

# What other problems are called, for a sentence that refuses their files.
_TIMES = "the VRP with time windows: --problem vrptw"
_KINDS = {
    "ATSP": "the asymmetric TSP",
    "HCP": "Hamiltonian cycles",
    "HPP": "Hamiltonian paths",
    "SOP": "the sequential ordering problem",
    "TSPTW": "the TSP with time windows",
    "MTSP": "the TSP with several salesmen",
    "ACVRP": "the asymmetric CVRP",
    "CVRPTW": _TIMES,
    "VRPTW": _TIMES,
    "MDVRP": "the VRP with several depots",
    "OVRP": "the VRP with open routes",
    "SDVRP": "the VRP with split deliveries",
    "VRPB": "the VRP with backhauls",
    "PDPTW": "pickup and delivery with time windows",
}
_SECTIONS = {
    "TIME_WINDOW_SECTION": _TIMES,
    "BACKHAUL_SECTION": _KINDS["VRPB"],
    "PICKUP_AND_DELIVERY_SECTION": "pickup and delivery",
    "FIXED_EDGES_SECTION": "a TSP with fixed edges",
}

# Fields about the file or its solution, which ask for nothing.
ABOUT = {"NAME", "TYPE", "COMMENT", "DIMENSION", "AUTHOR", "AUTHORS", "DATE", "REFERENCE", "SOURCE"}
ABOUT |= {"BEST_KNOWN", "OPTIMAL_VALUE", "OPTIMUM", "OPTIMAL", "LENGTH", "TOUR_LENGTH", "COST"}
ABOUT |= {"BEST_KNOWN_COST", "OPTIMAL_COST", "SOLVER"}
_READ = {"EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE"}

_LENGTH = re.compile("DIST|DURATION|LENGTH|TIME|RANGE")
_BARE_LIMIT = re.compile("(VEHICLES?|ROUTES?|TOURS?|SHIFT)*(DISTANCE|DURATION)|(ROUTE|TOUR)LENGTH")
_ROUTE_LIMIT = re.compile(
    "(MAX|MAXIMUM|VEHICLES?|ROUTES?|TOURS?|SHIFT)*(DISTANCE|DURATION|LENGTH)(MAX|LIMIT)?"
)
# What a word of a field begins with that asks for another problem.
_BOUND = re.compile(
    "(^|_)(MAX|MIN(?!UTE)|LIMIT|MTSP|WINDOW|TWS?(?=_|$)|TIME_?WINDOW|TMAX|DEADLINE|HORIZON|RANGE|OPEN|BACKHAUL"
    "|LINEHAUL|PICKUP|DELIVER|PRECEDENCE|FORBIDDEN|REQUIRED|FIXED_EDGE|SKILL|PRIORIT|SPLIT|DEPOTS"
    "|OBJECTIVE|COMPATIB|INCOMPATIB|PRIZE|PROFIT|BATTERY|FUEL|BREAK|SHIFT|TRIP|PERIOD|STACK"
    "|VEHICLE_CAPACIT|CAPACIT(Y|IES)_?[0-9S])"
)
# Values with which a field asks for nothing: none of it, or what the problem is anyway.
_IDLE = {"0", "NO", "NONE", "FALSE", "OFF", "N", "F", "-", "NULL"}
_IDLE |= {"MIN", "MINIMIZE", "MINIMISE", "DISTANCE", "TOTAL_DISTANCE", "LENGTH", "MINSUM", "COST"}
_FLEET = re.compile(
    "(MAX|MAXIMUM|NUM|NUMBER|NUMBEROF|NUMOF|NOOF|NO)?(VEHICLES?|TRUCKS?|SALESMEN)"
    "|(VEHICLES?|TRUCKS?)(COUNT|NUMBER|NUM)|FLEET(SIZE)?"
)


def is_limit(key: str) -> bool:
    """Whether a field is a limit on the length or the duration of routes."""
    word = key.replace("_", "")
    bound = "MAX" in word or "LIMIT" in word
    return bool(_BARE_LIMIT.fullmatch(word)) or bool(bound and _LENGTH.search(word))


def is_route_limit(key: str) -> bool:
    """Whether a limit (`is_limit`) is one on each whole route: VEHICLES_MAX_OVERTIME is not."""
    return bool(_ROUTE_LIMIT.fullmatch(key.replace("_", "")))


def limits_length(key: str) -> bool:
    """Whether a limit on routes is one on their length alone, without service times.

    DISTANCE is LKH-3's and CVRPLIB's limit on the duration; PyVRP has VEHICLES_MAX_DISTANCE too.
    """
    word = key.replace("_", "")
    return word != "DISTANCE" and ("DIST" in word or "LENGTH" in word)


def is_fleet(key: str) -> bool:
    """Whether a field is a number of vehicles."""
    return bool(_FLEET.fullmatch(key.replace("_", "")))


def require_kind(
    document: Document, kinds: Sequence[str], weights: Iterable[str], known: set[str]
) -> tuple[str, str]:
    """The TYPE of a file, one of `kinds`, and its EDGE_WEIGHT_TYPE. Raises InputError.

    Refuses sections outside `known`: they may state constraints that we do not enforce.
    """
    found = document.text("TYPE").split()[0].upper()
    if found not in kinds:
        known_as = f" ({_KINDS[found]})" if found in _KINDS else ""
        line = document.fields["TYPE"][0]
        document.fail(f"TYPE is {shown(found)}{known_as}, expected {' or '.join(kinds)}", line)
    weight = document.text("EDGE_WEIGHT_TYPE").upper()
    if weight not in weights:
        document.fail(
            f"EDGE_WEIGHT_TYPE {shown(weight)} is not supported; supported: {', '.join(weights)}",
            document.fields["EDGE_WEIGHT_TYPE"][0],
        )
    for key in document.sections:
        if key not in known:
            known_as = f" ({_SECTIONS[key]})" if key in _SECTIONS else ""
            document.fail(f"{key} is not supported{known_as}")
    return found, weight


def unused(document: Document, known: Iterable[str]) -> list[str]:
    """A remark on the fields that nobody reads, and on lines after EOF.

    known: the fields that the problem reads. Raises InputError for a field that bounds something.
    """
    found = []
    for key, (line, value) in document.fields.items():
        if key in known or key in ABOUT or key in _READ:
            continue
        idle = value.upper() in _IDLE or (key == "DEPOTS" and value == "1")
        if (is_limit(key) or _BOUND.search(key)) and not idle:
            document.fail(f"{key} {value} is a constraint that is not supported", line)
        found.append(key)
    remarks = [f"not used: {', '.join(found)}"] if found else []
    if document.after is not None:
        remarks.append(f"not read: line {document.after}, which follows EOF")
    return remarks


def instance_name(document: Document, suffix: str) -> str:
    """The NAME field without a file suffix, else the file's name without it."""
    _, name = document.fields.get("NAME", (0, ""))
    return (name or document.path.name).removesuffix(suffix) or document.path.stem
