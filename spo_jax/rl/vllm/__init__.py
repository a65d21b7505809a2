"""Samples programs from a vLLM server; the JAX trainer updates its two adapters every round."""
