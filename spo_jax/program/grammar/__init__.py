"""The shared parts of all problems' stochastic grammars of operator programs."""
