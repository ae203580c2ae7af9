"""Planning: the best policy where the law of a world is known, or was learned."""
