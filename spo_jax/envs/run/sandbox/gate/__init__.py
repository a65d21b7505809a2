"""The static gate: what a program may contain and name, decided before it runs."""
