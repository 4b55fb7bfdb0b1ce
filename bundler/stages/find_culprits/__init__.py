"""Which nodes lose the accuracy."""
