"""The paper's mathematics as pure functions: notions, disparity, weights, bounds."""

from sellf.fairness.bounds import (
    Certificate,
    bias_bound,
    bias_shares,
    certify,
    cortes,
    cortes_two_sided,
)
from sellf.fairness.checks import UndefinedUtilityWarning
from sellf.fairness.disparity import (
    Decomposition,
    Disparity,
    ImputationBias,
    decompose,
    disparity,
    imputation_bias,
)
from sellf.fairness.notions import NOTIONS, VIEWS, Counts, Notion, View, spread, utility
from sellf.fairness.weights import (
    accepted_by_any,
    accepted_in_pool,
    effective_sample_size,
    group_mean,
    importance_weights,
    renyi,
    renyi_population,
    self_normalised_mean,
)

__all__ = [
    "NOTIONS",
    "VIEWS",
    "Certificate",
    "Counts",
    "Decomposition",
    "Disparity",
    "ImputationBias",
    "Notion",
    "UndefinedUtilityWarning",
    "View",
    "accepted_by_any",
    "accepted_in_pool",
    "bias_bound",
    "bias_shares",
    "certify",
    "cortes",
    "cortes_two_sided",
    "decompose",
    "disparity",
    "effective_sample_size",
    "group_mean",
    "importance_weights",
    "imputation_bias",
    "renyi",
    "renyi_population",
    "self_normalised_mean",
    "spread",
    "utility",
]
