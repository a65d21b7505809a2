# role: destroy
# problem: tsp
# expect: ok
# why: walrus, f-strings, assert
def destroy(dist, current_tour, steps_since_improvement, rng):
    if (n := len(current_tour)) < 5:
        label = f"tiny {n}"
    elif (k := n // 4) > 3:
        label = f"{n=} {k:>4d} {0.5:.2f} {'x'!r:>{k}}"
    else:
        k, label = 1, "small"
    assert isinstance(label, str) and len(label) > 0, f"no label {label!r}"
    removed = [v for i, v in enumerate(current_tour) if (w := i % 4) == 1 and w]
    return [c for c in current_tour if c not in removed], removed
