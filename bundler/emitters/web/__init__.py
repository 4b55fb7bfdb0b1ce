"""Bundles for browsers and Node.js: one npm package with the model, its runtime and a loader."""
