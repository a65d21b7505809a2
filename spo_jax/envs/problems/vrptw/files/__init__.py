"""The files that instances and solutions of the VRPTW come in."""
