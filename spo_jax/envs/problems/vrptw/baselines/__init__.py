"""Heuristics and solvers that pairs of the VRPTW are compared with, and its references."""
