"""Problems whose solutions are no lists: a dict and a matrix. Each job goes to an agent at a cost,
and no agent has more than its share of the jobs.
"""

from math import ceil, fsum

import numpy as np

from spo_jax.envs.problem import Infeasible, Instance, Problem, Rules
from spo_jax.program import Argument, Interface
from spo_jax.seeding import numpy_rng

AGENTS = 3


class DictRules(Rules):
    """{job: agent}; a partial one lacks jobs."""

    partial, item = "the jobs that are left", "job"

    def start(self, rng):
        jobs = list(range(self.size))
        rng.shuffle(jobs)
        return {job: place % AGENTS for place, job in enumerate(jobs)}

    def copy(self, solution):
        return dict(solution)

    def destroyed(self, current, output):
        if type(output) not in (tuple, list) or len(output) != 2 or type(output[0]) is not dict:
            raise Infeasible("no (jobs that are left, removed jobs)")
        partial, removed = output
        if not 1 <= len(removed) <= self.most or len(set(removed)) < len(removed):
            raise Infeasible("not one to a third of the jobs")
        if partial != {job: agent for job, agent in current.items() if job not in removed}:
            raise Infeasible("not the solution without the jobs that were removed")
        return partial, removed

    def repaired(self, output):
        if type(output) is not dict or set(output) != set(range(self.size)):
            raise Infeasible("not an agent for each job")
        agents = list(output.values())
        if any(agents.count(each) > ceil(self.size / AGENTS) for each in range(AGENTS)):
            raise Infeasible("an agent has too many jobs")
        return output

    def cost(self, solution):
        costs = self.arguments("rows")[0]
        return fsum(costs[job][agent] for job, agent in solution.items())

    def encode(self, solution):
        return [solution[job] for job in range(self.size)]


class DictProblem(Problem):
    name = "dicts"
    unit = "jobs"
    interface = Interface((Argument("costs", "matrix"),), "agents")
    kind = DictRules

    def sample(self, size, count, seed):
        def made(k):
            costs = numpy_rng(self.name, size, seed, k).random((size, AGENTS))
            return Instance(self.name, f"jobs-{size}-{k}@{seed}", size, extra={"costs": costs})

        return [made(k) for k in range(count)]

    def rules(self, instance):
        return self.kind(instance, instance.extra["costs"])

    def decode(self, instance, code):
        return self.rules(instance).repaired(dict(enumerate(code)))


class MatrixRules(Rules):
    """An array [jobs, agents] of 0 and 1; a partial one has rows of 0."""

    def start(self, rng):
        found = np.zeros((self.size, AGENTS), int)
        jobs = list(range(self.size))
        rng.shuffle(jobs)
        for place, job in enumerate(jobs):
            found[job, place % AGENTS] = 1
        return found

    def copy(self, solution):
        return solution.copy()

    def destroyed(self, current, output):
        partial, removed = output
        left = current.copy()
        left[[job for job, agent in removed]] = 0
        if not 1 <= len(removed) <= self.most or not np.array_equal(partial, left):
            raise Infeasible("not the solution without the pairs that were removed")
        return left, removed

    def repaired(self, output):
        if type(output) is not np.ndarray or output.shape != (self.size, AGENTS):
            raise Infeasible("not a matrix of jobs and agents")
        if not (output.sum(axis=1) == 1).all() or output.min() < 0:
            raise Infeasible("not one agent for each job")
        if (output.sum(axis=0) > ceil(self.size / AGENTS)).any():
            raise Infeasible("an agent has too many jobs")
        return output

    def cost(self, solution):
        costs = self.arguments("array")[0]
        return fsum(costs[solution == 1])

    def encode(self, solution):
        return solution.argmax(axis=1).tolist()


class MatrixProblem(DictProblem):
    name = "matrices"
    kind = MatrixRules

    def decode(self, instance, code):
        found = np.zeros((instance.size, AGENTS), int)
        found[np.arange(instance.size), list(code)] = 1
        return self.rules(instance).repaired(found)


DICT_DESTROY = """
def destroy(costs, agents, steps, rng):
    removed = rng.sample(sorted(agents), 2)
    return {job: agent for job, agent in agents.items() if job not in removed}, removed
"""
DICT_REPAIR = """
def repair(costs, rest, removed, steps, rng):
    most = -(-len(costs) // len(costs[0]))
    while removed:
        job = removed.pop()
        free = [a for a in range(len(costs[0])) if list(rest.values()).count(a) < most]
        rest[job] = min(free, key=lambda agent: costs[job][agent])
    return rest
"""
MATRIX_DESTROY = """
def destroy(costs, agents, steps, rng):
    removed = [(job, int(agents[job].argmax())) for job in rng.sample(range(len(agents)), 2)]
    for job, agent in removed:
        agents[job, agent] = 0
    return agents, removed
"""
MATRIX_REPAIR = """
def repair(costs, rest, removed, steps, rng):
    most = -(-len(costs) // len(costs[0]))
    for job, before in removed:
        free = [a for a in range(len(costs[0])) if rest[:, a].sum() < most]
        rest[job, min(free, key=lambda agent: costs[job][agent])] = 1
    return rest
"""
