"""Generalised assignment: a solution is the agent of each job, and a partial one has -1 where a job
has none. What destroy returns is therefore no list with items taken out, and is checked here.
"""

from itertools import compress
from math import fsum

from spo_jax.envs.problem import Infeasible, Instance, Problem, Rules
from spo_jax.envs.views import node_list
from spo_jax.program import Argument, Interface
from spo_jax.seeding import numpy_rng


class AssignmentRules(Rules):
    def start(self, rng):
        room = self.arguments("rows")[2]
        while True:
            agents = [rng.randrange(len(room)) for _ in range(self.size)]
            if self.fits(agents):
                return agents

    def fits(self, agents):
        _, weights, room = self.arguments("rows")
        of = range(len(room))
        loads = [sum(compress(weights, [agent == each for agent in agents])) for each in of]
        return all(load <= most for load, most in zip(loads, room, strict=True))

    def destroyed(self, current, output):
        partial, removed = map(node_list, output)
        if partial is None or not removed or len(set(removed)) > self.most:
            raise Infeasible("not one to a third of the jobs")
        left = [-1 if job in removed else agent for job, agent in enumerate(current)]
        if partial != left:
            raise Infeasible("not the assignment without the jobs that were removed")
        return partial, removed

    def repaired(self, output):
        agents = node_list(output)
        known = range(len(self.arguments("rows")[2]))
        if agents is None or len(agents) != self.size or not set(agents) <= set(known):
            raise Infeasible("not an agent for each job")
        if not self.fits(agents):
            raise Infeasible("an agent has more than it has room for")
        return agents

    def cost(self, solution):
        costs = self.arguments("rows")[0]
        return fsum(costs[job][agent] for job, agent in enumerate(solution))


class Assignment(Problem):
    name = "assignment"
    unit = "jobs"
    interface = Interface(
        (Argument("costs", "matrix"), Argument("weights", "row"), Argument("room", "row")), "agents"
    )

    def sample(self, size, count, seed):
        instances = []
        for k in range(count):
            rng = numpy_rng("assignment", size, seed, k)
            weights = rng.integers(1, 10, size)
            room = [int(weights.sum()) // 2 + 5] * 3
            extra = {"costs": rng.random((size, 3)), "weights": weights, "room": tuple(room)}
            instances.append(Instance(self.name, f"gap-{k}", size, extra=extra))
        return instances

    def rules(self, instance):
        return AssignmentRules(instance, *instance.extra.values())
