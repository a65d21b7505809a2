"""Evaluation on several machines: who does which job, what crosses the wire, and Ray beneath it."""
