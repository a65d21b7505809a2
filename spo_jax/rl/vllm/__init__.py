"""Programs from a vLLM server whose two adapters the JAX trainer updates and swaps every round."""
