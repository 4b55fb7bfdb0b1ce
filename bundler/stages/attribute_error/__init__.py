"""Find the nodes that contribute most error."""
