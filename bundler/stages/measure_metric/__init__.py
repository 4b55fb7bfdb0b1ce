"""The user's own measure of a model's answers."""
