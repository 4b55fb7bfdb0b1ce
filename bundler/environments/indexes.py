"""Package indexes, from the user's own configuration.

uv and pip do not read each other's configuration: when only one of them is configured, the other gets the same.
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_UV_TO_PIP = {
    "UV_DEFAULT_INDEX": "PIP_INDEX_URL",
    "UV_INDEX_URL": "PIP_INDEX_URL",
    "UV_INDEX": "PIP_EXTRA_INDEX_URL",
    "UV_EXTRA_INDEX_URL": "PIP_EXTRA_INDEX_URL",
    "UV_FIND_LINKS": "PIP_FIND_LINKS",
    "UV_NO_INDEX": "PIP_NO_INDEX",
}
_PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "cert": "SSL_CERT_FILE",
}
_SECTIONS = ("global", "install", "download")


def index_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """What to add to `environ` so that uv and pip use the same indexes; what is set there is never changed."""
    settings = _pip_settings(environ)
    added: dict[str, str] = {}
    if not _is_uv_configured(environ):
        added |= {_PIP_TO_UV[name]: _join(name, value) for name, value in settings.items()}
        if "extra-index-url" in settings:
            # pip treats all indexes as one, so a user of pip expects that; what is installed is pinned by hash.
            added["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if not settings:
        for theirs, ours in _UV_TO_PIP.items():
            if environ.get(theirs):
                added.setdefault(ours, environ[theirs].replace(",", " "))
    return {name: value for name, value in added.items() if name not in environ}


def _join(name: str, value: str) -> str:
    """In pip's way several values are separated by spaces or lines, in uv's the places of files by commas."""
    return ("," if name == "find-links" else " ").join(value.split())


def _is_uv_configured(environ: Mapping[str, str]) -> bool:
    if any(environ.get(name) for name in (*_UV_TO_PIP, "UV_CONFIG_FILE")):
        return True
    return any(path.is_file() for path in _uv_files(environ))


def _pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """What pip's variables and files say of indexes; variables win, then the nearest file."""
    found: dict[str, str] = {}
    for path in _pip_files(environ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # pip itself reports it
        for section in (name for name in _SECTIONS if parser.has_section(name)):
            options = {key.replace("_", "-"): value for key, value in parser.items(section)}
            found |= {name: options[name] for name in _PIP_TO_UV if options.get(name)}
    variables = {name: environ.get("PIP_" + name.upper().replace("-", "_")) for name in _PIP_TO_UV}
    return found | {name: value for name, value in variables.items() if value}


def _pip_files(environ: Mapping[str, str]) -> Iterator[Path]:
    """The configuration files of pip, the farthest first, as its documentation lists them."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    file = "pip.ini" if sys.platform == "win32" else "pip.conf"
    yield from (Path("/etc/xdg/pip", file), Path("/etc", file))
    yield home / (".pip" if sys.platform != "win32" else "pip") / file
    yield _configuration_folder(environ, home) / "pip" / file
    yield Path(sys.prefix) / file
    if named:
        yield Path(named)


def _uv_files(environ: Mapping[str, str]) -> Iterator[Path]:
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    yield from (Path("/etc/uv/uv.toml"), _configuration_folder(environ, home) / "uv" / "uv.toml")


def _configuration_folder(environ: Mapping[str, str], home: Path) -> Path:
    if sys.platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
