"""Fair decisions over time when outcomes are only seen for the accepted.

The names below are the public ones. Importing them needs NumPy alone: what trains or simulates
brings JAX in when it is first used.
"""

from sellf.audit import Audit, Audits, audit, audit_all
from sellf.fairness import (
    Certificate,
    Counts,
    Decomposition,
    Disparity,
    UndefinedUtilityWarning,
    accepted_by_any,
    accepted_in_pool,
    certify,
    cortes,
    cortes_two_sided,
    decompose,
    disparity,
    effective_sample_size,
    importance_weights,
    renyi,
    renyi_population,
    self_normalised_mean,
)

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Audits",
    "Certificate",
    "Counts",
    "Decomposition",
    "Disparity",
    "UndefinedUtilityWarning",
    "accepted_by_any",
    "accepted_in_pool",
    "audit",
    "audit_all",
    "certify",
    "cortes",
    "cortes_two_sided",
    "decompose",
    "disparity",
    "effective_sample_size",
    "importance_weights",
    "renyi",
    "renyi_population",
    "self_normalised_mean",
]
