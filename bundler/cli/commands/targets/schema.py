"""`bundler targets schema`."""

from __future__ import annotations

from bundler.catalogue.documents import describe_schema
from bundler.cli.printing import echo_document

EPILOG = "Example:\n\n  bundler targets schema > profile.schema.json"


def run() -> None:
    """The JSON Schema of a profile."""
    echo_document(describe_schema())
