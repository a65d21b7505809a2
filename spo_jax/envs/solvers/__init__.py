"""Solvers that programs are measured against; each is optional and imported where it is used."""
