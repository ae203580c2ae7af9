"""Planning: the best policy under a known or an estimated law of a world."""
