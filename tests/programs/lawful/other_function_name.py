# role: destroy
# problem: tsp
# expect: ok
# why: the only function, under another name and other parameters
def adaptive_removal(D, sol, stall, generator):
    size = 2 + stall % 4
    return sol[size:], sol[:size]
