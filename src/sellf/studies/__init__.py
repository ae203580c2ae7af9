"""Studies: parameter grids, model selection, execution engines, tables and figures."""
