"""Rollouts: the search, the evaluator, and the sandbox that programs run in."""
