"""Audits of decision logs: intervals, a verdict, and what would settle it. Does not use JAX."""

from sellf.audit.result import Audit, Audits
from sellf.audit.run import audit, audit_all

__all__ = ["Audit", "Audits", "audit", "audit_all"]
