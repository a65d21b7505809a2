"""A pair for the multidimensional knapsack, written by hand."""


def destroy(profits, weights, capacities, current_items, steps_since_improvement, rng):
    """Take out a few items at random, one more for every 50 steps without a better solution."""
    most = max(1, min(len(profits) * 35 // 100, len(current_items) // 2))
    count = min(most, rng.randint(1, 3 + steps_since_improvement // 50))
    removed_items = rng.sample(current_items, count)
    return [item for item in current_items if item not in removed_items], removed_items


def repair(
    profits, weights, capacities, partial_items, removed_items, steps_since_improvement, rng
):
    """Take items of most profit for what they take of the room, with noise; removed ones last."""
    items = list(partial_items)
    resources = range(len(capacities))
    room = [capacities[j] - sum(weights[item][j] for item in items) for j in resources]
    noise = rng.choice((0.02, 0.1, 0.3))
    last = set(removed_items) if rng.random() < 0.7 else set()
    scores = []
    for item in set(range(len(profits))).difference(items):
        takes = sum(weights[item][j] / max(1, room[j]) for j in resources)
        score = profits[item] / max(takes, 1e-9) * (1 + noise * rng.random())
        scores.append((item in last, -score, item))
    for _, _, item in sorted(scores):
        if all(weights[item][j] <= room[j] for j in resources):
            items.append(item)
            room = [room[j] - weights[item][j] for j in resources]
    return items
