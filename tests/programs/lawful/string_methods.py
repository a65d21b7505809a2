# role: destroy
# problem: tsp
# expect: ok
# why: strings split, joined, stripped
def destroy(dist, current_tour, steps_since_improvement, rng):
    text = ",".join(str(v) for v in current_tour)
    parts = text.split(",")
    assert text.replace(",", " ").strip().startswith(parts[0]) and "a".upper() == "A" and "%d-%s" % (1, "b") == "1-b"
    removed = [int(p) for p in parts[:3]]
    return [int(p) for p in parts[3:]], removed
