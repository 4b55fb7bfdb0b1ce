"""Convert a model to ORT format."""
