"""Heuristics and solvers that pairs of the CVRP are compared with, and its references."""
