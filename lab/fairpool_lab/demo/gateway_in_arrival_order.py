"""The product's gateway with another order behind the dispatcher's protocol; everything else is the same."""

import sys

from fairpool_gateway.main import main
from fairpool_lab.policies.arrival_order import ArrivalOrder

if __name__ == "__main__":
    sys.exit(main(ordering=ArrivalOrder))
