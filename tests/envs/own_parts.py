"""Parts of a user's own, as workers import them."""

from collections import deque

from spo_jax.envs.run.states import SearchState


class Late:
    """Late acceptance (Burke and Bykov, 2017): no worse than what was current 5 steps ago."""

    def __init__(self, first, luck):
        self.costs = deque(maxlen=5)

    def __call__(self, cost, current, best, progress):
        self.costs.append(current)
        return cost <= current or cost <= self.costs[0]


def all_of(first, luck):
    """Accepts everything."""
    return lambda cost, current, best, progress: True


def raising(first, luck):
    def accept(cost, current, best, progress):
        if progress > 0.4:
            raise ValueError("too late")
        return True

    return accept


def leaving(first, luck):
    def accept(cost, current, best, progress):
        raise SystemExit(3)

    return accept


def unclear(first, luck):
    return lambda cost, current, best, progress: float("nan")


def unmade(first, luck):
    raise KeyError("rule")


def wrong(first):
    return None


def backwards(instance, rng):
    """All nodes, the last one first."""
    return list(range(instance.size))[::-1]


def shuffled(instance, rng):
    return rng.sample(range(instance.size), instance.size)


def lost(instance, rng):
    return [instance.places[0]]


def lacking(instance, rng):
    return [0]


def _phase(history):
    if history.step > 30:
        raise ValueError("no phase")
    return (
        history.best,
        history.costs[-1],
        sum(o > 1 for o in history.outcomes),
        history.temperature,
    )


def _two(history):
    return history.share, "late"


PHASE = SearchState(_phase, {"best": "the best cost", "cost": "the cost", "taken": "how many steps "
    "were accepted", "heat": "the temperature"})  # fmt: skip
HALF = SearchState(lambda history: history.step // 2, {"half": "half of the steps"})
TWO = SearchState(_two, {"share": "of the budget", "word": "a word"})
