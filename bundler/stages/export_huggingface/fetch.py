"""Fetch a model's folder from the hub: a separate program, so that loading and exporting a model need no network.

`python fetch.py MODEL REVISION NAME…` prints one JSON object: `folder` and `commit`, or `error` (a kind) and `text`. It
imports nothing of bundler's. Names are those of wanted files, which a model may lack, `*` allowed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

KINDS = {
    "GatedRepoError": "gated",
    "RepositoryNotFoundError": "missing",
    "RevisionNotFoundError": "revision",
    "HFValidationError": "missing",
    "LocalEntryNotFoundError": "unreachable",
    "OfflineModeIsEnabled": "unreachable",
}
"""Exceptions by name: their module depends on the version. All others mean that the hub was not reached."""


def main(model: str, revision: str, names: list[str]) -> dict[str, str]:
    """Fetch, or use the local copy where there is no network."""
    os.environ |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "DO_NOT_TRACK": "1"}
    from huggingface_hub import snapshot_download  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    try:
        folder = snapshot_download(model, revision=revision or None, allow_patterns=names)
    except Exception as error:  # noqa: BLE001 - all errors of the library become the result
        kinds = (KINDS[item.__name__] for item in type(error).__mro__ if item.__name__ in KINDS)
        return {"error": next(kinds, "unreachable"), "text": str(error).strip().partition("\n")[0]}
    return {"folder": folder, "commit": Path(folder).name}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], sys.argv[3:])))  # noqa: T201 - its result
