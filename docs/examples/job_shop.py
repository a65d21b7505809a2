"""The job shop: jobs are rows of operations, each on its machine for its time, to be done soonest.

A solution is the order in which operations begin, each a pair (job, k): the k-th operation of the
job, from 0. As it is no list of integers, the rules say how it is checked, copied and encoded.
"""

from pathlib import Path
from types import MappingProxyType

import numpy as np

from spo_jax.envs.problem import Baseline, Infeasible, Instance, Problem, Rules
from spo_jax.envs.views import nodes_of
from spo_jax.errors import InputError
from spo_jax.program import Argument, Interface
from spo_jax.seeding import numpy_rng

HERE = Path(__file__).parent


class JobShopRules(Rules):
    """The worker's half: where a rollout starts, what programs may return, what that costs."""

    def start(self, rng):
        machines, _ = self.arguments("rows")
        jobs = [job for job, row in enumerate(machines) for _ in row]
        rng.shuffle(jobs)
        return [(job, jobs[:place].count(job)) for place, job in enumerate(jobs)]

    def destroyed(self, current, output):
        if type(output) not in (list, tuple) or len(output) != 2:
            raise Infeasible("returned no (partial_order, removed_operations)")
        partial, removed = map(operations, output)
        gone = set(removed)
        if not 1 <= len(gone) <= self.most or len(removed) + len(partial) != self.size:
            raise Infeasible(f"removed_operations must be 1 to {self.most} different ones")
        if partial != [each for each in current if each not in gone]:
            raise Infeasible("partial_order is not the order without removed_operations")
        return partial, removed

    def repaired(self, output):
        order, (machines, _) = operations(output), self.arguments("rows")
        done = [0] * len(machines)
        for job, k in order:
            if not 0 <= job < len(machines) or not done[job] == k < len(machines[job]):
                raise Infeasible("an operation is unknown, repeated or before its job's last one")
            done[job] += 1
        if len(order) != self.size:
            raise Infeasible("complete_order lacks an operation")
        return order

    def cost(self, solution):
        machines, times = self.arguments("rows")
        done, free = [0] * len(machines), [0] * len(machines[0])
        for job, k in solution:
            machine = machines[job][k]
            done[job] = free[machine] = max(done[job], free[machine]) + times[job][k]
        return float(max(done))

    def copy(self, solution):
        return solution[:]

    def encode(self, solution):
        width = len(self.arguments("rows")[0][0])
        return [job * width + k for job, k in solution]


def operations(output):
    """The list of pairs that a program returned; programs are hostile, so types come first."""
    listed = nodes_of(output)  # None unless it is a list of lists or tuples of integers
    if listed is None or any(len(each) != 2 for each in listed):
        raise Infeasible("operations must be a list of pairs (job, k)")
    return [(job, k) for job, k in listed]


class JobShop(Problem):
    """The parent's half: instances, a greedy construction, references, and what prompts say."""

    name = "job-shop"
    unit = "operations"
    suffixes = (".jsp",)
    interface = Interface(
        (
            Argument("machines", "matrix", "the machine of operation j of job i, as a matrix"),
            Argument("times", "matrix", "how long operation j of job i takes, as a matrix"),
        ),
        "current_order",
    )
    pair = str(HERE / "job_shop_pair.py")
    cp_sat = Baseline("job_shop_cp_sat:cp_sat", seeded=True, needs=("ortools", "solvers"))
    baselines = MappingProxyType({"cp-sat": cp_sat})
    quick_reference = 50

    def sample(self, size, count, seed):
        """Jobs and machines as equal in number as may be; times 1 to 99, machines in any order."""
        found, width = [], max(m for m in range(1, size + 1) if size % m == 0 and m * m <= size)
        for k in range(count):
            rng = numpy_rng(self.name, size, seed, k)
            machines = rng.permuted(np.tile(np.arange(width), (size // width, 1)), axis=1)
            times = rng.integers(1, 100, machines.shape)
            found.append(self.made(f"uniform-{size}-{k}@{seed}", machines, times))
        return found

    def read(self, path):
        """The numbers of jobs and machines, then a line of each job: machine, time, machine, ..."""
        try:
            lines = Path(path).read_text("utf-8").splitlines()
            jobs, width, *rest = (int(word) for x in lines if x[:1] != "#" for word in x.split())
            table = np.array(rest).reshape(jobs, width, 2)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is no job shop: {error}") from None
        return self.made(Path(path).stem, table[:, :, 0], table[:, :, 1])

    def made(self, name, machines, times):
        width = machines.shape[1]
        if not times.size or times.min() < 1 or (np.sort(machines) != range(width)).any():
            raise InputError(f"{name}: each job needs each machine once, for a time of 1 or more")
        return Instance(self.name, name, times.size, extra={"machines": machines, "times": times})

    def rules(self, instance):
        return JobShopRules(instance, *instance.extra.values())

    def decode(self, instance, code):
        width = instance.extra["times"].shape[1]
        return self.rules(instance).repaired([divmod(number, width) for number in code])

    def construct(self, instance, until=None):
        """The operation that can begin soonest, of several that of the job with most left."""
        (machines, times), order = instance.extra.values(), []
        (jobs, width), left = times.shape, times[:, ::-1].cumsum(axis=1)[:, ::-1]
        done, free, next_of = [0] * jobs, [0] * width, [0] * jobs
        while len(order) < instance.size:
            ready = [(job, k) for job, k in enumerate(next_of) if k < width]
            begin, _, each = min((max(done[e[0]], free[machines[e]]), -left[e], e) for e in ready)
            done[each[0]] = free[machines[each]] = begin + times[each]
            next_of[each[0]] += 1
            order.append(each)
        return order

    def solve_reference(self, instance, effort):
        from job_shop_cp_sat import cp_sat

        seconds = 1 if effort == "quick" else 30
        return cp_sat(instance, 0, seconds=seconds), f"CP-SAT, {seconds} s", False

    def frame(self, role):
        return (HERE / f"job_shop-{role}.txt").read_text("utf-8")

    def contract(self, role):
        return self.frame(role).partition("#frame")[0]
