"""The credit laboratory: credit schemes in payoff worlds whose truth is known.

`worlds`: leaders, followers, J of every pair, noise. `schemes`: what `--credit` takes, for many
rounds at once. `estimators`: how well a round's credits tell good leaders from bad ones. `bandit`:
the group-relative update of GRPO on softmax policies in the place of the language model;
`policies`: what these are linear in, and what a run of them has seen. `power`: intervals, and how
many seeds a difference needs; `studies`: the same from past studies. `study`: all of it in many
worlds; `show`: tables and the picture. `measured`: the same on payoffs of real programs.
`python -m spo_jax.search.lab` runs it.

Axis letters beside the usual ones: W worlds, N rounds, K leaders and M followers of a world; in
`bandit` N is runs.
"""
