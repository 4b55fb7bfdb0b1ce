"""Record the outputs of the original model."""
