"""Tables that are written in many dialects are read as what they are, or refused with the line.

The known instance is the oracle: a dialect changes how it is written, and faults are put into it
that no reader can mend.
"""

import math
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spo_jax.envs.problems import get_problem
from spo_jax.errors import InputError

TSP, CVRP = get_problem("tsp"), get_problem("cvrp")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "latin-1")
GAPS = ("null", "inf", "NaN", "N/A", "#N/A", "None", "9223372036854775807", "-", "far", "")
often = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def numbers(draw):
    """How numbers are written; no reader can know what a number with a comma is."""
    fine = st.sampled_from([repr, "{:.17e}".format, "{:+.17G}".format, _short])
    return draw(fine if draw(st.integers(0, 4)) else st.sampled_from([_decimal_comma, _thousands]))


def _short(value):
    return str(int(value)) if float(value).is_integer() else repr(value)


def _decimal_comma(value):
    return f"{value:.6f}".replace(".", ",")


def _thousands(value):
    return f"{value:,.6f}"


def written(draw, path, rows):
    """Rows of words as a file; whether all of them stand in it as columns."""
    delimiter = draw(st.sampled_from(",;\t"))
    width = max(map(len, rows))
    if draw(st.booleans()):  # a column that is empty everywhere
        k = draw(st.integers(0, width))
        rows = [[*row[:k], "", *row[k:]] for row in rows]
    if draw(st.booleans()):  # separators at the end of some rows
        rows = [[*row, *[""] * draw(st.integers(0, 2))] for row in rows]
    quoted = draw(st.sampled_from([lambda word: False, lambda word: True, _needs_quotes]))
    lines = []
    for row in rows:
        words = [f'"{w}"' if quoted(w) or delimiter in w else w for w in row]
        lines.append((delimiter + draw(st.sampled_from(["", " "]))).join(words))
        if draw(st.integers(0, 5)) == 0:
            lines.append(draw(st.sampled_from(["", delimiter * width, "   "])))
    if draw(st.booleans()):
        lines.insert(0, "# made by hand")
    if draw(st.integers(0, 3)) == 0:
        lines.insert(0, f"sep={delimiter}")
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = end.join(lines) + draw(st.sampled_from(["", end]))
    path.write_bytes(text.encode(draw(st.sampled_from(ENCODINGS))))


def _needs_quotes(word):
    return not re.fullmatch(r"[0-9.eE+-]*", word)


def read(problem, path, **options):
    """The instance, or None where it is refused in one sentence that names a line if it has any."""
    try:
        return problem.read(path, **options)
    except InputError as error:
        message = str(error)
    if message == f"{path}: there are no rows":  # of a diagonal that is written as nothing
        assert not re.search(rb"[0-9]", path.read_bytes())
    else:
        assert re.search(r", line [0-9]+", message), message
    assert "\n" not in message
    assert len(message) < len(str(path)) + 200
    return None


