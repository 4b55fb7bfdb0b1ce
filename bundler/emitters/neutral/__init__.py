"""Bundles that belong to no ecosystem: models, contexts, golden set and documents, for an application to use."""
