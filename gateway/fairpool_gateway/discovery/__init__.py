"""Which pods are endpoints, and how they are followed."""

from fairpool_gateway.discovery.follower import PodFollower
from fairpool_gateway.discovery.found import Found, find_endpoints
from fairpool_gateway.discovery.pods import Pod

__all__ = ["Found", "Pod", "PodFollower", "find_endpoints"]
