"""Write a cache key into a model's metadata, for device caches that would not notice that the model changed."""
