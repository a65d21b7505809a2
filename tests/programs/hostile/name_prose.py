# role: destroy
# problem: tsp
# expect: any-failure
# why: prose, not Python
The operator removes the worst nodes first.
It then returns them.
