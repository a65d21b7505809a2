"""Discovery: prompts, generators, credit, populations, and the loop that composes them."""
