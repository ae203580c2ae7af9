"""Importance weights with which accepted people represent the rejected (Sec. 3.2).

The functions work with NumPy and JAX. Rows are people; acceptance probabilities are those of the
policies that decided, at each person's features.
"""

from sellf.fairness.arrays import Array, divide, namespace


def accepted_by_any(policies: Array) -> Array:
    """Return 1 - prod_k (1 - pi_k), the probability that any of K policies accepts (Eq. 3).

    This is the density of the accepted if every person met all K policies once, which is the
    paper's choice.

    Args:
        policies: probabilities of acceptance, shape (K, ...).
    """
    xp = namespace(policies)
    certain = policies >= 1
    # In logarithms, so that the result for many tiny probabilities is their sum and not 0.
    missed = xp.sum(xp.log1p(-xp.where(certain, 0, policies)), axis=0)
    return xp.where(xp.any(certain, axis=0), 1.0, -xp.expm1(missed))


def accepted_in_pool(policies: Array, decisions: Array | None = None) -> Array:
    """Return the mean of the pi_k (balance heuristic), the acceptance probability in a pool.

    This is the density of accepted people pooled over iterations, if each met one policy only.

    Args:
        policies: probabilities of acceptance, shape (K, ...).
        decisions: number of decisions by each policy, shape (K,); equal numbers by default.
    """
    xp = namespace(policies)
    if decisions is None:
        return xp.mean(policies, axis=0)
    share = decisions / xp.sum(decisions)
    return xp.tensordot(share, policies, axes=1)


def importance_weights(
    policy: Array, accepted_before: Array, *, acceptance_rate: Array, rejection_rate: Array
) -> Array:
    """Return w(x, i) = D_R(x) / D_A(x), the density ratio of rejected to accepted (Eq. 3).

    Args:
        policy: pi[K](x, i), the current policy's probability of acceptance.
        accepted_before: the probability that x was accepted earlier, from `accepted_by_any` or
            `accepted_in_pool`.
        acceptance_rate: a[1:K], the mean of `accepted_before` over everyone in the person's group.
        rejection_rate: r, the mean of 1 - `policy` over everyone in the person's group.

    The weight is infinite where a person may be rejected but could not have been accepted: there
    the overlap assumption of the theory fails, and no weighting can correct for it.
    """
    xp = namespace(policy, accepted_before)
    ratio = divide(1 - policy, accepted_before, empty=float("inf"))
    # If nobody is rejected, nobody has to be represented.
    weight = divide(acceptance_rate, rejection_rate, empty=0.0) * ratio
    return xp.where(policy >= 1, 0.0, weight)


def group_mean(values: Array, group: Array, groups: int, weights: Array | None = None) -> Array:
    """Return the mean of each group's values, shape (groups,); NaN for an empty group.

    Args:
        values: one number per person, shape (n,).
        group: whole numbers from 0 to `groups` - 1, shape (n,).
        groups: number of groups (static under `jit`).
        weights: importance weights; the mean is then self-normalised, sum(w v) / sum(w).
    """
    xp = namespace(values, group)
    member = group[:, None] == xp.arange(groups)[None, :]
    weight = xp.ones_like(values) if weights is None else weights
    total = xp.sum(xp.where(member, (weight * values)[:, None], 0), axis=0)
    return divide(total, xp.sum(xp.where(member, weight[:, None], 0), axis=0))


def self_normalised_mean(values: Array, weights: Array) -> Array:
    """Return sum(w v) / sum(w), a weighted mean that does not depend on the weights' scale."""
    xp = namespace(values, weights)
    return divide(xp.sum(weights * values, axis=-1), xp.sum(weights, axis=-1))


def renyi(weights: Array) -> Array:
    """Return d2(D_R || D_A) = E_A[w^2], the Renyi divergence of order 2, over accepted people."""
    xp = namespace(weights)
    return xp.mean(weights * weights, axis=-1)


def renyi_population(policy: Array, accepted_before: Array, group: Array, groups: int) -> Array:
    """Return each group's d2(D_R || D_A), estimated over the whole population, shape (groups,).

    If everyone's features are known, E_A[w^2] = (a / r^2) E[(1 - pi)^2 / P]: P = `accepted_before`
    remains to the first power, since E over the accepted is E over everyone of P / a. Nothing is
    sampled, so this is far less noisy than `renyi` of the accepted.
    """
    xp = namespace(policy, accepted_before)
    rejected = 1 - policy
    term = xp.where(
        rejected > 0, divide(rejected * rejected, accepted_before, empty=float("inf")), 0.0
    )
    accepted = group_mean(accepted_before, group, groups)
    rate = group_mean(rejected, group, groups)
    mean = group_mean(term, group, groups)
    # Where overlap fails the divergence is infinite, even if nobody at all was accepted.
    finite = xp.isfinite(mean)
    divergence = divide(accepted * xp.where(finite, mean, 1.0), rate * rate, empty=1.0)
    return xp.where(finite, divergence, xp.inf)


def effective_sample_size(weights: Array) -> Array:
    """Return (sum w)^2 / sum w^2, the effective number of unweighted people."""
    xp = namespace(weights)
    total = xp.sum(weights, axis=-1)
    return divide(total * total, xp.sum(weights * weights, axis=-1), empty=0.0)
