"""ALNS for the TSP as the example of the library `alns` has it: removals of edges, hill climbing.

A tour is an array of each node's successor, -1 where the edge that leaves it is removed. A tenth
of the edges is removed: at random, along a path, or the longest. The repair gives the nodes without
one, in random order, an edge to the nearest node that closes no smaller cycle.
"""

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.envs.problems.alns_example import STEPS, Example, State, searched
from spo_jax.envs.problems.tsp.files.tsplib import tour_cost
from spo_jax.seeding import numpy_rng

SHARE = 0.1  # of the edges
SCORES = 3.0, 2.0, 1.0, 0.5


def alns_example(instance: Instance, seed: int = 0, *, steps: int = STEPS) -> list[int]:
    """The best tour of `steps` iterations. Raises MissingExtra without the library."""
    dist, n = instance.dist, instance.size
    count = int(SHARE * n)
    rng = numpy_rng("alns-example", instance.digest, seed)

    def cost(after: np.ndarray) -> float:
        return tour_cost(dist, tour_of(after))

    def without(state: State, nodes: np.ndarray) -> State:
        after = state.solution.copy()
        after[nodes] = -1
        return State(after, cost)

    def at_random(state: State, rng: np.random.Generator) -> State:
        return without(state, rng.choice(n, count, replace=False))

    def along_a_path(state: State, rng: np.random.Generator) -> State:
        node, path = int(rng.choice(n)), []
        for _ in range(count):
            path.append(node)
            node = int(state.solution[node])
        return without(state, np.array(path, dtype=np.int64))

    def the_longest(state: State, rng: np.random.Generator) -> State:
        order = np.argsort(dist[np.arange(n), state.solution], kind="stable")
        return without(state, order[n - count :])

    def greedy(state: State, rng: np.random.Generator) -> State:
        return State(linked(dist, state.solution, rng.permutation(n)), cost)

    example = Example((at_random, along_a_path, the_longest), greedy, SCORES, None)
    start = greedy(State(np.full(n, -1), cost), rng)
    return tour_of(searched(start, example, rng, steps))


def tour_of(after: np.ndarray) -> list[int]:
    """The tour from node 0; after: [N] int64, the successor of each node."""
    tour, following = [0], after.tolist()
    while len(tour) < len(following):
        tour.append(following[tour[-1]])
    return tour


def linked(dist: np.ndarray, after: np.ndarray, order: np.ndarray) -> np.ndarray:
    """[N] int64, the successors with those that are missing (-1).

    order: in which the nodes without one get it: the nearest node that has no predecessor and is
    not the beginning of the node's own path, unless that path is the whole.
    """
    n, after = len(after), after.copy()
    first = np.arange(n)  # of the path that ends in a node, for ends of paths
    last = np.arange(n)  # of the path that begins with a node, for beginnings
    begins = np.ones(n, bool)
    begins[after[after >= 0]] = False
    for node in np.flatnonzero(begins):
        end = node
        while after[end] >= 0:
            end = after[end]
        first[end], last[node] = node, end
    paths = int(begins.sum())
    for node in order:
        if after[node] >= 0:
            continue
        free = np.flatnonzero(begins)
        if paths > 1:
            free = free[free != first[node]]
        to = int(free[dist[node, free].argmin()])
        after[node], begins[to] = to, False
        begin, end = first[node], last[to]
        first[end], last[begin] = begin, end
        paths -= 1
    return after
