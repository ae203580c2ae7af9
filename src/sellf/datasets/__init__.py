"""Public data sets of real decisions: fetched, checked, cached, with the settings of an audit."""

from sellf.datasets.catalogue import fetch_adult, fetch_amex, fetch_compas, fetch_nypd_stops
from sellf.datasets.dataset import Dataset

__all__ = ["Dataset", "fetch_adult", "fetch_amex", "fetch_compas", "fetch_nypd_stops"]
