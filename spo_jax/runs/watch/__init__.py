"""`spo watch`: the report of runs while they go on, in a browser on this machine.

`watched` follows the folder of a run and renders its page again when a round has landed, and
`server` answers the browser. Nothing here writes to a run.
"""
