"""The files that instances and solutions of the TSP come in."""
