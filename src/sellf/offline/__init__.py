"""From a log to a policy: what another policy would have done, and which one is better."""
