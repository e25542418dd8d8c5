"""Why a pod stays pending: the text that users read, and the plugins to blame."""

from __future__ import annotations

from collections import Counter

from mooring.framework.attempt import Failed, Filtered, PreFiltered

NO_NODES = "no nodes available to schedule pods"


def rejectors(failed: Failed) -> frozenset[str]:
    """The plugins whose rejection a change in the cluster might lift."""
    named = {*failed.pre_filtered.narrowed_by}
    if failed.pre_filtered.rejected_by:
        named.add(failed.pre_filtered.rejected_by)
    if failed.filtered is not None:
        named.update(failed.filtered.rejectors())
    return frozenset(named)


def message(failed: Failed, post_filter_message: str = "") -> str:
    """The text of the PodScheduled condition."""
    text = f"0/{failed.node_count} nodes are available:"
    if failed.pre_filtered.rejected is not None:
        text += f" {failed.pre_filtered.rejected.message}."
    else:
        told = ", ".join(_histogram(failed))
        text += f" {told}."
    if post_filter_message:
        text += f" {post_filter_message}"
    return text


def refused(reasons: tuple[str, ...]) -> str:
    """The text when the chosen node was refused afterwards, by a reserve or a permit."""
    return f"0/1 nodes are available: {', '.join(f'1 {each}' for each in sorted(reasons))}."


def _histogram(failed: Failed) -> list[str]:
    """Counted reasons, sorted as texts, so that "10 x" comes before "2 x"."""
    counts: Counter[str] = Counter()
    explicit = 0
    if failed.filtered is not None:
        for reason, count in failed.filtered.reason_counts():
            counts[reason] += count
        explicit = failed.filtered.rejected_count
    if failed.pre_filtered.node_names is not None:
        counts[outside(narrowing(failed.pre_filtered, failed.tried_first))] += (
            failed.node_count - explicit
        )
    return sorted(f"{count} {reason}" for reason, count in counts.items() if count)


def outside(plugins: set[str]) -> str:
    """Why the nodes were not looked at that pre-filters left out."""
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]"


def narrowing(pre_filtered: PreFiltered, tried_first: Filtered | None) -> set[str]:
    """The plugins that are told to have left nodes out."""
    # A nominated node is tried before the others, so whoever rejected it is listed as well.
    return {*pre_filtered.narrowed_by, *(tried_first.rejectors() if tried_first else ())}
