"""`python -m sellf` is `sellf`."""

import sys

from sellf.cli import main

sys.exit(main())
