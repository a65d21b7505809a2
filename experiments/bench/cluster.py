"""How well this process keeps the workers of a Ray cluster busy, and what it spends on a result.

    python experiments/bench/cluster.py --nodes 1 5 10 --profile

Nodes are Ray's own, several on this machine, but their workers only wait: a job takes a drawn time
between half and one and a half times --seconds, and its results are those of one real pair, so that
this process checks what it always does: lengths, falling costs, the objective of every solution. So
a few cores can stand for hundreds of workers. One line per number of nodes: the efficiency is the
time that jobs took in all over what the workers had; one with few jobs per worker ends with idle
workers whoever deals them out, and `at best` is the efficiency of a queue without any delay.
"""

import cProfile
import heapq
import json
import pstats
import random
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `common`
from common import cli
from common.tables import markdown
from spo_jax.envs.problem import Instance
from spo_jax.envs.problems import get_problem
from spo_jax.envs.run.cluster.evaluator import ClusterEvaluator
from spo_jax.envs.run.cluster.host import Host
from spo_jax.envs.run.cluster.ray_fleet import RayFleet
from spo_jax.envs.run.jobs.job_evaluator import Work
from spo_jax.envs.run.local import LocalEvaluator
from spo_jax.envs.run.sandbox.jobs import Job, RunJob
from spo_jax.envs.run.sandbox.outcome import ChildReport, Ended
from spo_jax.envs.run.sandbox.process.confine import LAYERS
from spo_jax.envs.run.sandbox.worker import readable
from spo_jax.program import Pair, Program
from spo_jax.program.pairfile import load_pair

PAIR = Path(__file__).parents[2] / "spo_jax/envs/problems/tsp/pair.py"
STORE = 100_000_000  # bytes of each node's object store


def length(job: RunJob, seconds: float) -> float:
    """Of a simulated job."""
    return seconds * random.Random(job.destroy).uniform(0.5, 1.5)


class WaitingPool:
    """As a `WorkerPool`, whose workers wait instead of working."""

    def __init__(self, workers: int, reports: dict[int, ChildReport], seconds: float):
        self._workers, self._reports, self._seconds = workers, reports, seconds
        self._busy: list[tuple[float, int, Any, RunJob]] = []
        self._count = 0
        self.layers = dict.fromkeys(LAYERS, True)
        self.board = self
        self.places: dict[str, tuple[int, int]] = {}

    def start(self) -> None: ...

    def close(self) -> None: ...

    def hold(self, instances: Sequence[Instance]) -> None:
        self.places |= {each.digest: (0, 0) for each in instances}

    @property
    def idle(self) -> int:
        return self._workers - len(self._busy)

    def begin(self, mark: Any, job: Job) -> None:
        assert isinstance(job, RunJob)
        self._count += 1
        end = time.monotonic() + length(job, self._seconds)
        heapq.heappush(self._busy, (end, self._count, mark, job))

    def wait(self, most: float, waker: int) -> list[tuple[Any, Ended]]:
        first = self._busy[0][0] - time.monotonic() if self._busy else most
        readable([waker], min(most, first))
        done = []
        while self._busy and self._busy[0][0] <= time.monotonic():
            _, _, mark, job = heapq.heappop(self._busy)
            done.append((mark, Ended([self._reports[task.index] for task in job.tasks])))
        return done


class Recorder(LocalEvaluator):
    """Keeps the reports of its jobs."""

    def _do(self, jobs: Sequence[Work], finished: Any, *more: Any, **rest: Any) -> None:
        self.reports: dict[int, ChildReport] = {}

        def kept(work: Work, ended: Ended) -> list[Work]:
            self.reports |= {report.index: report for report in ended.reports}
            return finished(work, ended)

        super()._do(jobs, kept, *more, **rest)


def at_best(lengths: Sequence[float], workers: int) -> float:
    """The efficiency of workers that take the next job of a queue at once."""
    free = [0.0] * workers
    for each in lengths:
        heapq.heapreplace(free, free[0] + each)
    return sum(lengths) / (workers * max(free))


