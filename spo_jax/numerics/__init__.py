"""Sums, sorts and float64 for JAX with the same bits in every process and shape."""
