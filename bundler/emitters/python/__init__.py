"""Bundles for Python: a package with a typed facade, the model as its data, and the runtime pinned."""
