"""Reads a declared preprocessing: a TOML file that says what becomes of a picture, a recording or a text."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from bundler.model.errors import UsageError
from bundler.model.paths import real_path
from bundler.model.preprocessing import Declaration, read_declaration
from bundler.profiles.preprocessing_schema import KINDS, Declared
from bundler.support.reads import announce_look

FILE_NAME: Final = "preprocessing.toml"
LARGEST: Final = 1_000_000
"""Bytes of a declaration; a real one has some hundred."""
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredPreprocessing:
    """What a file declares. `tokenizer` is the file that it names, which is in the file's folder or below."""

    path: Path
    declaration: Declaration
    options: Mapping[str, Any]
    tokenizer: Path | None


def read_preprocessing(path: Path) -> DeclaredPreprocessing:
    """The checked declaration in the TOML file at `path`. Raises `UsageError` with all that is wrong in it."""
    data = _read(path)
    section = KINDS.get(data["kind"]) if isinstance(data.get("kind"), str) else None
    if section is None:
        raise _invalid(path, [_kind_problem(data)])
    try:
        checked = section.model_validate(data)
    except ValidationError as error:
        raise _invalid(path, list(_problems(error, section))) from error
    problems = list(_constant_problems(data.get("constants", {})))
    if problems:
        raise _invalid(path, problems)
    options = checked.model_dump(mode="json", exclude_none=True)
    tokenizer = _find_tokenizer(path, options["tokenizer"]) if "tokenizer" in options else None
    return DeclaredPreprocessing(path=path, declaration=read_declaration(options), options=options, tokenizer=tokenizer)


def starter_lines(kind: str) -> tuple[str, ...]:
    """The least that a declaration of this kind needs, for a message that asks for one."""
    rest = {"image": ("mean = [0.5, 0.5, 0.5]", "std = [0.5, 0.5, 0.5]"), "audio": ("sample_rate = 16000",)}
    return (f'kind = "{kind}"', *rest.get(kind, ('tokenizer = "tokenizer.json"',)))


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} bytes")  # noqa: TRY301 - reported like those below
        return tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(
            f"cannot read the preprocessing {show(path.name)}: {error.strerror or error}",
            hint="use --preprocessing with the path of a TOML file",
        ) from error
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition("\n")[0]
        raise UsageError(
            f"the preprocessing {show(path.name)} is not valid TOML", details=(_one_line(reason),), hint=_HINT
        ) from error


_HINT: Final = "docs/preprocessing.md lists every key with its values and its default"


def _invalid(path: Path, problems: list[str]) -> UsageError:
    rest = len(problems) - _SHOWN
    details = (*problems[:_SHOWN], *((f"and {rest} more",) if rest > 0 else ()))
    return UsageError(f"the preprocessing {show(path.name)} is not valid", details=details, hint=_HINT)


def _kind_problem(data: Mapping[str, Any]) -> str:
    known = ", ".join(f'"{name}"' for name in KINDS)
    if "kind" not in data:
        near = difflib.get_close_matches("kind", list(data), n=1)
        return f"kind: is missing, expected one of {known}" + (
            f"; did you mean kind by {show(near[0])}?" if near else ""
        )
    return f"kind: got {show(data['kind'])}, expected one of {known}{_suggest(data['kind'], KINDS)}"


def _problems(error: ValidationError, section: type[Declared]) -> Iterator[str]:
    seen: set[str] = set()
    for item in error.errors(include_url=False):
        if item["type"] == "too_short" and len(item["input"]) >= item["ctx"]["min_length"]:
            continue  # elements that are wrong themselves are not counted, and have errors of their own
        place = _show_place(item["loc"])
        if place not in seen:
            seen.add(place)
            yield f"{place}: {_explain(item, section)}"


def _explain(item: Any, section: type[Declared]) -> str:
    key = str(item["loc"][0])
    field: FieldInfo | None = section.model_fields.get(key)
    meaning = f" ({' '.join(field.description.split()).rstrip('.')})" if field and field.description else ""
    kind = item["type"]
    if kind == "extra_forbidden":
        known = list(section.model_fields)
        return "unknown key" + (_suggest(key, known) or f" (known: {', '.join(known)})")
    if kind == "missing":
        return f"is missing{meaning}"
    got = f"got {show(item['input'])}"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", str(item["ctx"]["expected"]))
        expected = ", ".join(f'"{choice}"' for choice in choices)
        return f"{got}, expected one of {expected}{_suggest(item['input'], choices)}{meaning}"
    return f"{got}, expected {_expected(item)}{meaning}"


_TYPES: Final[Mapping[str, str]] = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "tuple_type": "an array",
    "dict_type": "a table",
    "string_unicode": "valid Unicode",
}


def _expected(item: Any) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind in ("too_short", "too_long"):
        bound = context.get("min_length") or context.get("max_length")
        return f"an array of {bound}" if kind == "too_short" else f"at most {bound} elements"
    text = str(item["msg"]).removeprefix("Input should be ").removeprefix("String should have ")
    return _TYPES.get(kind, text)


def _constant_problems(constants: Mapping[str, Any]) -> Iterator[str]:
    for name, value in constants.items():
        wrong = next((leaf for leaf in _leaves(value) if not isinstance(leaf, bool | int | float | str)), None)
        if wrong is not None:
            yield f"constants.{show(name)}: got {show(wrong)}, expected numbers, true or false, text, or arrays of them"


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _find_tokenizer(path: Path, name: str) -> Path:
    """The tokenizer beside the declaration, or below. Links are followed before it is judged."""
    folder = real_path(path).parent
    found = _resolve(folder, name)
    if found is None or not found.is_relative_to(folder):
        problem = f"tokenizer: {show(name)} is outside the folder of {show(path.name)}"
        raise UsageError(
            f"the preprocessing {show(path.name)} is not valid",
            details=(problem,),
            hint="copy tokenizer.json next to the TOML file, and write its path relative to that file",
        )
    if not found.is_file():
        near = difflib.get_close_matches(name, sorted(item.name for item in folder.glob("*.json")), n=1, cutoff=0.3)
        meant = f"; did you mean {show(near[0])}?" if near else ""
        raise UsageError(
            f"the preprocessing {show(path.name)} is not valid",
            details=(f"tokenizer: the file {show(name)} does not exist{meant}",),
            hint="write the path of a Hugging Face tokenizer.json, relative to the TOML file",
        )
    return found


def _resolve(folder: Path, name: str) -> Path | None:
    try:
        announce_look(folder / name)  # it may be a link
        return real_path(folder / name)
    except (OSError, ValueError, RuntimeError):  # a NUL in the name, a circle of links
        return None


def _suggest(name: object, known: Iterable[str]) -> str:
    names = list(known)
    folded = {known_name.lower(): known_name for known_name in names}
    close = difflib.get_close_matches(str(name).lower(), list(folded), n=1)
    return f'; did you mean "{folded[close[0]]}"?' if close else ""


def _show_place(place: tuple[int | str, ...]) -> str:
    shown = ""
    for part in place:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            shown += ("." if shown else "") + (part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part))
    return shown


def show(value: object, width: int = 60) -> str:
    """`value` cut to `width`: safe to print whatever the file holds."""
    shown = f'"{value}"' if isinstance(value, str) and value.isprintable() and '"' not in value else ascii(value)
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:300]
