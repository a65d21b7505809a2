# role: destroy
# problem: tsp
# expect: ok
# why: tabs and Windows line ends
def destroy(dist, current_tour, steps_since_improvement, rng):@CR@
	k = 2@CR@
	if k:@CR@
		k += 1@CR@
	return current_tour[k:], current_tour[:k]@CR@
