# role: destroy
# problem: tsp
# expect: ok
# why: one line
def destroy(d, t, z, r): return t[2:], t[:2]
