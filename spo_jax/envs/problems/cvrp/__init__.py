"""The capacitated vehicle routing problem."""