def report(args: Namespace) -> None:
    import ray
    from ray.cluster_utils import Cluster

    problem = get_problem("tsp")
    instances, seeds = problem.sample(50, args.instances, 0), range(args.seeds)
    shipped = load_pair(PAIR)
    with Recorder(problem, 1) as local:
        assert local.run([shipped], instances, seeds, args.steps).ok.all()
        reports = local.reports
    seconds = args.seconds

    class WaitingHost(Host):
        def _made(self, path: Sequence[str]) -> Any:
            return WaitingPool(self._count, reports, seconds)

    class Fleet(RayFleet):
        host = WaitingHost

    rows = []
    with tempfile.TemporaryDirectory(prefix="spo-", dir="/tmp") as folder:
        own = {"object_store_memory": STORE, "include_dashboard": False}
        cluster = Cluster(True, head_node_args={"num_cpus": 0, "temp_dir": folder, **own})
        try:
            there = 0
            for nodes in sorted(args.nodes):
                for _ in range(nodes - there):
                    cluster.add_node(num_cpus=args.per_node, **own)
                there = nodes
                with ClusterEvaluator(problem, fleet=Fleet(cluster.address)) as spread:
                    for each in args.jobs:
                        workers = nodes * args.per_node
                        pairs = [_variant(shipped, k) for k in range(each * workers)]
                        rows.append(_measured(args, spread, pairs, instances, seeds, workers))
                        print(json.dumps(rows[-1]), file=sys.stderr)
        finally:
            ray.shutdown()
            cluster.shutdown()
    print(markdown(list(rows[0]), [list(row.values()) for row in rows]))


def _variant(pair: Pair, k: int) -> Pair:
    return Pair(Program.from_source("destroy", f"{pair.destroy.source}\n# {k}\n"), pair.repair)


def _measured(
    args: Namespace,
    spread: ClusterEvaluator,
    pairs: Sequence[Pair],
    instances: Sequence[Instance],
    seeds: Sequence[int],
    workers: int,
) -> dict[str, str]:
    """A line of the table."""
    jobs = [job for _, job in spread._planner.jobs(
        pairs, instances, seeds, args.steps, seconds=None, fail_fast=True, workers=workers
    )]  # fmt: skip
    lengths = [length(job, args.seconds) for job in jobs]
    assert all(pair.digest for pair in pairs)  # a run has them before it evaluates
    profile = cProfile.Profile() if args.profile else None
    began, cpu = time.monotonic(), time.process_time()
    if profile is not None:
        profile.enable()
    found = spread.run(pairs, instances, seeds, args.steps)
    if profile is not None:
        profile.disable()
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(18)
    took, cpu = time.monotonic() - began, time.process_time() - cpu
    assert found.ok.all()
    return {
        "nodes": str(workers // args.per_node),
        "workers": str(workers),
        "jobs": str(len(jobs)),
        "seconds": f"{took:.1f}",
        "jobs per second": f"{len(jobs) / took:.0f}",
        "efficiency": f"{sum(lengths) / (workers * took):.3f}",
        "at best": f"{at_best(lengths, workers):.3f}",
        "CPU ms per job": f"{1000 * cpu / len(jobs):.2f}",
        "share of a core": f"{cpu / took:.0%}",
    }


def main() -> int:
    parser = cli.plain_parser(__doc__)
    add = parser.add_argument
    add("--nodes", type=int, nargs="+", default=[1, 2, 5, 10])
    add("--per-node", type=int, default=16, help="workers of a node")
    add("--seconds", type=float, default=0.5, help="mean length of a job")
    add("--jobs", type=int, nargs="+", default=[20], help="jobs for each worker")
    add("--instances", type=int, default=6)
    add("--seeds", type=int, default=2)
    add("--steps", type=int, default=100)
    add("--profile", action="store_true", help="where this process spends its time")
    return cli.main(parser, report)


if __name__ == "__main__":
    sys.exit(main())
