"""The project file (`bundler.toml`, or `[tool.bundler]` in pyproject.toml) and the lock beside it."""
