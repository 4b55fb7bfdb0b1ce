"""Names of components: identifiers in every language that a loader is written in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from bundler.model.errors import UsageError

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")

_KEYWORDS: Final = """
abstract actor alignas alignof and any as asm assert associatedtype async auto await bool boolean borrowing break by
byte case catch char class companion concept const consteval constexpr constinit constructor consuming continue
convenience data decltype def default defer deferred deinit del delegate delete deprecated distributed do double
dynamic elif else enum eval except exec explicit export extends extension extern external fallthrough false field
fileprivate final finally fixed float for foreach from fun func function generic get global goto guard if implements
import in indirect infix init inline inner inout instanceof int interface internal is isolated join lambda lateinit
lazy let long match mutable mutating namespace native new nil noexcept noinline none nonisolated nonlocal nonmutating
not null object open operator optional or out override package param pass postfix precedencegroup prefix print private
property protected protocol public raise receiver register reified repeat required requires rethrows return sealed
self set short signed sizeof some static strictfp struct subscript super suspend switch synchronized tailrec template
this throw throws transient true try type typealias typedef typeid typename typeof undefined union unowned unsafe
unsigned using val value var vararg virtual void volatile weak when where while willset with xor yield
"""
"""Those in lower case of Python, JavaScript and TypeScript, Kotlin and Java, Swift, C and C++."""

_MEMBERS: Final = """
bundle bundles close closed components copy create description dispose golden hash id info load loader model models
name names open options outputs pins prewarm proof report run runtime self_test session state stream streams target
telemetry then to_string update variant variants version
"""
"""What loaders call their own members, or what a language gives every object."""


def check_component_names(names: Iterable[str]) -> None:
    """Raise `UsageError` for a name that cannot be a member of the bundle in each language."""
    for name in names:
        reason = _find_fault(name)
        if reason:
            raise UsageError(
                f"{name[:80]!r} cannot be the name of a component: {reason}",
                hint="use up to 32 lower-case letters, digits and underscores, beginning with a letter, such as detect",
            )


def _find_fault(name: str) -> str:
    if _NAME.fullmatch(name) is None or name.endswith("_") or "__" in name:
        return "it is not an identifier in every language of bundles"
    if name in _KEYWORDS.split():
        return "it is a keyword in a language of bundles"
    return "bundles have a member of this name" if name in _MEMBERS.split() else ""
