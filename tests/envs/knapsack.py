"""The knapsack, whose profit is to be as large as possible: the items in it are a list.

`Debts` is the same with minus the profit as a cost, as one would write it without `maximise`.
"""

from dataclasses import replace
from itertools import combinations
from math import fsum
from pathlib import Path

from spo_jax.envs.problem import Infeasible, Instance, Problem, Rules
from spo_jax.envs.views import node_list
from spo_jax.program import Argument, Interface
from spo_jax.program.grammar.base import Grammar, choice
from spo_jax.seeding import numpy_rng

WORTH = {"the worst": "rng.random() * worth", "at random": "rng.random()"}


class KnapsackRules(Rules):
    def start(self, rng):
        items = list(range(self.size))
        rng.shuffle(items)
        return [*self.packed(items)]

    def packed(self, items):
        _, weights, room = self.arguments("rows")
        for item in items:
            if weights[item] <= room:
                room -= weights[item]
                yield item

    def repaired(self, output):
        _, weights, room = self.arguments("rows")
        items = node_list(output)
        if items is None or len(set(items)) < len(items) or not set(items) <= {*range(self.size)}:
            raise Infeasible("not a list of different items")
        if sum(weights[item] for item in items) > room:
            raise Infeasible("more than there is room for")
        return items

    def cost(self, solution):
        profits = self.arguments("rows")[0]
        return fsum(profits[item] for item in solution)


class Knapsack(Problem):
    name = "knapsack"
    maximise = True
    unit = "items"
    suffixes = (".knapsack",)
    interface = Interface(
        (Argument("profits", "row"), Argument("weights", "row"), Argument("room", "scalar")),
        "chosen",
    )

    def sample(self, size, count, seed):
        def made(k):
            rng = numpy_rng("knapsack", size, seed, k)
            weights = rng.integers(5, 30, size)
            extra = {"profits": weights + rng.integers(1, 20, size), "weights": weights}
            extra["room"] = int(weights.sum()) // 2
            return Instance(self.name, f"bag-{size}-{k}@{seed}", size, extra=extra)

        return [made(k) for k in range(count)]

    def read(self, path):
        size, seed = map(int, Path(path).read_text().split())
        return replace(self.sample(size, 1, seed)[0], name=str(path))

    def rules(self, instance):
        return KnapsackRules(instance, *instance.extra.values())

    def lower_bound(self, instance):
        return float(instance.extra["profits"].sum())

    def solve_reference(self, instance, effort):
        return optimum(instance), "every subset", True

    quick_reference = 14

    def contract(self, role):
        paired = "$paired_destroy" if role == "repair" else ""
        return f"Choose items. $state_input $adaptation {paired}"

    def grammar(self, role, kit=False):
        return GRAMMARS[role]

    def export(self):
        return EXPORT


class DebtRules(KnapsackRules):
    def cost(self, solution):
        return -super().cost(solution)


class Debts(Knapsack):
    name = "debts"
    maximise = False

    def sample(self, size, count, seed):
        return [replace(each, problem=self.name) for each in super().sample(size, count, seed)]

    def rules(self, instance):
        return DebtRules(instance, *instance.extra.values())

    def lower_bound(self, instance):
        return -super().lower_bound(instance)


def optimum(instance):
    """The best subset of a few items, by looking at all."""
    profits, weights, room = instance.extra.values()
    every = range(instance.size)
    fitting = (
        list(items)
        for count in range(instance.size + 1)
        for items in combinations(every, count)
        if weights[list(items)].sum() <= room
    )
    return max(fitting, key=lambda items: profits[items].sum())


# --- a grammar ------------------------------------------------------------------------------------


def destroy(choices):
    source = f"""def destroy(profits, weights, room, chosen, steps_since_improvement, rng):
    def key(item):
        return {choices["key"]}
    removed = sorted(chosen, key=key)[:{choices["count"]}]
    return [item for item in chosen if item not in removed], removed
"""
    return f"Takes out {choices['count']} items by {choices['key']}.", source


def repair(choices):
    source = f"""def repair(profits, weights, room, rest, removed, steps_since_improvement, rng):
    left = room - sum(weights[item] for item in rest)
    def key(item):
        return {choices["key"]}
    for item in sorted((v for v in range(len(profits)) if v not in rest), key=key):
        if weights[item] <= left:
            left -= weights[item]
            rest.append(item)
    return rest
"""
    return f"Packs what fits by {choices['key']}.", source


KEYS = {
    "rng.random()": 1.0,
    "profits[item] / weights[item]": 1.0,
    "-profits[item] / weights[item]": 1.0,
    "-rng.random() * profits[item] / weights[item]": 1.0,
}
GRAMMARS = {
    "destroy": Grammar(
        "knapsack",
        "destroy",
        (choice("key", "mechanism", KEYS), choice("count", "control", {1: 1.0, 2: 1.0, 3: 1.0})),
        destroy,
    ),
    "repair": Grammar("knapsack", "repair", (choice("key", "mechanism", KEYS),), repair),
}

# --- an export ------------------------------------------------------------------------------------

EXPORT = '''"""A knapsack of items with profits and weights."""


def instance_of(profits, weights, room):
    return prepared(seen(np.asarray(profits, float)), seen(np.asarray(weights, float)), room)


def construct(profits, weights, room):
    return []


def complete(profits, weights, room, solution):
    items = [int(item) for item in solution]
    if len(set(items)) < len(items) or sum(weights[item] for item in items) > room:
        return None
    return items


def cost_of(profits, weights, room, solution):
    return float(sum(profits[item] for item in solution))
'''
