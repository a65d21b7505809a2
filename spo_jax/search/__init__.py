"""The method: a round of Algorithm 1, its payoffs, credits, populations, prompts and samples."""
