# role: repair
# problem: tsp
# expect: any-failure
# why: a tuple subclass
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    from collections import namedtuple
    Box = namedtuple('Box', ['n%d' % i for i in range(len(dist))])
    return Box(*(partial_tour + removed_nodes))
