"""Store tensors that several models have in common once."""
