"""Record what the untouched model answers."""
