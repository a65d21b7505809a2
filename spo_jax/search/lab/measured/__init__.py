"""The laboratory on measured payoffs.

`tables`: payoffs of real programs, and `dataset`, the file of these; `shares`: what they are made
of; `replay`: rounds drawn of them; `survival`: who survives several rounds; `crossplay`: how many
repairs meet how many destroys; `reports`: what the tables say.
"""
