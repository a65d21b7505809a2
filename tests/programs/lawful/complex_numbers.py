# role: destroy
# problem: tsp
# expect: ok
# why: angles by complex numbers and math
import math

def destroy(dist, current_tour, steps_since_improvement, rng):
    pts = [complex(math.cos(v), math.sin(v)) for v in current_tour]
    centre = sum(pts) / len(pts)
    ranked = sorted(range(len(pts)), key=lambda i: abs(pts[i] - centre) + pts[i].real * 0 + math.hypot(0, 0))
    removed = [current_tour[i] for i in ranked[:4]]
    return [v for v in current_tour if v not in removed], removed
