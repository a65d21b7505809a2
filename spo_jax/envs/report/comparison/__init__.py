"""Comparing at equal time: what is compared, timed calls, tables and the picture."""
