"""Give dynamic dimensions a fixed size."""
