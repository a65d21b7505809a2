"""What is told of measured tables: what J is made of, and rounds replayed from them."""

from collections.abc import Mapping, Sequence

import numpy as np

from spo_jax.search.lab.power import interval
from spo_jax.search.lab.racing import races
from spo_jax.search.lab.replay import (
    MEASURES,
    PANELS,
    compare,
    own_answers,
    panel_ranks,
    replay,
)
from spo_jax.search.lab.schemes import Scheme
from spo_jax.search.lab.shares import bootstrap
from spo_jax.search.lab.show import markdown
from spo_jax.search.lab.study import Row, distinct
from spo_jax.search.lab.tables import Table

PARTS = ("leader", "follower", "interaction", "noise")
TOPS = (1, 4, 8)  # of the paper's credit, beside its 2
PANEL_RESPONSES = 6
MOST_SEEN = 3  # evaluations of a pair, with which there is a race


def made_of(tables: Mapping[str, Table]) -> str:
    """Shares of the variance of J, with bootstrap intervals, and where they lie in the picture."""
    heads = ["table", "programs", "step", "at the lowest cost", "mean J", "sd of J", *PARTS,
             "gamma", "noise / leader", "spread", "own answer"]  # fmt: skip
    rows = []
    for name, table in tables.items():
        shares, ends = table.shares, bootstrap(table.scores)
        parts = [
            f"{getattr(shares, part) / (shares.total or 1):.0%} ({low:.0%} to {high:.0%})"
            for part, (low, high) in ((part, ends[part]) for part in PARTS)
        ]
        knobs = [
            f"{value:.2f} ({ends[each][0]:.2f} to {ends[each][1]:.2f})"
            for each, value in (
                ("gamma", shares.gamma), ("noise_in_leaders", shares.noise_in_leaders),
            )
        ]  # fmt: skip
        unit = np.sqrt(shares.leader) or 1.0
        gain = [each / unit for each in own_answers(table)]
        own = f"{gain[0]:+.2f} ({gain[1]:+.2f} to {gain[2]:+.2f})" if np.isfinite(gain[1]) else ""
        rows.append([
            name, " x ".join(map(str, table.utility.shape)), str(table.step or ""),
            f"{table.lowest:.0%}" if np.isfinite(table.lowest) else "",
            f"{table.utility.mean():.4f}", f"{table.utility.std():.4f}", *parts, *knobs,
            f"{shares.spread:.2f}", own,
        ])  # fmt: skip
    return f"What J of real programs is made of\n\n{markdown(heads, rows)}\n"


def replayed(
    name: str, table: Table, schemes: Sequence[Scheme], responses: Sequence[int], seeds: int,
    seed: int,
) -> str:  # fmt: skip
    """Schemes, L, numbers of responses and panel sizes, over so many rounds of a table."""
    known = [count for count in responses if count <= table.utility.shape[1]]
    tried = distinct(schemes)
    labels = {scheme.label for scheme in tried}
    tops = [Scheme("stackelberg", top) for top in TOPS]
    tried += [scheme for scheme in tops if scheme.label not in labels]
    rows = compare(tried, table, known, seeds, seed)
    lines = []
    for scheme in tried:
        cells = []
        for measure in MEASURES:
            for count in known:
                [own] = [
                    row for row in rows
                    if (row.scheme, row.measure, row.where["pairs"])
                    == (scheme.label, measure, count)
                ]  # fmt: skip
                cells.append(_cell(own))
        lines.append([scheme.label, *cells])
    heads = [f"{text}, {count}" for text in MEASURES.values() for count in known]
    text = (
        f"Rounds replayed from {name}, {seeds} seeds: by evaluated pairs a leader; * apart from "
        f"{tried[0].label}\n\n{markdown(['scheme', *heads], lines)}\n"
    )
    rounds = replay(table, min(PANEL_RESPONSES, table.utility.shape[1]), seeds, seed=seed)
    sizes = [size for size in PANELS if size <= rounds.leaders.shape[1]]
    found = [interval(panel_ranks(table, size, rounds)) for size in sizes]
    cells = [f"{mean:.2f} ({low:.2f} to {high:.2f})" for mean, low, high in found]
    told = markdown(["panel", *map(str, sizes)], [["rank correlation of repairs", *cells]])
    text += f"\nRepairs judged on a panel of destroys, {name}\n\n{told}\n"
    if table.scores.shape[2] < MOST_SEEN:
        return text
    whole = replay(
        table, rounds.source.shape[2], seeds, evaluations=table.scores.shape[2], seed=seed
    )
    heads = ["rule", "evaluations", "best pair kept", "best quarter kept", "bias of J, sd",
             "rank correlation", "regret"]  # fmt: skip
    told = markdown(heads, races(table, whole, tried[0]))
    return (
        f"{text}\nRaces: pairs that go on with all of {whole.seen.shape[1]} evaluations, {name}\n\n"
        f"{told}\n"
    )


def _cell(row: Row) -> str:
    apart = row.start > 0 or row.end < 0
    digits = f"{row.mean:.2f}" if row.measure == "rank" else f"{row.mean:.5f}"
    return f"{digits}*" if apart else digits
