"""Run the user's own pipeline over the components of a bundle, and compare its answers with the original models'."""
