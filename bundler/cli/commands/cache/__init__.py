"""`bundler cache`: show, trim and clear the cache."""
