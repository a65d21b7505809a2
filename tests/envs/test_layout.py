"""Which view of the distances a program gets, and that both views mean the same."""

import ast
import textwrap

import pytest

from spo_jax.envs.sandbox.layout import choose_layout
from spo_jax.program import entry_function

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
    return choose_layout(tree, entry_function(tree, "destroy"))


@pytest.mark.parametrize("body", ROWS.strip().splitlines())
def test_scalar_access_gets_rows(body: str) -> None:
    assert layout(body) == "rows"


@pytest.mark.parametrize("body", ARRAY.strip().splitlines())
def test_anything_else_gets_the_array(body: str) -> None:
    assert layout(body) == "array"
