"""Give inputs, outputs and dynamic dimensions other names."""
