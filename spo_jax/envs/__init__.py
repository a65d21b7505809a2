"""Problems, the sandboxed search that runs programs on them, and the reports of what that gave."""
