"""Which view of the distances a program gets, and that both views mean the same."""

import ast
import textwrap

import pytest

from spo_jax.envs.problems.cvrp import CVRP
from spo_jax.envs.problems.tsp import TSP
from spo_jax.envs.run.sandbox.layout import choose_layout
from spo_jax.errors import InputError
from spo_jax.program import Argument, Interface, entry_function

ROWS = """
return dist[a][b]
row = dist[a]; return row[b]
ra, rb = dist[a], dist[b]; return ra[1] + rb[1]
return sorted(tour, key=lambda v: dist[a][v])
return min(dist[a]), sum(dist[a]), len(dist), max(dist[b])
return [d for d in dist[a]]
return [row[a] for row in dist]
return [row[a] for i, row in enumerate(dist)]
return near(dist, a)
return np.argsort(dist[a])[:3]
return (row := dist[a])[b]
return dist[a][1:][0]
"""
ARRAY = """
return dist[a, b]
return dist[a] + dist[b]
return dist.shape
return dist[[a, b]]
return np.asarray(dist)
return dist[a] * 2
return dist[a] < dist[b]
return dist[:, a]
row = dist[a]; row += [1]; return row
rows = [dist[a]]; return rows[0] + rows[0]
return list(dist)
return operator.add(dist[a], dist[b])
return (lambda r: r + r)(dist[a])
return dist[a] if a else dist[b]
dist *= 2; return dist
return near(*[dist, a])
return isinstance(dist, np.ndarray)
def pick(): return dist[a]
"""


def layout(body: str) -> str:
    source = "import numpy as np\nimport operator\ndef near(m, k):\n    return m[k][0]\n"
    source += "def destroy(dist, tour, z, rng):\n    a, b = tour[0], tour[1]\n"
    tree = ast.parse(source + textwrap.indent(body, "    "))
    return choose_layout(tree, entry_function(tree, "destroy"), TSP.interface)


@pytest.mark.parametrize("body", ROWS.strip().splitlines())
def test_scalar_access_gets_rows(body: str) -> None:
    assert layout(body) == "rows"


@pytest.mark.parametrize("body", ARRAY.strip().splitlines())
def test_anything_else_gets_the_array(body: str) -> None:
    assert layout(body) == "array"


# --- what a problem declares ----------------------------------------------------------------------

KINDS = ("matrix", "row", "scalar", "object")
USES = {  # of the argument `second`: the view that each kind of it allows
    "second[a][b]": {"matrix": "rows", "row": "rows", "scalar": "rows", "object": "rows"},
    "second[a]": {"matrix": "array", "row": "rows", "scalar": "rows", "object": "rows"},
    "(second * 2)[0][1]": {"matrix": "array", "row": "array", "scalar": "rows", "object": "rows"},
    "second + second": {"matrix": "array", "row": "array", "scalar": "rows", "object": "rows"},
    "max(second)": {"matrix": "array", "row": "rows", "scalar": "rows", "object": "rows"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("more", [0, 1, 2])
def test_the_view_is_chosen_by_what_is_declared(kind: str, use: str, more: int) -> None:
    """Not by the number of parameters, which tells nothing about what they are."""
    others = [f"more{k}" for k in range(more)]
    declared = [("dist", "matrix"), ("second", kind), *((name, "scalar") for name in others)]
    interface = Interface(tuple(Argument(*each) for each in declared))  # type: ignore[arg-type]
    names = ", ".join(["dist", "second", *others, "current", "z", "rng"])
    tree = ast.parse(f"def destroy({names}):\n    a, b = z, 1\n    return {use}, dist[a][b]\n")
    assert choose_layout(tree, entry_function(tree, "destroy"), interface) == USES[use][kind]


@pytest.mark.parametrize(
    ("head", "view"),
    [
        ("dist, demands, capacity, *rest", "rows"),
        ("dist, *rest", "array"),
        ("*everything", "array"),
        ("dist, demands, capacity, routes, z, rng, spare=1", "rows"),
    ],
)
def test_what_lies_in_the_rest_is_not_followed(head: str, view: str) -> None:
    tree = ast.parse(f"def destroy({head}):\n    return 1\n")
    assert choose_layout(tree, entry_function(tree, "destroy"), CVRP.interface) == view


def test_a_spare_parameter_is_no_row() -> None:
    """With two defaults it has as many parameters as a program of the CVRP."""
    tree = ast.parse(
        "def destroy(dist, tour, z, rng, k=1, m=2):\n    return tour + tour, dist[0]\n"
    )
    assert choose_layout(tree, entry_function(tree, "destroy"), TSP.interface) == "array"
    tree = ast.parse(
        "def destroy(dist, tour, z, rng, k=1, m=2):\n    return tour + tour, dist[0][1]\n"
    )
    assert choose_layout(tree, entry_function(tree, "destroy"), TSP.interface) == "rows"


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InputError, match="of kind 'vector': use matrix, row, scalar, object"):
        Argument("demands", "vector")  # type: ignore[arg-type]
