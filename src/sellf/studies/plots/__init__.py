"""What the figures of a study show, one short file for each kind."""
