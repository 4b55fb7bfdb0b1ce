"""Bundles that belong to no ecosystem: models, contexts, golden set and papers, for an application to take from."""
