"""The folder of a run: what is kept in it, how it is shown, and the commands that read it."""
