"""Problems whose kit is the reference in Python: the same programs, without compiled functions."""

from spo_jax.envs.problems.cvrp import CVRP
from spo_jax.envs.problems.tsp import TSP


class TSPInPython(TSP):
    kit = f"{TSP.kit}.reference"


class CVRPInPython(CVRP):
    kit = f"{CVRP.kit}.reference"


PROBLEMS = {"tsp": TSPInPython, "cvrp": CVRPInPython}
