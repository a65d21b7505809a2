"""Calls a compiled kit with random and hostile arguments: a memory error ends the process.

    python kit_fuzz.py PROBLEM PATH_OF_THE_EXTENSION CALLS [SEED]

Only standard modules, so that it runs with the sanitizer's library loaded before all others.
"""

import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from random import Random

import kit_cases
from kit_hostile import hostile, viewed


def main(problem: str, path: str, calls: int, seed: int) -> None:
    spec = spec_from_file_location("_native", path, loader=ExtensionFileLoader("_native", path))
    assert spec is not None
    assert spec.loader is not None
    kit = module_from_spec(spec)
    spec.loader.exec_module(kit)
    draw = Random(seed)
    make, names = getattr(kit_cases, problem), getattr(kit_cases, problem.upper())
    returned = made = 0
    while made < calls:
        size = draw.choice([draw.randrange(13), draw.randrange(13), 30])
        dist = kit_cases.matrix(draw, size)
        if draw.random() < 0.1:
            dist = viewed(dist)
        if draw.random() < 0.05:
            kit.prepare(dist)
            if problem != "tsp" and draw.random() < 0.7:
                limits = [draw.choice([0.5, 3, 40.0, float("inf")]) for _ in range(2)]
                kit.limit(dist, *limits, draw.randrange(1, 5), [draw.random()] * size)
        for _ in range(4):
            case = make(draw, draw.choice(names), dist, Random(draw.random()))
            for kind in range(8):
                name, args, named = hostile(draw, kit, case) if kind else case
                made += 1
                try:
                    getattr(kit, name)(*args, **named)
                    returned += 1
                except Exception as error:
                    if isinstance(error, SystemError):  # a result together with an exception
                        raise
    print(made, "calls,", returned, "returned")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int((sys.argv[4:] or ["0"])[0]))
