"""The laboratory on measured payoffs: tables of real programs, and rounds replayed from them."""
