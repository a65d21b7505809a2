"""Discover destroy-and-repair programs for large neighbourhood search."""

__version__ = "0.1.0"
