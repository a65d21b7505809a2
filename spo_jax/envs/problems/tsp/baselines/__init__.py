"""Heuristics and solvers that pairs of the TSP are compared with, and its references."""
