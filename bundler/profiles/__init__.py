"""Target profiles: TOML in, one checked and resolved `TargetProfile` out."""
