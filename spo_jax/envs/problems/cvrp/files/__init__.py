"""The files that instances and solutions of the CVRP come in."""
