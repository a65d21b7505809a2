"""What `spo evaluate`, `spo baseline`, `spo compare` and `spo solve` do and report."""
