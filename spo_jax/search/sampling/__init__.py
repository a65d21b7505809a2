"""Sampling: answers of the generator, with what reads, gates and mends them."""
