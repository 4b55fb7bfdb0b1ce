"""Compare the latency of two models."""
