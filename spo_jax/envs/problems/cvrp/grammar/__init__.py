"""The grammar of CVRP programs."""
