"""Runs: how one is made and resumed, what its folder keeps, how it is read and shown."""
