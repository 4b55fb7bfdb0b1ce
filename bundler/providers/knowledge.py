"""What a provider file must tell. Rows of data and one Protocol; no base class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

OptionKind = Literal["text", "flag", "integer", "number"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRule:
    """One valid option: allowed `values` (None: any text), what it means, and the default that the runtime takes.

    `kind` is what the value must be; `least` and `most` bound integers and numbers, both included. `decided` is empty
    for options that a profile may set; for one that bundler sets itself it says what to use instead.
    """

    key: str
    values: tuple[str, ...] | None = None
    default: str
    meaning: str
    kind: OptionKind = "text"
    least: float | None = None
    most: float | None = None
    decided: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKnowledge:
    """All knowledge of one execution provider.

    `name` is the short name in profiles; `runtime_name` the runtime's own; `package` the distribution that carries it;
    `options` its valid options; `replaced` maps keys of old playbooks to what to use today.

    `builds` are the builds of a runtime of several builds that have it, the preferred first. `rehearsed_by` is the
    short name of the provider that stands in for it where a stage's result is compared on the building machine; empty
    where the Python runtime has it. `device_memory` is the runtime's name of the memory that its tensors live in, when
    that is not the CPU's. `half_feature` is what that device must offer to compute in half precision, where not all do.

    `precisions` are the precision methods whose models it runs; `tries` are those that an automatic choice tries, in
    this order, for they may be faster than the model as it is.
    """

    name: str
    runtime_name: str
    title: str
    package: str
    options: tuple[OptionRule, ...] = ()
    replaced: Mapping[str, str] = field(default_factory=dict)
    builds: tuple[str, ...] = ()
    rehearsed_by: str = ""
    device_memory: str | None = None
    half_feature: str = ""
    precisions: tuple[str, ...] = ()
    tries: tuple[str, ...] = ()
