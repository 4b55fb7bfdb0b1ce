"""Convert 32-bit floats to 16-bit ones: all of them, or as many as the accuracy gate allows."""
