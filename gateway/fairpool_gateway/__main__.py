"""`python -m fairpool_gateway`, the same as the command `fairpool-gateway`."""

import sys

from fairpool_gateway.main import main

sys.exit(main())
