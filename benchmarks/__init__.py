"""How fast things are, as ratios against something everyone knows, measured in one run."""
