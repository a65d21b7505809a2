"""Pairs that other frameworks evolve, scored as in a discovery of ours.

`scoring` is what any framework can call; `openevolve` and `shinka` say the same in the words of
these two; `folder` writes what one of them starts from (`spo task`), `brief` the message that tells
its model what a pair is. Nothing here imports a framework, except to return its own type to it.
"""