@pytest.mark.long
@often
@given(st.data())
def test_matrices(tmp_path_factory, data):
    draw = data.draw
    n = draw(st.integers(2, 6))
    values = st.one_of(st.integers(0, 9), st.integers(0, 40000).map(lambda k: k / 4))
    dist = np.array(draw(st.lists(values, min_size=n * n, max_size=n * n)), float).reshape(n, n)
    if draw(st.booleans()):
        dist = np.triu(dist) + np.triu(dist, 1).T
    np.fill_diagonal(dist, 0)
    show = numbers(draw)
    rows = [[show(float(d)) for d in row] for row in dist]
    own = draw(st.sampled_from(["none", "words", "counted", "ids"]))
    names = {
        "words": ["Paris", "LON", "x", "y", "lat", "7 Dials"][:n],
        "counted": [str(k) for k in range(n)],
        "ids": [str(7 * k + 101) for k in range(n)],
    }.get(own)
    where = draw(st.sampled_from(["both", "row", "column"])) if names else ""
    diagonal = draw(st.sampled_from(["0", "0.0", ""]))
    for k in range(n):
        rows[k][k] = diagonal
    commas = any("," in word for row in rows for word in row)
    if where == "row":  # numbers may be a row, and names with x and y the columns of places
        clear = own == "counted" or (own == "words" and n < 4)
    else:  # an empty diagonal needs names that are no numbers
        clear = bool(diagonal) or own == "words"
    fault = draw(st.integers(0, 3)) == 0
    if fault:
        i = draw(st.integers(0, n - 1))
        j = draw(st.integers(0, n - 1).filter(lambda j: j != i))
        word = draw(st.sampled_from(GAPS))
        rows[i][j] = word
        if draw(st.booleans()):
            rows[j][i] = word
    if where in ("both", "column"):
        rows = [[name, *row] for name, row in zip(names, rows, strict=True)]
    if where in ("both", "row"):
        corner = draw(st.sampled_from(["", "km", "from/to", "Unnamed: 0"]))
        rows = [[corner, *names] if where == "both" else list(names), *rows]
    path = tmp_path_factory.mktemp("m") / "m.csv"
    written(draw, path, rows)
    found = read(TSP, path)
    if fault or commas:
        assert found is None
    elif found is not None:
        assert found.dist.tolist() == dist.tolist()
    else:
        assert not clear or (own == "ids" and where == "column")


@pytest.mark.long
@often
@given(st.data())
def test_places(tmp_path_factory, data):
    draw = data.draw
    n = draw(st.integers(2, 7))
    values = st.integers(-4000, 4000).map(lambda k: k / 64)
    pairs = st.tuples(values, values)
    coords = draw(st.lists(pairs, min_size=n, max_size=n))
    needs = draw(st.lists(st.integers(0, 40).map(lambda k: k / 8), min_size=n, max_size=n))
    show = numbers(draw)
    columns = {
        draw(st.sampled_from(["x", "X", "xcoord"])): [show(x) for x, _ in coords],
        draw(st.sampled_from(["y", "Y", "y_coord"])): [show(y) for _, y in coords],
        draw(st.sampled_from(["demand", "Demands"])): ["", *(show(d) for d in needs[1:])],
    }
    if draw(st.booleans()):
        columns["name"] = [f"stop {k}; {'#' * (k > 0)}" for k in range(n)]
    if draw(st.booleans()):
        columns["Unnamed: 0"] = [str(k) for k in range(n)]
    heads = draw(st.permutations(list(columns)))
    commas = any("," in word for words in columns.values() for word in words)
    rows = [list(heads), *([columns[head][k] for head in heads] for k in range(n))]
    kind = draw(st.sampled_from(["", "", "word", "short", "totals"]))
    if kind == "word":
        k = heads.index(draw(st.sampled_from([h for h in heads if h.lower()[0] in "xyd"])))
        rows[draw(st.integers(2, n))][k] = draw(st.sampled_from(GAPS))
    elif kind == "short":
        del rows[draw(st.integers(1, n))][draw(st.integers(0, len(heads) - 1))]
    elif kind == "totals":
        last = {head: show(float(sum(needs[1:]))) for head in heads if head[0] in "dD"}
        last |= {head: "Total" for head in heads if head in ("name", "Unnamed: 0")}
        rows.append([last.get(head, "") for head in heads])
    path = tmp_path_factory.mktemp("p") / "p.csv"
    if kind == "short":
        path.write_text("\n".join(";".join(row) for row in rows))
    else:
        written(draw, path, rows)
    found = read(CVRP, path, capacity=6)
    if kind or commas:
        assert found is None
        return
    assert found is not None
    expected = [[math.dist(a, b) for b in coords] for a in coords]
    assert np.allclose(found.dist, expected, rtol=1e-14, atol=0)
    share = found.demands / found.capacity
    assert share.tolist() == [0, *(d / 6 for d in needs[1:])]
