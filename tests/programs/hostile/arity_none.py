# role: destroy
# problem: tsp
# expect: any-failure
# why: no parameters
def destroy():
    return [], []
