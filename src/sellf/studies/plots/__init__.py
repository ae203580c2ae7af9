"""Figures of a study, one module per kind."""
