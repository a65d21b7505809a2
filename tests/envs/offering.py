"""A user's problem, in one file, that offers whatever a problem may offer."""

import itertools
import json
from pathlib import Path
from types import MappingProxyType

import numpy as np
from third_problem import PathProblem

from spo_jax.envs.problem import Baseline, Instance
from spo_jax.envs.problems.tsp.files.tsplib import euclidean
from spo_jax.program.grammar.base import Grammar, choice

ADAPTER = '''
def destroy(dist, order, z, rng):
    """{destroy_strategy}"""
    operator = {destroy}
    taken = adapter_taken(operator(list(order), 2, None)[0], order, rng)
    return [node for node in order if node not in taken], taken


def repair(dist, order, removed, z, rng):
    """{repair_strategy}"""
    operator = {repair}
    return [int(node) for node in operator(list(order), list(removed), None)]
'''
DESTROY = """def destroy(dist, order, z, rng):
    removed = rng.sample(order, {count})
    return [node for node in order if node not in removed], removed
"""
REPAIR = """def repair(dist, order, removed, z, rng):
    for node in removed:
        order.insert(rng.randrange(len(order) + {count}), node)
    return order
"""


def straight(instance, seed):
    """The nodes by their number."""
    return [*range(1, instance.size)]


class Readable(PathProblem):
    """Reads files and offers nothing else."""

    suffixes = (".path", ".way")

    def read(self, path):
        coords = np.array(json.loads(Path(path).read_text()), float)
        return Instance(self.name, Path(path).stem, len(coords), coords, euclidean(coords))


class Whole(Readable):
    unit = "stops"
    baselines = MappingProxyType(
        {"straight": Baseline("offering:straight"), "gone": Baseline("x:y", needs=("x", "e"))}
    )

    def draw(self, axes, instance, solution):
        axes.bar(range(len(solution)), solution)

    def lower_bound(self, instance):
        return float(instance.dist.max()) / 2

    def solve_reference(self, instance, effort):
        orders = map(list, itertools.permutations(range(1, instance.size)))
        return min(orders, key=lambda order: self.cost(instance, order)), f"all, {effort}", True

    def contract(self, role):
        asked = "$state_input $adaptation" + " $paired_destroy" * (role == "repair")
        return f"Write a {role} of paths.\n{asked}\n"

    def grammar(self, role, kit=False):
        text = DESTROY if role == "destroy" else REPAIR
        slots = (choice("count", "mechanism", {1: 1.0, 2: 1.0}),)
        return Grammar(self.name, role, slots, lambda c: ("Any.", text.format(count=c["count"])))

    def operators(self):
        return ADAPTER
