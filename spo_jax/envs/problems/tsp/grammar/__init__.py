"""The grammar of TSP programs."""
