# role: repair
# problem: tsp
# expect: any-failure
# why: runs a command
import numpy as np


def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    np.distutils.exec_command.exec_command('true')
    tour.extend(removed_nodes)
    return tour
