"""CVRP instances of CSV files: the first row is the depot."""

from fractions import Fraction
from pathlib import Path

from spo_jax.envs.files.reading import AS_STATED, Reading
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.cvrp.files.loads import (
    amount,
    depots_own,
    positive,
    require_demand,
    vehicle_limit,
    whole,
)
from spo_jax.envs.problems.tsp.files.tables import NO_REFERENCE, Table, read_table


def read(path: str | Path, reading: Reading = AS_STATED) -> Instance:
    """A CVRP instance of a table with a column demand, the depot first.

    The capacity is that of `reading`, or of a column that has it in one row or alike in all. Raises
    InputError.
    """
    table = read_table(path)
    limit, name = _capacity(table, reading)
    demands, remarks = _demands(table, limit, name)
    scaled, capacity, scaling = whole(demands, limit)
    found = table.weights(reading.distances)
    file = table.file(found, reading.distances, ("demand", "capacity"))
    depot = f"the depot is the first row{f' ({table.names[0]})' if table.names else ''}"
    file["remarks"] = [*file.get("remarks", ()), depot, *remarks, *scaling]
    return Instance(
        problem="cvrp",
        name=table.path.stem,
        size=len(table.lines) - 1,
        coords=table.coords,  # type: ignore[arg-type]
        dist=found.dist,
        demands=scaled,
        capacity=capacity,
        extra=vehicle_limit(scaled, capacity, reading.vehicles, "--vehicles", None, table.fail),
        reference_source=NO_REFERENCE,
        file=file,
    )


def _capacity(table: Table, reading: Reading) -> tuple[Fraction, str]:
    """The capacity, and what it is called."""
    given = reading.capacity
    words = {word: line for word, line in zip(table.columns.get("capacity", ()), table.lines,
             strict=False) if word}  # fmt: skip
    if given is not None:
        if words:
            table.fail("there is a column capacity: --capacity is for files without one")
        return positive(
            amount(str(given), "--capacity", None, table.fail), "--capacity", None, table.fail
        ), "--capacity"
    if not words:
        table.fail("there is no capacity: give --capacity, or add a column capacity")
    if len(words) > 1:
        _, (word, line), *_ = words.items()
        table.fail(f"a second capacity {word}: all vehicles have the same one", line)
    [(word, line)] = words.items()
    capacity = amount(word, "capacity", line, table.fail)
    return positive(capacity, "the capacity", line, table.fail), "the capacity"


def _demands(table: Table, capacity: Fraction, limit: str) -> tuple[list[Fraction], list[str]]:
    """The demand of each row, that of the depot 0, and remarks."""
    if "demand" not in table.columns:
        table.fail("there is no column demand")
    demands: list[Fraction] = []
    remarks = []
    for k, (word, line) in enumerate(zip(table.columns["demand"], table.lines, strict=True)):
        if k == 0 and not word:
            word = "0"
        if not word:
            table.fail("the demand is missing", line)
        demand = amount(word, "demand", line, table.fail)
        if k == 0:
            remarks = depots_own(demand)
            demand = Fraction(0)
        else:
            who = table.names[k] if table.names else f"row {k + 1}"
            require_demand(demand, capacity, who, line, limit, table.fail)
        demands.append(demand)
    return demands, remarks
