"""Methods of the field on the same parts as SPO: one file each, with `one_round`."""
