# role: repair
# problem: cvrp
# expect: any-failure
# why: comments alone
# nothing
# here
