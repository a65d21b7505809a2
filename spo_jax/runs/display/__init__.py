"""What a person sees of a run while it goes on, and what came of its answers."""
