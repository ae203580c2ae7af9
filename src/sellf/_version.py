"""The version, in a module of its own: nothing has to import the package for it."""

__version__ = "0.2.0"
SAME_NUMBERS = ("0.1.0", "0.2.0")
"""Versions whose trainings come to the same numbers: runs of them may stand side by side."""
