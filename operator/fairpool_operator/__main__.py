"""`python -m fairpool_operator`."""

import sys

from fairpool_operator.main import main

sys.exit(main())
