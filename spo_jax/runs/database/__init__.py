"""The database of a run: its tables, how rounds are written and read, and whether it is intact."""
