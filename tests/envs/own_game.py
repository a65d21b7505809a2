"""A game of a user's own on the TSP that hands on three values, as workers import it."""

from dataclasses import replace

from spo_jax.envs.problem import Infeasible
from spo_jax.envs.problems.tsp import TSP
from spo_jax.envs.problems.tsp.rules import TSPRules
from spo_jax.program import Game, Interface, Side

GAME = Game(Side("turn"), Side("swap"), ("tour", "first", "last"))


class TurningRules(TSPRules):
    def destroyed(self, current, output):
        if type(output) is not tuple or len(output) != 3:
            raise Infeasible("turn returned no (tour, first, last)")
        tour, *ends = output
        if not all(type(end) is int and 0 <= end < self.size for end in ends):
            raise Infeasible("first and last are places")
        return self.repaired(tour), *ends


class Turning(TSP):
    name = "turning"
    kit = pair = simple = ""
    interface = Interface(TSP.interface.arguments, "now", GAME)

    def sample(self, size, count, seed):
        return [replace(each, problem=self.name) for each in super().sample(size, count, seed)]

    def rules(self, instance):
        return TurningRules(instance)


class Inherited(Turning):
    """Without the check that its game needs."""

    name = "inherited"

    def rules(self, instance):
        return TSPRules(instance)


def in_order(instance, rng):
    """A start: the nodes by number."""
    return list(range(instance.size))


class UncheckedRules(TSPRules):
    def destroyed(self, current, output):
        return output


class Unchecked(Turning):
    """With a check that lets everything pass."""

    name = "unchecked"

    def rules(self, instance):
        return UncheckedRules(instance)
