"""The card of a policy: what it was learned from, what is certified, who gains and who loses."""

from typing import TYPE_CHECKING, Any

from sellf.logs.names import say

if TYPE_CHECKING:
    from sellf.offline.improve import Improvement
    from sellf.offline.policy import LearnedPolicy


def card_of(found: "Improvement", policy: "LearnedPolicy") -> str:
    """Return the card as Markdown."""
    lines = [
        f"# A {policy.kind} policy",
        "",
        found.sentence[0].upper() + found.sentence[1:],
        "",
        "## Decides from",
        "",
        *(f"- {name}" for name in policy.columns),
        "",
        *_chances(policy),
        "",
        "## Learned from",
        "",
        f"{found.people[0]:,} people of a log of {sum(found.people):,}; certified on the other "
        f"{found.people[1]:,}. Accepting costs {found.cost:g} of what a good outcome pays.",
        "",
        "## Assumed",
        "",
        *(f"- {text}" for text in (found.whatif.assumptions if found.whatif else ())),
        "",
        "## Who gains, who loses",
        "",
        *_groups(found),
        "",
        *_segments(found),
    ]
    if found.price is not None:
        low, value, high = found.price
        lines += [
            f"Exploration costs {value:.4f} per person ({low:+.4f} to {high:+.4f}).",
            "",
        ]
    if found.long_term is not None:
        said = found.long_term.sentence
        lines += ["## Over time (model-based)", "", said[0].upper() + said[1:], ""]
    if policy.kind == "scorecard":
        lines += ["## Points", "", "| feature | value | points |", "| --- | --- | ---: |"]
        lines += [f"| {_cell(a)} | {_cell(b)} | {p:+d} |" for a, b, p in policy.points()]
        lines += ["", *(f"{text[0].upper()}{text[1:]}." for text in policy.marks()), ""]
    return "\n".join(lines)


def _chances(policy: "LearnedPolicy") -> list[str]:
    found = []
    if policy.within:
        found.append(f"Of those just below the mark, {policy.within:.0%} are accepted at random.")
    if policy.follow < 1:
        rest = "accepted" if policy.otherwise else "rejected"
        found.append(
            f"The rule decides with a probability of {policy.follow:.0%}; otherwise the person is "
            f"{rest} regardless of the features. This keeps the disparity small where the log has "
            "little information, and earns less."
        )
    if policy.explore:
        found.append(f"Everybody is accepted with a probability of at least {policy.explore:.1%}.")
    return found or ["The rule always decides."]


def _groups(found: "Improvement") -> list[str]:
    if found.whatif is None:
        return []
    rows = ["| group | accepted now | new policy | change |", "| --- | ---: | ---: | --- |"]
    for change in found.whatif.changes:
        if change.measure == "acceptance" and change.group is not None:
            words = {"rises": "gains", "falls": "loses", "open": "no difference shown"}
            low, _, high = change.change
            rows.append(
                f"| {_cell(say(change.group))} | {change.now.value:.1%} | "
                f"{change.proposed.value:.1%} | {words[change.direction]} ({low:+.1%} to "
                f"{high:+.1%}) |"
            )
    return rows


def _segments(found: "Improvement") -> list[str]:
    """Return the table of the segments with the largest changes."""
    kept = sorted(found.segments, key=lambda one: one.change)
    told = [one for one in (*kept[:3], *kept[:-4:-1]) if abs(one.change) >= 0.01]
    if not told:
        return []
    rows = ["| segment | people | accepted now | new policy |", "| --- | ---: | ---: | ---: |"]
    rows += [
        f"| {_cell(say(one.group))}, {_cell(one.feature)} {_cell(one.value)} | {one.people:,} | "
        f"{one.now:.0%} | {one.proposed:.0%} |"
        for one in dict.fromkeys(told)
    ]
    return ["Segments with the largest changes:", "", *rows, ""]


def _cell(text: Any) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")
