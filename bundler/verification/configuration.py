"""`runtime.json` of a bundle that somebody else may have written: its shape, and that it asks only for what a profile
may ask for.

A bundle's digests show that nothing changed since it was built, but not who built it. This file is therefore checked
by the same tables as a profile: known options with known values, none that names a file, and models of the bundle
itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bundler.model.codec import parse_json
from bundler.model.component_names import check_component_names
from bundler.model.confinement import find_inside
from bundler.model.errors import UsageError, VerificationError
from bundler.model.facts import MAX_METADATA_BYTES, metadata_bytes
from bundler.model.runtime import (
    RUNTIME_SCHEMA,
    SOLE,
    ProviderEntry,
    RuntimeComponent,
    RuntimeConfig,
    RuntimeVariant,
)
from bundler.model.signature import ValueType
from bundler.model.upgrading import OF_ONE_MODEL, upgrade_runtime
from bundler.profiles.options import CONFIG, SESSION, WEB_SESSION, Rules, index_rules
from bundler.providers.registry import find_by_runtime_name
from bundler.providers.values import normalize_value

MAX_BYTES: Final = 64 * 2**20
"""Maximum size of a `runtime.json`: bundler writes some kilobytes, 1 MB with thousands of inputs, and for each
component up to six times the size of its metadata (`MAX_METADATA_BYTES`), because characters are escaped.
"""

MAX_LISTED_FAULTS: Final = 20
"""Faults that an error lists; the rest is counted."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,6}){1,3}([a-z0-9.]{0,20})")
SET_BY_BUNDLER: Final = {"graph_optimization_level", "ep.share_ep_contexts"}
"""Options that are not for a profile because bundler itself decides them, and writes them."""


def load_config(bundle: Path, path: Path) -> RuntimeConfig:
    """The configuration at `path`, which belongs to `bundle`. Raises `VerificationError`, which names every fault."""
    config = _parse(bundle, path)
    faults = list(_find_faults(config, path.parent))
    if faults:
        more = (f"… and {len(faults) - MAX_LISTED_FAULTS} more",) if len(faults) > MAX_LISTED_FAULTS else ()
        raise VerificationError(
            f"{bundle}: runtime.json has values that bundler never writes",
            details=(*faults[:MAX_LISTED_FAULTS], *more),
            hint="do not use this bundle: it was altered or not made by bundler",
        )
    return config


