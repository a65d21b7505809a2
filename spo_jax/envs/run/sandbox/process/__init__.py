"""Processes that programs run in: how they start, and what the kernel denies them."""
