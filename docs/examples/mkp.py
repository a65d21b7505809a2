"""The multidimensional knapsack: items with profits; together they take no more than there is.

A solution is the list of the items that are taken, in ascending order. The profit is maximised.
"""

from pathlib import Path
from types import MappingProxyType

import numpy as np

from spo_jax.envs.problem import Baseline, Infeasible, Instance, Problem, Rules
from spo_jax.envs.views import node_list
from spo_jax.errors import InputError
from spo_jax.program import Argument, Interface
from spo_jax.seeding import numpy_rng

HERE = Path(__file__).parent


class MKPRules(Rules):
    """The worker's half: where a rollout starts, what repair may return, what that is worth."""

    partial = "partial_items"

    def start(self, rng):
        order = list(range(self.size))
        rng.shuffle(order)
        return self.filled(order)

    def filled(self, order):
        """The items that fit, one after the other, in an order."""
        _, weights, capacities = self.arguments("rows")
        room, items = list(capacities), []
        for item in order:
            left = [free - weight for free, weight in zip(room, weights[item], strict=True)]
            if min(left) >= 0:
                room = left
                items.append(item)
        return sorted(items)

    def repaired(self, output):
        items = node_list(output)  # None unless it is a list of integers
        if items is None or len(set(items)) != len(items) or not set(items) <= {*range(self.size)}:
            raise Infeasible("complete_items must be a list of different items")
        _, weights, capacities = self.arguments("rows")
        for resource, capacity in enumerate(capacities):
            if sum(weights[item][resource] for item in items) > capacity:
                raise Infeasible("the items take more than there is of a resource")
        return sorted(items)

    def cost(self, solution):
        profits, _, _ = self.arguments("rows")
        return float(sum(profits[item] for item in solution))


class MKP(Problem):
    """The parent's half: instances, a greedy construction, references, and what prompts say."""

    name = "mkp"
    maximise = True
    unit = "items"
    suffixes = (".mkp",)
    interface = Interface(
        (
            Argument("profits", "row", "the profit of item i"),
            Argument("weights", "matrix", "what item i takes of resource j, as a matrix"),
            Argument("capacities", "row", "how much there is of resource i"),
        ),
        "current_items",
    )
    pair = str(HERE / "mkp_pair.py")
    cp_sat = Baseline("mkp_cp_sat:cp_sat", seeded=True, needs=("ortools", "solvers"))
    baselines = MappingProxyType({"cp-sat": cp_sat})
    quick_reference = 100

    def sample(self, size, count, seed):
        """As Chu and Beasley (1998): five resources, of each half of what all items take."""
        found = []
        for k in range(count):
            rng = numpy_rng(self.name, size, seed, k)
            weights = rng.integers(1, 1001, (size, 5))
            profits = weights.sum(axis=1) // 5 + rng.integers(0, 501, size)
            name = f"uniform-{size}-{k}@{seed}"
            found.append(self.made(name, profits, weights, weights.sum(axis=0) // 2))
        return found

    def read(self, path):
        """One problem of OR-Library's: 1, the numbers of items and resources, the best known profit
        (0: unknown), then the profits, what items take of each resource, and the capacities.
        """
        try:
            count, size, resources, best, *rest = map(int, Path(path).read_text("utf-8").split())
            if count != 1:
                raise ValueError(f"it has {count} problems; write each into a file, after a 1")
            table = np.array(rest[:-resources]).reshape(resources + 1, size)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is no multidimensional knapsack: {error}") from None
        capacities = np.array(rest[-resources:])
        return self.made(Path(path).stem, table[0], table[1:].T, capacities, best or None)

    def made(self, name, profits, weights, capacities, best=None):
        extra = {"profits": profits, "weights": weights, "capacities": capacities}
        if any((array < 0).any() for array in extra.values()) or not profits.size:
            raise InputError(f"{name}: profits, weights and capacities must be 0 or more")
        if not (weights <= capacities).all(axis=1).any():
            raise InputError(f"{name}: no item fits")
        source = "the file" if best else "unknown"
        return Instance(
            self.name, name, len(profits), extra=extra, reference=best, reference_source=source
        )

    def rules(self, instance):
        return MKPRules(instance, *instance.extra.values())

    def construct(self, instance, until=None):
        """The items by their profits for what they take of all capacities, as long as they fit."""
        profits, weights, capacities = instance.extra.values()
        takes = (weights / np.maximum(capacities, 1)).sum(axis=1)
        order = np.argsort(-profits / np.maximum(takes, 1e-9), kind="stable")
        return self.rules(instance).filled(order.tolist())

    def solve_reference(self, instance, effort):
        from mkp_cp_sat import cp_sat

        seconds = 1 if effort == "quick" else 30
        return cp_sat(instance, 0, seconds=seconds), f"CP-SAT, {seconds} s", False

    def frame(self, role):
        return (HERE / f"mkp-{role}.txt").read_text("utf-8")

    def contract(self, role):
        return self.frame(role).partition("#frame")[0]
