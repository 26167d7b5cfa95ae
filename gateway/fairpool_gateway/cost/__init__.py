"""What a request will cost, and learning it from what it did cost (DESIGN §5; article §7.4)."""

from fairpool_gateway.cost.api import Api
from fairpool_gateway.cost.body import read_shape
from fairpool_gateway.cost.carry import Carry
from fairpool_gateway.cost.estimate import CostModel, Estimator, OutputEstimator
from fairpool_gateway.cost.shape import Shape, Used

__all__ = ["Api", "Carry", "CostModel", "Estimator", "OutputEstimator", "Shape", "Used", "read_shape"]
