"""`spo report`: a run as one HTML page that needs no network, no server and hardly any script.

`write` composes it. Each page is a module that reads a `Run` and returns what `page.html` shows:
`progress`, `payoffs`, `genealogy`, `state`, `failures`, `learning` and `pair`. `played` runs the
best pair in the sandbox for the last one, `figures` draws, and `text` makes what a model wrote safe
to look at. `compare` is the page of several runs.
"""

NAME = "report.html"  # in the folder of a run
COMPARISON = "comparison.html"  # of several runs
