"""Golden sets, gates and levels of proof."""
