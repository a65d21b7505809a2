"""The grammar of VRPTW programs."""
