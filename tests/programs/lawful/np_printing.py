# role: destroy
# problem: tsp
# expect: ok
# why: arrays as text
import numpy as np

def destroy(dist, current_tour, steps_since_improvement, rng):
    a = np.array([1.5, 2.25, np.pi])
    text = str(a) + repr(a) + f"{a[0]:.3f} {a}" + "%s" % a + str(np.float64(2.5)) + repr(np.int64(3))
    assert "2.25" in text
    print(a, np.asarray(dist)[:2])
    return current_tour[3:], current_tour[:3]
