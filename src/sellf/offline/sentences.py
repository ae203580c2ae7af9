"""What was certified, or why nothing was, in a sentence."""

from typing import TYPE_CHECKING

from sellf.numbers import confidence

if TYPE_CHECKING:
    from sellf.offline.improve import Improvement


def promise(found: "Improvement") -> str:
    """Return what is certified."""
    kind = "" if found.finite_sample else " (asymptotically)"
    kept = _kept(found)
    sure = f"with {confidence(found.delta)} confidence"
    return (
        f"certified: {sure}{kind} the policy's {found.notion} disparity is at most "
        f"{found.omega:g}; {sure} it {kept}."
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
    """Return whether the current policy loses, as far as the log tells."""
    return found.whatif is not None and found.whatif["reward"].now.value < 0


def unusual(found: "Improvement") -> list[str]:
    """Return what a reader of the certificate would not expect."""
    if _loses(found) and found.reward_at_least > 1:
        return [
            "the current policy loses, so that a larger --reward-at-least asks for less: type 1 "
            "for no larger loss, 0 for none."
        ]
    return []


def refusal(found: "Improvement", void: str | None = None) -> str:
    """Return why there is no certified policy, and what would change that.

    Args:
        found: what was tested.
        void: why the log's propensities could not be used.
    """
    if void is not None:
        return (
            "no policy is certified with this log, since nothing could be made of its "
            f"propensities: {void}"
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
