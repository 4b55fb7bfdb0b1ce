"""Apply the user's own metric to a model's outputs."""
