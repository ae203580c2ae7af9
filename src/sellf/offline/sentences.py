"""What was certified, or why nothing was, in a sentence."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sellf.offline.improve import Improvement


def promise(found: "Improvement") -> str:
    """Return what is certified."""
    kind = "" if found.finite_sample else " (asymptotically)"
    kept = (
        "earns at least what the current one does"
        if found.reward_at_least == 1
        else f"earns at least {found.reward_at_least:.0%} of what the current one does"
    )
    return (
        f"certified: with {1 - found.delta:.0%} confidence{kind} the policy's {found.notion} "
        f"disparity is at most {found.omega:g}; with {1 - found.delta:.0%} confidence it {kept}."
    )


def refusal(found: "Improvement") -> str:
    """Return why there is no certified policy, and what would change that."""
    first, last = found.tested[0], found.tested[-1]
    start = "no policy is certified with this log: "
    if first.disparity is not None and not first.fair:
        excess = first.disparity - first.candidate.disparity
        room = found.omega - first.candidate.disparity
        if room > 0.1 * found.omega:
            times = (excess / room) ** 2
            more = (
                f"about {_round(found.people[1] * times):,} people to certify on instead of "
                f"{found.people[1]:,} would be needed, or more exploration where the log tells "
                "little"
            )
        else:
            more = "no rule of this kind keeps the groups that close; try another kind or omega"
        return (
            f"{start}even the safest candidate's {found.notion} disparity, estimated at "
            f"{first.candidate.disparity:.3f}, may be as large as {first.disparity:.3f} at "
            f"tolerance {found.omega:g}. {more[0].upper()}{more[1:]}."
        )
    if last.reward is not None and not last.earns:
        return (
            f"{start}the boldest candidate may earn {-last.reward:.4f} a person less than what is "
            f"asked for. Type a smaller --reward-at-least than {found.reward_at_least:g}, or bring "
            "more people."
        )
    return (
        f"{start}those within {found.omega:g} may earn less than what is asked for. Type a smaller "
        f"--reward-at-least than {found.reward_at_least:g}, or a larger --omega."
    )


def explored(found: "Improvement") -> str:
    """Return what exploration costs."""
    if found.price is None or found.policy is None:
        return ""
    low, value, high = found.price
    return (
        f"exploration: accepting everybody with a chance of at least {found.policy.explore:.1%} "
        f"costs {value:.4f} a person ({low:+.4f} to {high:+.4f}); what it buys is a log from which "
        "the next policy can be certified."
    )


def _round(x: float) -> int:
    digits = max(len(str(int(x))) - 2, 0)
    return int(round(x, -digits))
