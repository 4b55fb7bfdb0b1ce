"""Name a model in its own metadata, for caches on the device that would not notice another one."""
