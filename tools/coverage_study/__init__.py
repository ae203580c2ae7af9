"""How often the intervals of `sellf.audit` hold, measured through the public function alone."""
