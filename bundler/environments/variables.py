"""Selects the environment variables that a started process gets: those that it needs, and no cloud credentials.

What is run may be attacked through what it reads: a model, a package, a page. So each kind of process has a list of
what it gets; `BUNDLER_PASS_ENV` adds names (`AWS_*,DATABASE_URL`) for those whose own code runs in a build.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

EXTRA_NAMES: Final = "BUNDLER_PASS_ENV"
"""Names, or patterns of names, that every process sees in addition; separated by commas."""

_SYSTEM: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TEMP", "TMP"),
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "LOCALAPPDATA", "APPDATA"),
    *("PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "NUMBER_OF_PROCESSORS", "PROCESSOR_*", "XDG_*_HOME"),
    *("LD_LIBRARY_PATH", "DYLD_*LIBRARY_PATH", "PYENV_ROOT", "SOURCE_DATE_EPOCH", "NO_COLOR", "COLUMNS"),
)
"""What any program needs to start and to find its folders."""

_COMPUTING: Final = (
    *("CUDA_*", "NVIDIA_*", "CUDNN_*", "HIP_*", "ROCR_*", "ROCM_*", "HSA_*", "GPU_DEVICE_ORDINAL", "VK_*"),
    *("OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "MALLOC_*", "PYTHON*", "COVERAGE_*", "ORT_*", "QNN_*"),
    *("INTEL_*", "OPENVINO_*", "QAIRT_*", "ADSP_LIBRARY_PATH", "BUNDLER_MEMORY_LIMIT"),
)
"""Devices, threads, and (for bundler's own interpreter) where Python finds its modules."""

_NETWORK: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
"""Proxies and certificates."""

_INDEXES: Final = (
    *("PIP_*", "UV_*", "NETRC"),
    *("DBUS_SESSION_BUS_ADDRESS", "PYTHON_KEYRING_BACKEND", "XDG_CONFIG_DIRS"),
)
"""Where packages come from, and the credentials for their indexes."""

_HUB: Final = ("HF_*", "HUGGINGFACE_*", "HUGGING_FACE_*", "NETRC")
"""Where models come from, and the credentials for private ones."""

_QUIET: Final = {"ORT_DISABLE_TELEMETRY": "1"}
"""Before a runtime is loaded anywhere."""

_SCREEN: Final = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "FONTCONFIG_*")


def computing_environment() -> dict[str, str]:
    """For what computes and needs no network: workers, the packing of a bundle."""
    return {**_select((*_SYSTEM, *_COMPUTING)), **_QUIET}


def fetching_environment(*own: str) -> dict[str, str]:
    """For what fetches packages: uv, pip, apt-get; `own` are the names of an ecosystem's own fetcher beside those."""
    return _select((*_SYSTEM, *_NETWORK, *_INDEXES, *own))


def hub_environment() -> dict[str, str]:
    """For what fetches models."""
    return _select((*_SYSTEM, *_NETWORK, *_HUB))


def browser_environment() -> dict[str, str]:
    """For a browser that opens a page of a bundle."""
    return _select((*_SYSTEM, *_COMPUTING, *_SCREEN))


def proof_environment() -> dict[str, str]:
    """For a bundle's own program: as little as it starts with. It turns off its runtime's telemetry by itself."""
    return _select(("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR"))


def _select(patterns: Iterable[str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    wanted = (*patterns, *_passed(environ))
    return {name: value for name, value in environ.items() if any(_fits(name, pattern) for pattern in wanted)}


def _passed(environ: Mapping[str, str]) -> list[str]:
    return [name.strip() for name in environ.get(EXTRA_NAMES, "").split(",") if name.strip()]


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or ("*" in pattern and fnmatchcase(name, pattern))
