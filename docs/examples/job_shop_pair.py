"""A pair for the job shop, written by hand."""


def destroy(machines, times, current_order, steps_since_improvement, rng):
    """Remove a stretch of the order, operations of one machine, or those of some jobs."""
    size, width = len(current_order), len(machines[0])
    count = max(1, min(size * 35 // 100, size // 10 + rng.randrange(1 + size // 5)))
    kind = rng.randrange(3)
    if kind == 0:
        first = rng.randrange(size - count + 1)
        removed = current_order[first : first + count]
    elif kind == 1:
        machine = rng.randrange(width)
        removed = [(job, k) for job, k in current_order if machines[job][k] == machine]
    else:
        jobs = rng.sample(range(len(machines)), max(1, count // width))
        removed = [(job, k) for job, k in current_order if job in jobs]
    removed = removed[:count]
    return [each for each in current_order if each not in removed], removed


def repair(machines, times, partial_order, removed_operations, steps_since_improvement, rng):
    """Insert long operations first, each where the longest chain through it is shortest."""

    def begins(order, job, machine):
        """When an operation of the job on the machine can begin, at each place of the order."""
        done, free, found = [0] * len(machines), [0] * len(machines[0]), [0]
        for j, k in order:
            m = machines[j][k]
            done[j] = free[m] = max(done[j], free[m]) + times[j][k]
            found.append(max(done[job], free[machine]))
        return found

    order = list(partial_order)
    rank = {(job, k): times[job][k] * rng.random() for job, k in removed_operations}
    for job, k in sorted(removed_operations, key=lambda each: -rank[each]):
        heads = begins(order, job, machines[job][k])
        tails = begins(order[::-1], job, machines[job][k])[::-1]
        first = max([i + 1 for i, (j, s) in enumerate(order) if j == job and s < k], default=0)
        last = min([i for i, (j, s) in enumerate(order) if j == job and s > k], default=len(order))
        places = range(first, last + 1)
        best = min(places, key=lambda place: (heads[place] + tails[place], rng.random()))
        order.insert(best, (job, k))
    return order
