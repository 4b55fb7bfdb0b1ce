"""Names and versions for npm, from the name of any model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from bundler.model.errors import UsageError

LONGEST = 80
"""Maximum number of characters of a package's name; npm allows 214."""

_TAKEN = frozenset(
    (
        *("assert", "async-hooks", "buffer", "child-process", "cluster", "console", "constants", "crypto", "dgram"),
        *("diagnostics-channel", "dns", "domain", "events", "fs", "http", "http2", "https", "inspector", "module"),
        *("net", "os", "path", "perf-hooks", "process", "punycode", "querystring", "readline", "repl", "stream"),
        *("string-decoder", "sys", "timers", "tls", "trace-events", "tty", "url", "util", "v8", "vm", "wasi"),
        *("worker-threads", "zlib", "test", "sqlite", "sea", "ffi", "quic"),
        *("node-modules", "favicon-ico", "onnxruntime-web", "onnxruntime-common", "node", "npm", "vite"),
    )
)
"""Modules of Node.js that a package cannot shadow, names that npm refuses, and packages that are used with a bundle."""


_FACADE = frozenset(
    (
        *("Bundle", "BundleError", "ComponentName", "DeviceLostError", "Dimension", "DisposedError", "DownloadError"),
        *("FallbackError", "IncompatibleError", "InferenceError", "InputError", "IntegrityError", "LoadOptions"),
        *("Model", "OutOfMemoryError", "OutputFigures", "Port", "ProgressEvent", "Report", "RunOptions", "SelfTest"),
        *("Tensor", "TensorData", "TypedTensor", "TypedValue", "Value", "ValueType", "VariantState", "BundleSelfTest"),
        *("AnyStream", "StreamState"),
        *("AnyModel", "SharedOptions", "Omit", "Promise", "Readonly", "Record", "Partial", "AbortSignal", "URL"),
        *("Float32Array", "Float64Array", "Int8Array", "Int16Array", "Int32Array", "BigInt64Array"),
        *("Uint8Array", "Uint16Array", "Uint32Array", "BigUint64Array"),
    )
)
"""Types that the declarations of a bundle of several components have already, or take from the language."""

_PARTS = ("", "Inputs", "Outputs", "Stream", "Variant")

LONGEST_GIVEN = 214
"""Characters of a name or a version that a user gives: as many as npm takes."""

_PART = r"[a-z0-9][a-z0-9._-]*"
_PACKAGE = re.compile(rf"(?:@{_PART}/)?{_PART}", re.ASCII)

_STAGES = {"a": "alpha", "b": "beta", "rc": "rc"}
_LABELS = r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMANTIC = re.compile(
    rf"(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){{2}}(?:-{_LABELS}(?:\.{_LABELS})*)?(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def make_package_name(model: str) -> str:
    """A valid name for npm: lower-case ASCII letters, digits and single hyphens, and no module of Node.js."""
    plain = unicodedata.normalize("NFKD", model).encode("ascii", "ignore").decode("ascii").lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:LONGEST].strip("-")
    if not name:
        return "model"
    return f"{name}-model" if name in _TAKEN else name


def name_types(components: Sequence[str]) -> tuple[str, ...]:
    """The TypeScript type of each component: `Detect` for `detect`. It and what begins with it, such as `DetectInputs`,
    are distinct from all others.
    """
    taken = set(_FACADE)
    found = []
    for component in components:
        name = "".join(word[:1].upper() + word[1:] for word in component.split("_"))
        while any(f"{name}{part}" in taken for part in _PARTS):
            name += "_"
        taken |= {f"{name}{part}" for part in _PARTS}
        found.append(name)
    return tuple(found)


def choose_package_name(model: str, package_name: str | None) -> str:
    """The package's name: the user's, `@scope/name` or `name`, else made from the model's. Raises `UsageError`."""
    if package_name is None:
        return make_package_name(model)
    if len(package_name) > LONGEST_GIVEN or _PACKAGE.fullmatch(package_name) is None or _is_taken(package_name):
        raise UsageError(
            f"{package_name[:80]!r} cannot be the name of an npm package",
            hint="use lower-case letters, digits, '-', '_' and '.', after a scope where there is one, and no module of "
            "Node.js: --package-name @acme/model",
        )
    return package_name


def _is_taken(name: str) -> bool:
    """Whether it is one of these names, which Node.js and npm write with underscores and dots too."""
    return re.sub(r"[._]", "-", name) in _TAKEN


def make_version(version: str) -> str:
    """A version as npm has them: `version` itself, or made from one in Python's form (`1.2rc1` is `1.2.0-rc.1`).

    Raises `UsageError` for what is neither.
    """
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415 (needed when emitting alone)

    if len(version) > LONGEST_GIVEN:
        raise UsageError(
            f"{version[:80]!r}… is not a version: it has {len(version)} characters",
            hint="use three numbers: --version 1.2.3",
        )
    if _SEMANTIC.fullmatch(version):
        return version
    try:
        parsed = Version(version)
    except InvalidVersion as error:
        raise UsageError(f"{version!r} is not a version", hint="use three numbers: --version 1.2.3") from error
    numbers = [str(number) for number in (*parsed.release, 0, 0)]
    stage, count = parsed.pre or (None, None)
    labels = [*_label(_STAGES.get(stage or "", ""), count), *_label("dev", parsed.dev)]
    extra = [*numbers[3 : len(parsed.release)], *_label("post", parsed.post), *(parsed.local or "").split(".")]
    before = f"-{'.'.join(labels)}" if labels else ""
    after = "+" + ".".join(filter(None, extra)) if any(extra) else ""
    return ".".join(numbers[:3]) + before + after


def _label(name: str, number: int | None) -> tuple[str, ...]:
    return () if number is None else (name, str(number))
