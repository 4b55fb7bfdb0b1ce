"""The command line: commands parse, call one function and print. The only place where an error becomes an exit code."""

from bundler.cli.main import main

__all__ = ["main"]
