"""Gaps: how many per cent the costs of pairs are above what the instances are known to cost.

The gap of a pair is the mean over the instances and their rollouts. An instance without a reference
is measured from the best cost that the run has seen, until then for the display of a round, in all
for the tables of a run. Costs are those that are minimised (`Problem.turned`), but rows of
references have them as they are. Nothing here can change a run.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from spo_jax.envs.gaps import reference_gap
from spo_jax.envs.report.reference_files import Row
from spo_jax.runs.records import ReferenceRecord
from spo_jax.runs.references import Found
from spo_jax.search.rounds import RESPONSE, Digests, Played, Round

SEEN = "the best cost that this run has seen"
NONE = "There are no gaps: a gap is a share of the best known cost, which is 0 of an instance"
_SO_FAR = "that this run has seen so far"
Costs = Sequence[float]  # [I * S], the rollouts of an instance side by side


class ReferenceCosts:
    """What costs are measured from. known: [I] references, NaN where there is none."""

    def __init__(self, known: Sequence[float]):
        self.known = np.asarray(known, dtype=np.float64)
        self._seen = np.full(len(self.known), np.nan)

    @property
    def costs(self) -> np.ndarray:
        """[I] float64: the references, else the lowest costs that were seen, else NaN."""
        return np.where(np.isnan(self.known), self._seen, self.known)

    def see(self, costs: Costs) -> None:
        """Take notice of what a pair cost."""
        if len(costs):
            self._seen = np.fmin(self._seen, np.reshape(costs, (len(self.known), -1)).min(axis=1))

    def gap(self, costs: Costs) -> float:
        """The mean gap in per cent.

        NaN without costs, and where an instance has nothing to be measured from but 0.
        """
        if not len(costs) or not len(self.known):
            return math.nan
        gaps = reference_gap(np.reshape(costs, (len(self.known), -1)), self.costs[:, None])
        return math.fsum(gaps.ravel()) / gaps.size


def middle(gaps: Iterable[float]) -> float:
    """The median of the gaps that are known, NaN without any."""
    finite = [gap for gap in gaps if not math.isnan(gap)]
    return median(finite) if finite else math.nan


@dataclass(frozen=True)
class RoundGaps:
    """Where a run stands after a round, in per cent, NaN where it is not known.

    best: the gap of the best pair so far. medians: of each round's new pairs, this one's last.
    basis: what the gaps are measured from, or why there are none, in the first one of a session;
    else "".
    """

    best: float = math.nan
    medians: tuple[float, ...] = ()
    basis: str = ""

    @property
    def median(self) -> float:
        return self.medians[-1] if self.medians else math.nan


class GapTracker:
    """The gaps of a run for its display, one round after the other.

    digests: of the training instances. found: their references. earlier: the pairs of each of the
    rounds before one that have costs, or None for a run that keeps none and so has no gaps. The
    first round that is over asks for both. maximise: as `Problem.maximise`.
    """

    def __init__(
        self,
        digests: Sequence[str],
        found: Callable[[], Found],
        earlier: Callable[[int], Mapping[int, Sequence[Played]] | None],
        maximise: bool = False,
    ):
        self._maximise, self._digests = maximise, digests
        self._found, self._earlier = found, earlier
        self._base: ReferenceCosts | None = None
        self._paid: dict[Digests, Costs] = {}
        self._medians: list[float] = []

    def __call__(self, done: Round) -> RoundGaps:
        """After a round that was committed."""
        basis = ""
        if self._base is None:
            earlier = self._earlier(done.number)
            if earlier is None:
                return RoundGaps()
            found = self._found()
            rows = [found.rows.get(digest) for digest in self._digests]
            self._base = ReferenceCosts(_minimised(rows, self._maximise))
            basis = sentence(rows, found.remark)
            if (self._base.known == 0).any():
                basis = NONE
            for pairs in earlier.values():
                self._add(self._base, pairs)
        self._add(self._base, done.pairs)
        best = math.nan
        if done.best is not None:
            pair = done.best.pair
            best = self._base.gap(self._paid.get((pair.destroy.digest, pair.repair.digest), ()))
        return RoundGaps(best, tuple(self._medians), basis)

    def _add(self, base: ReferenceCosts, pairs: Sequence[Played]) -> None:
        for each in pairs:
            base.see(each.costs)
            self._paid[each.digests] = each.costs
        new = (base.gap(each.costs) for each in pairs if each.kind == RESPONSE)
        self._medians.append(middle(new))


def sentence(rows: Sequence[Row | None], remark: str = "") -> str:
    """What the gaps of a run are measured from. rows: references of the training instances."""
    proven = sum(row is not None and row.certified for row in rows)
    unknown = sum(row is None for row in rows)
    others = len(rows) - proven - unknown
    counts = [
        f"{count} {one if count == 1 else many}"
        for count, one, many in (
            (proven, "proven optimum", "proven optima"),
            (others, "best known cost", "best known costs"),
            (unknown, f"best cost {_SO_FAR}", f"best costs {_SO_FAR}"),
        )
        if count
    ]
    why = f" ({remark})" if remark and unknown else ""
    return f"Gaps of the training instances are to {' and '.join(counts)}{why}"


class Measured:
    """The gaps in the tables of a run.

    manifest, rows, training: its instances, the references in its folder by digest, and what its
    pairs cost in training.
    """

    def __init__(
        self,
        manifest: Mapping[str, Any],
        rows: Mapping[str, Row],
        training: Mapping[Digests, Costs],
    ):
        self._paid, maximise = training, bool(manifest.get("maximise"))
        instances = (manifest.get("instances") or ()) if training else ()
        validation = manifest.get("validation") or ()
        self._base, self._validation = (
            ReferenceCosts(_minimised([rows.get(each["digest"]) for each in some], maximise))
            for some in (instances, validation)
        )
        for costs in training.values() if instances else ():
            self._base.see(costs)
        self.references = [
            ReferenceRecord(
                each["name"],
                each["size"],
                0.0 - float(cost) if maximise else float(cost),
                *_who(rows.get(each["digest"])),
            )
            for each, cost in zip(instances, self._base.costs, strict=True)
        ]

    def gap(self, pair: Digests) -> float:
        """The gap of a pair in training, NaN without its costs."""
        return self._base.gap(self._paid.get(pair, ()))

    def validated(self, costs: Costs) -> float:
        """The gap of a pair's costs in validation, NaN unless every instance has a reference."""
        return self._validation.gap(costs)


def _minimised(rows: Sequence[Row | None], maximise: bool) -> list[float]:
    costs = (math.nan if row is None else row.cost for row in rows)
    return [0.0 - cost if maximise else cost for cost in costs]


def _who(row: Row | None) -> tuple[bool, str]:
    """Whether a reference is proven, and its source."""
    return (False, SEEN) if row is None else (row.certified, row.source)
