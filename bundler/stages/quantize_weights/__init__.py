"""Quantise the weights of matrix products to 4 or 8 bits; everything is still computed in floating point."""
