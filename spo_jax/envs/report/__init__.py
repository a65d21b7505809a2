"""The reports of `spo evaluate`, `spo baseline`, `spo solve` and `spo doctor`."""
