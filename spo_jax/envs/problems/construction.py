"""Construction heuristics of Appendix C, one pass each: nearest neighbour and farthest insertion
for the TSP, Clarke and Wright's savings for the CVRP.

None of them draws a random number. They take a seed because every baseline does, and ignore it.
"""

import numpy as np

from spo_jax.envs.problem import Instance
from spo_jax.errors import InputError


def nearest_neighbor(instance: Instance, seed: int = 0) -> list[int]:
    """A tour from node 0 that always goes on to the nearest node it has not visited.

    Of equally near nodes the one of smaller number is taken. O(n^2).
    """
    dist = instance.dist
    visited = np.zeros(len(dist))  # infinity where visited: added to the distances
    tour = [0]
    for _ in range(len(dist) - 1):
        visited[tour[-1]] = np.inf
        tour.append(int((dist[tour[-1]] + visited).argmin()))
    return tour


def farthest_insertion(instance: Instance, seed: int = 0) -> list[int]:
    """A tour grown from the two nodes that are farthest apart.

    Each step takes the node whose distance to the nearest node of the tour is largest, and inserts
    it where the tour grows least. O(n^2).
    """
    dist = instance.dist
    first, second = divmod(int(dist.argmax()), len(dist))
    if first == second:  # all nodes lie on one spot
        return list(range(len(dist)))
    tour = np.array([first, second])
    to_tour = np.minimum(dist[first], dist[second])
    to_tour[tour] = -np.inf
    for _ in range(len(dist) - 2):
        node = int(to_tour.argmax())
        after = np.roll(tour, -1)
        place = int((dist[node, tour] + dist[node, after] - dist[tour, after]).argmin())
        tour = np.insert(tour, place + 1, node)
        np.minimum(to_tour, dist[node], out=to_tour)
        to_tour[node] = -np.inf
    return tour.tolist()


def clarke_wright(instance: Instance, seed: int = 0) -> list[list[int]]:
    """Routes by the parallel savings algorithm (Clarke and Wright, 1964).

    Every customer starts alone. Savings d(i, 0) + d(0, j) - d(i, j) are gone through from the
    largest down, as long as they are positive; two routes are joined where i and j are their ends
    and the loads fit into one vehicle. Equal savings go by customer numbers. O(n^2 log n).
    """
    demands, capacity = demands_of(instance)
    dist, customers = instance.dist, np.arange(1, len(instance.dist))
    saving = dist[1:, :1] + dist[:1, 1:] - dist[1:, 1:]
    left, right = np.triu_indices(len(customers), k=1)
    saving = saving[left, right]
    order = np.argsort(-saving, kind="stable")
    order = order[: int((saving > 0).sum())]
    route_of = [[customer] for customer in range(len(dist))]  # a list shared by its customers
    load = demands.tolist()  # of the route that a customer is in, kept at the route's ends
    for i, j in zip(customers[left[order]].tolist(), customers[right[order]].tolist(), strict=True):
        first, second = route_of[i], route_of[j]
        if first is second or load[i] + load[j] > capacity:
            continue
        if i not in (first[0], first[-1]) or j not in (second[0], second[-1]):
            continue
        if first[-1] != i:
            first.reverse()
        if second[0] != j:
            second.reverse()
        total = load[i] + load[j]
        first += second
        for customer in second:
            route_of[customer] = first
        load[first[0]] = load[first[-1]] = total
    routes = {id(route): route for route in route_of[1:]}
    return list(routes.values())


def demands_of(instance: Instance) -> tuple[np.ndarray, int]:
    """[N] int64 demands and the capacity. Raises InputError where the instance has none."""
    if instance.demands is None or instance.capacity is None:
        raise InputError(f"{instance.name} has no demands or no capacity: it is no CVRP instance")
    return instance.demands, int(instance.capacity)
