"""Evaluations and searches as jobs for workers: planned, shared out, their reports checked."""
