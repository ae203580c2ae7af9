"""Studies: grids, selection, sweeps on an engine, and the paper's tables and figures."""
