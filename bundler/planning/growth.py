"""States that grow: the size along their axis stays open, which not every build and not every provider allows. Pure,
like all planning.
"""

from __future__ import annotations

from collections.abc import Sequence

from bundler.model.errors import UsageError
from bundler.model.requirements import FIXED_BY, FixedSize
from bundler.model.state import StateLink
from bundler.planning.traits import judge_free_sizes
from bundler.profiles.schema import Variant
from bundler.providers.registry import find_provider


def check_growth(links: Sequence[StateLink], fixed: Sequence[FixedSize]) -> None:
    """Raise `UsageError` where the build fixes the size along which a state grows."""
    problems = tuple(
        f"{link.input[:80]} grows along axis {link.grows}, where {size.name[:80]} = {size.size} is {FIXED_BY[size.by]}"
        for link in links
        for size in fixed
        if link.grows in size.axes.get(link.input, ())
    )
    if problems:
        raise UsageError(
            "a state cannot grow along a size that the build fixes",
            details=problems,
            hint="leave that size open (remove its --dim or --shape), or choose a target that leaves it open",
        )


def explain_static(variant: Variant, links: Sequence[StateLink]) -> str:
    """Why the variant cannot run the states that grow; empty where it can, or where none grows."""
    growing = [link.input[:80] for link in links if link.grows is not None]
    if not growing or judge_free_sizes(variant) != "fixed":
        return ""
    provider = find_provider(variant.providers[0].name).title
    return f"{provider} requires fixed sizes, but a state grows: {', '.join(growing)}"
