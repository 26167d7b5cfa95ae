"""Which pods are endpoints, and how they are followed."""

from fairpool_gateway.discovery.follower import PodFollower
from fairpool_gateway.discovery.found import Found, find_endpoints
from fairpool_gateway.discovery.left_out import LeftOut
from fairpool_gateway.discovery.pods import Pod

__all__ = ["Found", "LeftOut", "Pod", "PodFollower", "find_endpoints"]
