"""``python -m toolkit`` is the command ``ledger-toolkit``."""

import sys

from toolkit.cli import main

sys.exit(main())
