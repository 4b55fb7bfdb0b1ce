"""Convert 32-bit floats to 16-bit ones, all of them or all that the accuracy gate allows."""
