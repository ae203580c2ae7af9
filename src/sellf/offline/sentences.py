"""Sentences that state what is certified, or why nothing is."""

from typing import TYPE_CHECKING

from sellf.numbers import confidence

if TYPE_CHECKING:
    from sellf.offline.improve import Improvement


def promise(found: "Improvement") -> str:
    """Return the sentence that states the certificate."""
    kind = "" if found.finite_sample else " (asymptotically)"
    kept = _kept(found)
    sure = f"with {confidence(found.delta)} confidence"
    return (
        f"certified: {sure}{kind} the policy's {found.notion} disparity is at most "
        f"{found.omega:g}; {sure}{kind} it {kept}."
    )


def _kept(found: "Improvement") -> str:
    share = found.reward_at_least
    if share == 0:
        return "does not lose"
    if share == 1:
        return "earns at least what the current one does"
    if _loses(found):
        return f"loses at most {share:.0%} of what the current one loses"
    return f"earns at least {share:.0%} of what the current one does"


def _loses(found: "Improvement") -> bool:
    """Return whether the estimated reward of the current policy is negative."""
    return found.whatif is not None and found.whatif["reward"].now.value < 0


def unusual(found: "Improvement") -> list[str]:
    """Return warnings about properties of the certificate that a reader would not expect."""
    if _loses(found) and found.reward_at_least > 1:
        return [
            "the current policy makes a loss, so a larger --reward-at-least asks for less: type 1 "
            "for no larger loss, 0 for no loss."
        ]
    return []


def refusal(found: "Improvement", void: str | None = None) -> str:
    """Return the reason why there is no certified policy, and a remedy.

    Args:
        found: the result of the tests.
        void: why the log's propensities cannot be used.
    """
    if void is not None:
        return (
            f"no policy is certified with this log, since its propensities cannot be used: {void}"
        )
    first, last = found.tested[0], found.tested[-1]
    start = "no policy is certified with this log: "
    if first.disparity is not None and not first.fair:
        excess = first.disparity - first.candidate.disparity
        room = found.omega - first.candidate.disparity
        if room > 0.1 * found.omega:
            times = (excess / room) ** 2
            more = (
                f"about {_round(found.people[1] * times):,} people to certify on instead of "
                f"{found.people[1]:,} would be needed, or more exploration where the log has "
                "little information"
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
            f"{start}the boldest candidate may earn {-last.reward:.4f} per person less than "
            f"required. Type a smaller --reward-at-least than {found.reward_at_least:g}, or give a "
            "log of more people."
        )
    return (
        f"{start}the candidates within {found.omega:g} may earn less than required. Type a smaller "
        f"--reward-at-least than {found.reward_at_least:g}, or a larger --omega."
    )


def explored(found: "Improvement") -> str:
    """Return the sentence that states the cost of exploration."""
    if found.price is None or found.policy is None:
        return ""
    low, value, high = found.price
    return (
        "exploration: accepting everybody with a probability of at least "
        f"{found.policy.explore:.1%} costs {value:.4f} per person ({low:+.4f} to {high:+.4f}); in "
        "return, the next policy can be certified from the new log."
    )


def _round(x: float) -> int:
    digits = max(len(str(int(x))) - 2, 0)
    return int(round(x, -digits))
