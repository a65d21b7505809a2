"""Stochastic grammars of operator programs: what those of every problem share."""