def _parse(bundle: Path, path: Path) -> RuntimeConfig:
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - a tenth of a second that a build does not need

    try:
        size = find_inside(path.parent, path.name).stat().st_size
        if size > MAX_BYTES:
            raise _damaged(bundle, f"runtime.json has {size} bytes, which is more than {MAX_BYTES}")
        data = upgrade_runtime(parse_json(path.read_bytes()))
        _check_schema(bundle, data)
        return TypeAdapter(RuntimeConfig).validate_json(json.dumps(data))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _damaged(bundle, f"runtime.json: {place[:200]}: {first['msg']}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(bundle, f"runtime.json cannot be read: {error}") from error


def _check_schema(bundle: Path, data: Any) -> None:
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise _damaged(bundle, "runtime.json: schema: not a whole number")
    if schema == RUNTIME_SCHEMA:
        return
    raise VerificationError(
        f"{bundle}: runtime.json has schema {schema}; this bundler reads {OF_ONE_MODEL} (of one model) and "
        f"{RUNTIME_SCHEMA}",
        hint="build the bundle again with this bundler"
        if schema < RUNTIME_SCHEMA
        else "install a newer bundler, or build the bundle again with this one",
    )


def _damaged(bundle: Path, why: str) -> VerificationError:
    return VerificationError(
        f"{bundle} is not a complete bundle", details=(why,), hint="copy it again, or build it again"
    )


def _find_faults(config: RuntimeConfig, root: Path) -> Iterator[str]:
    names = [component.name for component in config.components]
    if not names:
        yield "it has no component"
    for position, component in enumerate(config.components):
        where = "" if config.sole else f"component {component.name[:80]!r}: "
        if names.index(component.name) != position:
            yield f"{where}given twice"
        for text in (*_check_component(component), *_check_variants(component, root), *_check_state(component, root)):
            yield f"{where}{text}"
    yield from _check_together(config)


def _check_component(component: RuntimeComponent) -> Iterator[str]:
    if component.name != SOLE:
        try:
            check_component_names((component.name,))
        except UsageError as error:
            yield error.message
    if not component.variants:
        yield "it has no variant"
    size = metadata_bytes(component.metadata)
    if size > MAX_METADATA_BYTES:
        yield f"its metadata have {size:,} bytes, which is more than {MAX_METADATA_BYTES:,}"


def _check_together(config: RuntimeConfig) -> Iterator[str]:
    unknown = [name for name in config.together if name not in {component.name for component in config.components}]
    for name in unknown:
        yield f"{name[:80]!r} belongs together with others and is not a component"
    if len(set(config.together)) != len(config.together) or len(config.together) == 1:
        yield "the components that belong together are not two or more names, each given once"


def _check_state(component: RuntimeComponent, root: Path) -> Iterator[str]:
    """Links are between ports of one type and shape, and no port has two."""
    inputs = {port.name: port.type for port in component.signature.inputs}
    outputs = {port.name: port.type for port in component.signature.outputs}
    taken, given = [link.input for link in component.state], [link.output for link in component.state]
    for position, link in enumerate(component.state):
        shown = f"state {link.input[:80]!r}"
        if link.input not in inputs or link.output not in outputs:
            yield f"{shown}: {link.input[:80]!r} and {link.output[:80]!r} are not an input and an output"
        elif not _fit(inputs[link.input], outputs[link.output], link.grows):
            yield f"{shown}: output {link.output[:80]!r} has another type or shape"
        if taken.index(link.input) != position or given.index(link.output) != position:
            yield f"{shown}: linked twice"
        if link.initial == "file":
            web = any(_is_web(variant) for variant in component.variants)
            yield from _check_path(root, link.file, f"{shown}: its initial value", web=web)


def _fit(taken: ValueType, given: ValueType, grows: int | None) -> bool:
    if taken.kind != "tensor" or given.kind != "tensor" or taken.element_type != given.element_type:
        return False
    if taken.shape is None or given.shape is None:
        return True
    if grows is not None and not (0 <= grows < len(taken.shape) and not isinstance(taken.shape[grows], int)):
        return False
    pairs = list(enumerate(zip(taken.shape, given.shape, strict=False)))
    fixed = [
        (one, two) for axis, (one, two) in pairs if axis != grows and isinstance(one, int) and isinstance(two, int)
    ]
    return len(taken.shape) == len(given.shape) and all(one == two for one, two in fixed)


def _check_path(root: Path, path: str, what: str, *, web: bool = False) -> Iterator[str]:
    try:
        _find_stored(root, path, web=web)
    except (ValueError, OSError) as error:
        yield f"{what} {error if isinstance(error, ValueError) else repr(path[:80]) + ' is missing'}"


def _check_variants(component: RuntimeComponent, root: Path) -> Iterator[str]:
    names = [variant.name for variant in component.variants]
    yield from _check_path(root, f"{component.golden}/index.json", "its golden set")
    for position, variant in enumerate(component.variants):
        if _NAME.fullmatch(variant.name) is None or names.index(variant.name) != position:
            yield f"variant {variant.name[:80]!r}: not a name, or given twice"
        if _VERSION.fullmatch(variant.requires.runtime) is None:
            yield f"variant {variant.name[:80]!r}: {variant.requires.runtime[:80]!r} is not a version of a runtime"
        for text in (*_check_files(variant, root), *_check_options(variant)):
            yield f"variant {variant.name[:80]!r}: {text}"


def _check_files(variant: RuntimeVariant, root: Path) -> Iterator[str]:
    if variant.model not in {record.path for record in variant.files}:
        yield f"its model {variant.model[:80]!r} is not among its files"
    for record in variant.files:
        try:
            _find_stored(root, record.path, web=_is_web(variant))
        except (ValueError, OSError) as error:
            yield f"its file {error if isinstance(error, ValueError) else repr(record.path[:80]) + ' is missing'}"


def _find_stored(root: Path, path: str, *, web: bool) -> None:
    try:
        find_inside(root, path)
    except FileNotFoundError:
        if not web:
            raise
        find_inside(root, f"{path}.000")  # Files that a host would refuse for their size are stored in parts.


def _check_options(variant: RuntimeVariant) -> Iterator[str]:
    if not variant.providers:
        yield "it names no provider"
    session = WEB_SESSION if _is_web(variant) else SESSION
    yield from _check_values("session", variant.session, session)
    yield from _check_values("session_config", variant.session_config, CONFIG)
    for entry in variant.providers:
        yield from _check_provider(entry)


def _is_web(variant: RuntimeVariant) -> bool:
    return bool(variant.builds)


def _check_provider(entry: ProviderEntry) -> Iterator[str]:
    knowledge = find_by_runtime_name(entry.name)
    if knowledge is None:
        yield f"{entry.name[:80]!r} is not a provider that this bundler knows"
        return
    yield from _check_values(entry.name, entry.options, index_rules(knowledge.options.rules))
    modules = {carrier.module for carrier in knowledge.presence.availability if carrier.is_plugin}
    if entry.library and entry.library not in modules:
        yield f"{entry.library[:80]!r} is not a plugin of {entry.name}"
    incompatible = knowledge.options.check(entry.options) if knowledge.options.check else ()
    for key, text in incompatible:
        yield f"{entry.name}.{key[:80]}: {text}"


def _check_values(where: str, given: Mapping[str, Any], rules: Rules) -> Iterator[str]:
    for key, value in given.items():
        shown = f"{where}.{json.dumps(key[:80])}"
        rule = rules.get(key)
        if rule is None:
            yield f"{shown} is not a known option"
        elif rule.decided and key not in SET_BY_BUNDLER:
            yield f"{shown} is not allowed in a bundle: {rule.decided}"
        else:
            try:
                normalize_value(rule, value)
            except ValueError as error:
                yield f"{shown}: got {str(value)[:80]!r}, expected {error}"
