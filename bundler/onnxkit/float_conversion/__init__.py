"""Convert 32-bit floats to 16 bits: by the reference, with repaired casts, and an emulation of the outputs."""
